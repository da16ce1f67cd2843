/*
 * A reader notes the epoch it began in. The thread of callbacks takes what there is, begins a new
 * epoch, waits until no reader is in an older one, and calls.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include "small_rcu.h"

#define READERS 16

static struct {
        uint64_t epoch;                 /* atomic; 0: not reading */
        uint64_t used;                  /* atomic */
        char rest[48];
} readers[READERS];

struct waiting {
        struct waiting *next;
        struct stook_rcu_head *head;
        void (*done)(struct stook_rcu_head *head);
};

static uint64_t epoch = 1;
static __thread unsigned me;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, less = PTHREAD_COND_INITIALIZER;
static struct waiting *list;
static uint64_t asked, served;
static bool running;

void small_rcu_register(void)
{
        for (me = 0; __atomic_exchange_n(&readers[me].used, 1, __ATOMIC_SEQ_CST); me++)
                if (me + 1 == READERS)
                        abort();
}

void small_rcu_unregister(void)
{
        __atomic_store_n(&readers[me].used, 0, __ATOMIC_SEQ_CST);
}

static void read_lock(void)
{
        __atomic_exchange_n(&readers[me].epoch, __atomic_load_n(&epoch, __ATOMIC_SEQ_CST),
                            __ATOMIC_SEQ_CST);
}

static void read_unlock(void)
{
        __atomic_store_n(&readers[me].epoch, 0, __ATOMIC_RELEASE);
}

static void wait_for_readers(void)
{
        uint64_t now = __atomic_add_fetch(&epoch, 1, __ATOMIC_SEQ_CST), in;

        for (unsigned i = 0; i < READERS; i++)
                while ((in = __atomic_load_n(&readers[i].epoch, __ATOMIC_SEQ_CST)) && in < now)
                        sched_yield();
}

static void *serve(void *unused)
{
        pthread_mutex_lock(&lock);
        for (;;) {
                struct waiting *taken = list;
                uint64_t n = 0;

                list = NULL;
                if (!taken) {
                        pthread_cond_wait(&some, &lock);
                        continue;
                }
                pthread_mutex_unlock(&lock);
                wait_for_readers();
                while (taken) {
                        struct waiting *w = taken;

                        taken = w->next;
                        w->done(w->head);
                        free(w);
                        n++;
                }
                pthread_mutex_lock(&lock);
                served += n;
                pthread_cond_broadcast(&less);
        }
        return unused;
}

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *))
{
        struct waiting *w = malloc(sizeof(*w));
        pthread_t thread;

        if (!w)
                abort();
        pthread_mutex_lock(&lock);
        *w = (struct waiting){ list, head, done };
        list = w;
        asked++;
        if (!running && (pthread_create(&thread, NULL, serve, NULL) || pthread_detach(thread)))
                abort();
        running = true;
        pthread_cond_signal(&some);
        pthread_mutex_unlock(&lock);
}

static void barrier(void)
{
        uint64_t until;

        pthread_mutex_lock(&lock);
        for (until = asked; served < until;)
                pthread_cond_wait(&less, &lock);
        pthread_mutex_unlock(&lock);
}

const struct stook_rcu small_rcu = {
        .ops_size = sizeof(small_rcu),
        .call = call,
        .barrier = barrier,
        .read_lock = read_lock,
        .read_unlock = read_unlock,
};
