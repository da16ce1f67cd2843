/*
 * Purpose: a small RCU for the soak test, which goes on in a child of fork(2).
 *
 * A reader notes the epoch it began in. A call pushes its callback to a list by one
 * compare-and-swap. The server takes the list, begins an epoch, waits until no reader is in an
 * older one, and calls. Each barrier does the same in its own thread. Both hold the mutex until all
 * they took has been called, so a barrier returns after all callbacks that were pushed before.
 * fork(2) takes the mutex, too.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "soak.h"

#define READERS 16

static struct {
        uint64_t epoch;                 /* atomic; 0: not reading */
        uint64_t used;                  /* atomic */
        char rest[48];
} readers[READERS];

static uint64_t epoch = 1;              /* atomic */
static struct stook_rcu_head *pushed;   /* atomic; reserved[0]: the next, [1]: the callback */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread unsigned me = READERS;
static __thread bool calling;

void soak_rcu_register(void)
{
        unsigned i = 0;

        while (__atomic_exchange_n(&readers[i].used, 1, __ATOMIC_SEQ_CST))
                if (++i == READERS)
                        fail("too many readers");
        me = i;
}

void soak_rcu_unregister(void)
{
        unsigned i = me;

        me = READERS;
        __atomic_store_n(&readers[i].used, 0, __ATOMIC_SEQ_CST);
}

static void read_lock(void)
{
        uint64_t now = __atomic_load_n(&epoch, __ATOMIC_SEQ_CST);

        __atomic_store_n(&readers[me].epoch, now, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void read_unlock(void)
{
        __atomic_store_n(&readers[me].epoch, 0, __ATOMIC_RELEASE);
}

static void call(struct stook_rcu_head *head, void (*callback)(struct stook_rcu_head *))
{
        struct stook_rcu_head *first = __atomic_load_n(&pushed, __ATOMIC_RELAXED);

        __atomic_store_n(&head->reserved[1], (void *)(uintptr_t)callback, __ATOMIC_RELAXED);
        do {
                __atomic_store_n(&head->reserved[0], (void *)first, __ATOMIC_RELAXED);
        } while (!__atomic_compare_exchange_n(&pushed, &first, head, true, __ATOMIC_RELEASE,
                                              __ATOMIC_RELAXED));
}

static void wait_for_readers(void)
{
        uint64_t now = __atomic_add_fetch(&epoch, 1, __ATOMIC_SEQ_CST), in;

        for (unsigned i = 0; i < READERS; i++)
                while ((in = __atomic_load_n(&readers[i].epoch, __ATOMIC_SEQ_CST)) && in < now)
                        sched_yield();
}

static void serve_once(void)
{
        struct stook_rcu_head *taken = __atomic_exchange_n(&pushed, NULL, __ATOMIC_ACQUIRE);

        if (!taken)
                return;
        wait_for_readers();
        calling = true;
        while (taken) {
                struct stook_rcu_head *head = taken;
                void (*callback)(struct stook_rcu_head *) =
                        (void (*)(struct stook_rcu_head *))(uintptr_t)head->reserved[1];

                taken = head->reserved[0];
                callback(head);
        }
        calling = false;
}

static void barrier(void)
{
        pthread_mutex_lock(&lock);
        serve_once();
        pthread_mutex_unlock(&lock);
}

/* Readers that may have seen what was unlinked before have left. Not for readers. */
void soak_rcu_synchronize(void)
{
        wait_for_readers();
}

static int may_wait(void)
{
        return calling || (me < READERS && readers[me].epoch) ? 0 : 2;
}

static void before_fork(void)
{
        pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
        pthread_mutex_unlock(&lock);
}

/* The other readers are gone, and so is the server: barriers serve. */
static void in_child(void)
{
        memset(readers, 0, sizeof(readers));
        me = READERS;
        pthread_mutex_unlock(&lock);
}

static void *serve(void *unused)
{
        const struct timespec pause = { 0, 500000 };

        for (;;) {
                nanosleep(&pause, NULL);
                barrier();
        }
        return unused;
}

void soak_rcu_start(void)
{
        pthread_t thread;

        if (pthread_atfork(before_fork, after_fork, in_child) ||
            pthread_create(&thread, NULL, serve, NULL))
                fail("cannot start RCU");
        pthread_detach(thread);
}

const struct stook_rcu soak_rcu = {
        .ops_size = sizeof(soak_rcu), .call = call, .barrier = barrier, .read_lock = read_lock,
        .read_unlock = read_unlock, .may_wait = may_wait,
};
