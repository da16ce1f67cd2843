/*
 * Proves, with each of liburcu's flavours:
 *  - what readers look at is not freed while they do, though two writers replace it all the time;
 *  - barriers and destroy leave nothing behind;
 *  - a child of fork frees what waited in its parent, and so does the parent;
 *  - a barrier in a callback, ours or that of other code, is reported and returns.
 *
 *      rcu_readers memb|mb|qsbr|bp        STOOK_RCU_ROUNDS: replacements by each writer, 20000
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <urcu/call-rcu.h>
#include <stook/stook.h>
#include "flavours.h"

static const struct flavour *f;

#define ALIVE UINT64_C(0x600d600d600d600d)

struct node {
        uint64_t alive;
        uint64_t a[6];
        uint64_t b[6];
};

static struct stook_cache *cache;
static struct node *shared[2];          /* one for each writer */
static bool stop;
static unsigned faults, looks;

static void *reader(void *unused)
{
        f->flavour->register_thread();
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                f->table->read_lock();
                for (unsigned i = 0; i < 2; i++) {
                        struct node *n = __atomic_load_n(&shared[i], __ATOMIC_CONSUME);

                        for (unsigned k = 0; k < 12; k++)
                                if (n->alive != ALIVE || n->a[k % 6] != n->b[k % 6])
                                        __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
                }
                f->table->read_unlock();
                f->table->quiescent();
                __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
        }
        f->flavour->unregister_thread();
        return unused;
}

static struct node *new_node(uint64_t x)
{
        struct node *n = stook_cache_alloc(cache);

        assert_non_null(n);
        /* A reader that still reads it will notice. */
        __atomic_store_n(&n->alive, 0, __ATOMIC_RELAXED);
        for (unsigned k = 0; k < 6; k++)
                n->a[k] = x, n->b[k] = ~x;
        for (unsigned k = 0; k < 6; k++)
                n->b[k] = x;
        __atomic_store_n(&n->alive, ALIVE, __ATOMIC_RELAXED);
        return n;
}

static unsigned rounds(void)
{
        const char *set = getenv("STOOK_RCU_ROUNDS");

        return set ? (unsigned)atoi(set) : 20000;
}

static void *writer(void *which)
{
        unsigned i = (unsigned)(uintptr_t)which, n = rounds();

        f->flavour->register_thread();
        for (unsigned k = 0; k < n; k++) {
                struct node *old = __atomic_exchange_n(&shared[i], new_node(k), __ATOMIC_ACQ_REL);
                int error;

                while ((error = k % 8 ? stook_cache_free_rcu(cache, old) :
                        stook_cache_free_rcu_nolock(cache, old)))
                        f->table->quiescent();
                f->table->quiescent();
                if (k % 4096 == 0)
                        stook_cache_rcu_barrier(cache);
        }
        f->flavour->unregister_thread();
        return NULL;
}

static struct stook_cache_stats stats_of(void)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        return stats;
}

static void test_readers_keep_what_they_look_at(void **state)
{
        pthread_t readers[2], writers[2];
        struct stook_cache_stats stats;

        (void)state;
        cache = stook_cache_create("nodes", sizeof(struct node), NULL);
        assert_non_null(cache);
        shared[0] = new_node(0);
        shared[1] = new_node(0);
        for (uintptr_t i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&readers[i], NULL, reader, NULL), 0);
        f->flavour->thread_offline();
        while (!__atomic_load_n(&looks, __ATOMIC_RELAXED))
                /* On a busy machine the writers may have ended before a reader has begun. */
                sched_yield();
        f->flavour->thread_online();
        for (uintptr_t i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&writers[i], NULL, writer, (void *)i), 0);
        f->flavour->thread_offline();
        for (unsigned i = 0; i < 2; i++)
                pthread_join(writers[i], NULL);
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < 2; i++)
                pthread_join(readers[i], NULL);
        f->flavour->thread_online();
        assert_int_equal(faults, 0);
        assert_true(looks > 0);
        stook_cache_rcu_barrier(cache);
        stats = stats_of();
        assert_int_equal(stats.objects_live, 2);
        assert_int_equal(stats.free_rcu_sheaf + stats.free_rcu_sheaf_fail, 2 * rounds());
        assert_int_equal(stook_cache_validate(cache), 0);
        stook_cache_free_rcu(cache, shared[0]);
        stook_cache_free_rcu(cache, shared[1]);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void test_a_child_frees_what_waited_in_its_parent(void **state)
{
        (void)state;
        for (unsigned round = 0; round < 5; round++) {
                int status;
                pid_t child;

                cache = stook_cache_create("forked", sizeof(struct node), NULL);
                assert_non_null(cache);
                for (unsigned i = 0; i < 1000; i++)
                        assert_int_equal(stook_cache_free_rcu(cache, new_node(i)), 0);
                child = fork();
                assert_true(child >= 0);
                if (!child) {
                        alarm(60);
                        stook_cache_free_rcu(cache, new_node(1));
                        stook_cache_rcu_barrier(cache);
                        _exit(stats_of().objects_live != 0 || stook_cache_validate(cache) ||
                              stook_cache_destroy(cache));
                }
                stook_cache_rcu_barrier(cache);
                assert_int_equal(stats_of().objects_live, 0);
                assert_int_equal(stook_cache_destroy(cache), 0);
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
        }
}

/* Without a barrier or another free objects get to their slabs all the same. */
static void test_a_sheaf_that_is_not_filled_is_submitted(void **state)
{
        uint64_t before;

        (void)state;
        cache = stook_cache_create("few", sizeof(struct node), NULL);
        assert_non_null(cache);
        f->flavour->thread_offline();
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(stook_cache_free_rcu(cache, new_node(i)), 0);
        before = stats_of().sheaf_flush;
        /* With several nodes some objects go another way: they are in no sheaf of the cache. */
        for (unsigned ms = 0; ms < 50000 &&
             stats_of().sheaf_flush + stats_of().free_rcu_sheaf_fail < before + 3; ms++)
                usleep(1000);
        assert_true(stats_of().sheaf_flush + stats_of().free_rcu_sheaf_fail >= before + 3);
        f->flavour->thread_online();
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static int reading;

static void *stalled_reader(void *unused)
{
        f->flavour->register_thread();
        f->table->read_lock();
        __atomic_store_n(&reading, 1, __ATOMIC_RELEASE);
        while (stook_rcu_backlog() < 10000 || __atomic_load_n(&reading, __ATOMIC_ACQUIRE) == 1)
                usleep(1000);
        f->table->read_unlock();
        f->flavour->unregister_thread();
        return unused;
}

/*
 * With the backlog full a free waits until the reader has left. If it may not wait, it is refused.
 */
static void test_a_full_backlog_waits_for_the_reader(void **state)
{
        struct node *n = NULL;
        pthread_t thread;
        int error = 0;

        (void)state;
        cache = stook_cache_create("stalled", sizeof(struct node), NULL);
        assert_non_null(cache);
        stook_rcu_barrier();
        assert_int_equal(pthread_create(&thread, NULL, stalled_reader, NULL), 0);
        while (!__atomic_load_n(&reading, __ATOMIC_ACQUIRE))
                usleep(1000);
        stook_rcu_set_limit(10000, 0);
        for (unsigned i = 0; i < 100000 && !error; i++)
                error = stook_cache_free_rcu(cache, n = new_node(i));
        assert_int_equal(error, -EAGAIN);
        stook_rcu_set_limit(10000, 50000);
        __atomic_store_n(&reading, 2, __ATOMIC_RELEASE);
        if (f->table == &stook_urcu_qsbr) {
                /* A thread that is online is a reader: it never waits there. */
                f->flavour->thread_offline();
                pthread_join(thread, NULL);
                f->flavour->thread_online();
                stook_cache_rcu_barrier(cache);
                assert_int_equal(stook_cache_free_rcu(cache, n), 0);
        } else {
                assert_int_equal(stook_cache_free_rcu(cache, n), 0);
                pthread_join(thread, NULL);
        }
        stook_rcu_set_limit(0, 1000);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* ---- a barrier where it cannot end ---- */

static unsigned reports, called;

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        if (report->fault == STOOK_FAULT_RCU)
                __atomic_fetch_add(&reports, 1, __ATOMIC_RELAXED);
}

static void stranger(struct rcu_head *head)
{
        (void)head;
        stook_rcu_barrier();
        __atomic_store_n(&called, 1, __ATOMIC_RELEASE);
}

static void test_a_barrier_in_a_callback_is_reported(void **state)
{
        static struct rcu_head head;

        (void)state;
        stook_on_report(note, NULL);
        f->flavour->update_call_rcu(&head, stranger);
        f->flavour->barrier();
        assert_int_equal(__atomic_load_n(&called, __ATOMIC_ACQUIRE), 1);
        assert_int_equal(__atomic_load_n(&reports, __ATOMIC_RELAXED), 1);
        if (f->table != &stook_urcu_qsbr) {
                f->table->read_lock();
                stook_rcu_barrier();
                f->table->read_unlock();
                assert_int_equal(__atomic_load_n(&reports, __ATOMIC_RELAXED), 2);
        }
        stook_on_report(NULL, NULL);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_readers_keep_what_they_look_at),
                cmocka_unit_test(test_a_child_frees_what_waited_in_its_parent),
                cmocka_unit_test(test_a_sheaf_that_is_not_filled_is_submitted),
                cmocka_unit_test(test_a_full_backlog_waits_for_the_reader),
                cmocka_unit_test(test_a_barrier_in_a_callback_is_reported),
        };
        int failed;

        f = flavour_of(argc > 1 ? argv[1] : NULL);
        if (!f || stook_rcu_use(f->table))
                return 2;
        f->flavour->register_thread();
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        f->flavour->unregister_thread();
        return failed;
}
