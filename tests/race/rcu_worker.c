/*
 * Proves of the thread behind libstook-urcu's tables, with each flavour:
 *  - callbacks are called once, in order, after a grace period;
 *  - also by a barrier, where no thread can be had, and by the thread alone, where there is no
 *  barrier;
 *  - also after a grace period that the program tells of: those given before it, and no others;
 *  - also from many threads at once.
 * What it does about forks: rcu_worker_forks.c.
 *
 *      rcu_worker memb|mb|qsbr|bp
 */
#include "asleep.h"
#include "rcu_worker.h"

/* This test is the first: there is no thread yet. */
static void test_without_a_thread_the_barrier_does_it(void **state)
{
        (void)state;
        refuse = N;
        call_all(all, N);
        assert_int_equal(refuse, 0);
        assert_int_equal(made, 0);
        assert_int_equal(called, 0);
        f->table->barrier();
        check_all();
}

/* Still without a thread: nobody else can have called them. */
static void test_what_the_program_tells_ends_them(void **state)
{
        static struct counted later;
        uint64_t first, second;

        (void)state;
        refuse = N + 1;
        call_all(all, N);
        first = stook_urcu_begin(f->table);
        later.number = N;
        f->table->call(&later.head, count);
        second = stook_urcu_begin(f->table);
        assert_int_equal(made, 0);
        assert_true(first && second > first);
        f->flavour->update_synchronize_rcu();
        stook_urcu_passed(f->table, 0);
        assert_int_equal(called, 0);
        stook_urcu_passed(f->table, first);
        assert_int_equal(called, N);            /* not the one that came later */
        stook_urcu_passed(f->table, first);
        assert_int_equal(later.calls, 0);
        stook_urcu_passed(f->table, second);
        stook_urcu_passed(f->table, first);
        assert_int_equal(later.calls, 1);
        assert_int_equal(called, N + 1);
        assert_int_equal(stook_urcu_begin(f->table), second);
        /* What was begun only, and told of never, is a barrier's. */
        refuse = N;
        call_all(all, N);
        assert_true(stook_urcu_begin(f->table) > second);
        f->table->barrier();
        check_all();
        assert_int_equal(stook_urcu_begin(&stook_rcu_epoch), 0);
        stook_urcu_passed(&stook_rcu_epoch, second);
}

static void test_the_thread_does_it_alone(void **state)
{
        static struct counted one;

        (void)state;
        call_all(all, N);
        assert_int_equal(made, 1);
        wait_for_all(N);
        check_all();
        called = 0;
        f->table->call(&one.head, count);
        wait_for_all(1);
        assert_int_equal(one.calls, 1);
        assert_int_equal(made, 1);
}

/* ---- a grace period it is ---- */

static int inside;                      /* atomic */
static unsigned waits;                  /* atomic: the first thread is about to */
static pid_t waiter;                    /* atomic */

static void *stay(void *unused)
{
        f->flavour->register_thread();
        f->table->read_lock();
        __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
        while (!__atomic_load_n(&waits, __ATOMIC_SEQ_CST))
                usleep(100);
        wait_until_asleep(&waiter, &called);
        /* No callback was called that was given after this reader came in. */
        inside = __atomic_load_n(&called, __ATOMIC_SEQ_CST) ? 3 : 2;
        f->table->read_unlock();
        f->flavour->unregister_thread();
        return unused;
}

static void test_readers_are_waited_for(void **state)
{
        pthread_t reader;

        (void)state;
        inside = 0;
        waits = 0;
        called = 0;
        f->flavour->thread_offline();
        assert_int_equal(pthread_create(&reader, NULL, stay, NULL), 0);
        while (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST))
                usleep(100);
        f->flavour->thread_online();
        call_all(all, N);
        tell_tid(&waiter);
        __atomic_store_n(&waits, 1, __ATOMIC_SEQ_CST);
        f->table->barrier();
        check_all();
        f->flavour->thread_offline();
        pthread_join(reader, NULL);
        f->flavour->thread_online();
        assert_int_equal(inside, 2);
}

/* ---- from many threads, with barriers between ---- */

enum { THREADS = 4, EACH = 5000 };
static struct counted theirs[THREADS][EACH];

static void *caller(void *mine)
{
        struct counted *c = mine;

        f->flavour->register_thread();
        for (unsigned i = 0; i < EACH; i++) {
                f->table->call(&c[i].head, count_only);
                if (i % 1024 == 500) {
                        f->table->barrier();
                        for (unsigned k = 0; k <= i; k++)
                                if (__atomic_load_n(&c[k].calls, __ATOMIC_RELAXED) != 1)
                                        return mine;
                }
                f->table->quiescent();
        }
        f->flavour->unregister_thread();
        return NULL;
}

/* Its grace periods end what the callers wait for, too. */
static int told_enough;                 /* atomic */

static void *tell(void *unused)
{
        f->flavour->register_thread();
        while (!__atomic_load_n(&told_enough, __ATOMIC_RELAXED)) {
                uint64_t begun = stook_urcu_begin(f->table);

                f->flavour->update_synchronize_rcu();
                stook_urcu_passed(f->table, begun);
        }
        f->flavour->unregister_thread();
        return unused;
}

static void test_barriers_of_many_threads(void **state)
{
        pthread_t threads[THREADS], teller;

        (void)state;
        called = 0;
        told_enough = 0;
        f->flavour->thread_offline();
        assert_int_equal(pthread_create(&teller, NULL, tell, NULL), 0);
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, caller, theirs[i]), 0);
        for (unsigned i = 0; i < THREADS; i++) {
                void *wrong;

                pthread_join(threads[i], &wrong);
                assert_null(wrong);
        }
        __atomic_store_n(&told_enough, 1, __ATOMIC_RELAXED);
        pthread_join(teller, NULL);
        f->flavour->thread_online();
        f->table->barrier();
        assert_int_equal(called, THREADS * EACH);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_without_a_thread_the_barrier_does_it),
                cmocka_unit_test(test_what_the_program_tells_ends_them),
                cmocka_unit_test(test_the_thread_does_it_alone),
                cmocka_unit_test(test_readers_are_waited_for),
                cmocka_unit_test(test_barriers_of_many_threads),
        };

        return run_worker(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
