/*
 * What this proves: stook_cache_free_rcu_nolock in handlers that a timer calls five thousand times
 * a second and thread, on top of reads, of allocations, of frees by RCU and of waits for readers.
 * Each handler replaces the object that all threads read, and frees the old one. No reader sees its
 * object change, each object is free once its readers have left, and all are counted: what was
 * allocated, what a free refused, and what is alive in the end.
 * With the library's own RCU, whose grace periods are real. The next signal is asked for by the
 * handler of the last one, so a slow machine has fewer, and the test goes on until all have come.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#define THREADS 2
#define EVERY_NS 200000                 /* 5 kHz */
#define SIGNALS 5000                    /* of each thread */

struct object {
        uint64_t serial;                /* atomic: another one in each life of the memory */
        uint64_t copy;                  /* atomic */
        char rest[48];
};

static struct stook_cache *cache;
static struct object *shared;           /* atomic: all threads read it */
static uint64_t serial;                 /* atomic */
static uint64_t made, freed, refused, failed, torn;     /* atomic, of all threads */
static uint32_t leaving;                /* atomic: threads that have seen their signals */

static __thread timer_t timer;
static __thread unsigned seen;          /* signals */

static void add(uint64_t *count)
{
        __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

static struct object *make(void)
{
        struct object *object = stook_cache_alloc_nolock(cache);
        uint64_t number = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);

        if (!object) {
                add(&failed);
                return NULL;
        }
        add(&made);
        __atomic_store_n(&object->copy, number, __ATOMIC_RELAXED);
        __atomic_store_n(&object->serial, number, __ATOMIC_RELAXED);
        return object;
}

/* The old one is freed by @free_rcu. */
static void replace(int (*free_rcu)(struct stook_cache *, void *))
{
        struct object *object = make(), *old;

        if (!object)
                return;
        old = __atomic_exchange_n(&shared, object, __ATOMIC_ACQ_REL);
        if (!free_rcu(cache, old))
                add(&freed);
        else
                add(&refused);
}

static void arm(void)
{
        struct itimerspec once = { .it_value = { .tv_nsec = EVERY_NS } };

        timer_settime(timer, 0, &once, NULL);
}

static void on_timer(int number)
{
        int saved = errno;

        (void)number;
        replace(stook_cache_free_rcu_nolock);
        if (++seen < SIGNALS)
                arm();
        errno = saved;
}

/* The object stays what it is until the section ends, whatever handlers and threads do. */
static void read_one(void)
{
        struct object *object;
        uint64_t number;

        stook_epoch_read_lock();
        object = __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
        number = __atomic_load_n(&object->serial, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < 200; i++)
                if (__atomic_load_n(&object->serial, __ATOMIC_RELAXED) != number ||
                    __atomic_load_n(&object->copy, __ATOMIC_RELAXED) != number)
                        add(&torn);
        stook_epoch_read_unlock();
}

static void *run(void *unused)
{
        struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
        volatile unsigned *signals = &seen;

        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
        arm();
        for (unsigned i = 0; *signals < SIGNALS; i++) {
                read_one();
                if (i % 4 == 0)
                        replace(stook_cache_free_rcu);
                if (i % 64 == 0)
                        stook_cache_rcu_barrier(cache);
                if (i % 256 == 0)
                        stook_cache_shrink(cache);
        }
        timer_delete(timer);
        __atomic_fetch_add(&leaving, 1, __ATOMIC_RELAXED);
        return unused;
}

static void all_are_counted(void **state)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };
        pthread_t thread[THREADS];

        (void)state;
        shared = make();
        assert_non_null(shared);
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, run, NULL), 0);
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(leaving, THREADS);
        assert_int_equal(torn, 0);
        assert_int_equal(failed, 0);
        assert_int_equal(refused, 0);           /* the hidden word has room for each */
        stook_cache_rcu_barrier(cache);
        assert_int_equal(stook_rcu_backlog(), 0);
        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        assert_int_equal(made, freed + 1);      /* and the one in use */
        assert_true(freed >= THREADS * SIGNALS);
        assert_int_equal(s.objects_live, 1);
        assert_int_equal(stook_cache_validate(cache), 0);
        stook_cache_free(cache, shared);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static int setup(void **state)
{
        struct stook_cache_args args = {
                .args_size = sizeof(args), .flags = STOOK_CACHE_RCU, .rcu = &stook_rcu_epoch,
        };
        struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };

        (void)state;
        cache = stook_cache_create("handlers", sizeof(struct object), &args);
        return !cache || sigaction(SIGRTMIN, &action, NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_are_counted),
        };

        return cmocka_run_group_tests(tests, setup, NULL);
}
