/*
 * What this proves: mistakes that the kernel's sheaves had once, and their relatives here, are not
 * made. Each test bears its number in this list.
 *
 *   1  objects of a refill that fell short are lost            here; tests/unit/slot/slot_miss.c,
 *                                                              tests/oom/pages.c
 *   2  a barrier of one cache does not wait for callbacks      here; tests/unit/rcu/barrier.c
 *   3  a refill waits for the list locks of other nodes        here, on made-up nodes
 *   4  no refill for callers that cannot wait; CPUs of nodes
 *      without memory have no barn                             here, on made-up nodes
 *   5  a flush that could not have the slot did nothing, and
 *      destroy saw objects left                                here; tests/unit/evacuate/evacuate.c
 *                                                              (a holder that never returns)
 *   6  overflow of per-object extension counts                 there are none
 *   7  making a sheaf allocates from a cache, which makes one  here
 *   8  a free wakes work that takes the caller's own locks     here; tests/unit/cache/nolock.c
 *   9  no-wait calls ask for random numbers, which wait        here
 *  10  two caches' locks nested, a false alarm                 no lock nests:
 *                                                              tests/unit/base/lock.c
 *  11  "cannot wait" inferred: sheaves are never filled        here
 *  12  leftover slabs put to the list's head                   tests/unit/slab/slab_partial.c,
 *                                                              slab_state.c
 *  13  slower fork and exec, for two layers became one         no mistake, a figure: bench/
 *  14  bulk calls counted wrongly                              here; tests/unit/stat/identities.c
 *  15  objects in sheaves taken for leaks at destroy           here
 *  16  migration while a sheaf is fetched                      tests/unit/slot/slot_pair.c,
 *                                                              each row of the table, and at random
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "cache/cache.h"
#include "os/os.h"
#include "pages/span.h"
#include "slot/slot_regions.h"

#define ARGS(...) \
        (&(struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args), __VA_ARGS__ })

static unsigned reports;

static void on_report(const struct stook_report *report, void *data)
{
        (void)data;
        reports += strstr(report->text, "still allocated") != NULL;
}

static struct stook_cache_stats stats_of(struct stook_cache *cache)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        return s;
}

static void trap_1_leak_on_partial_refill(void **state)
{
        bool fell_short = false;

        (void)state;
        stook_trim(0);
        /*
         * Slabs of few objects, so that a sheaf of 28 takes several, and each of their pages can
         * fail.
         */
        for (long n = 1; n <= 12; n++) {
                struct stook_cache *cache = stook_cache_create("trap 1", 4096,
                                                               ARGS(.sheaf_capacity = 60));
                struct stook_cache_stats s;
                void *objects[200];
                int got = 0;

                stook_inject.span_fail_from = n;
                while (got < 200 && (objects[got] = stook_cache_alloc(cache)))
                        got++;
                stook_inject.span_fail_from = 0;
                s = stats_of(cache);
                fell_short |= s.alloc_slowpath > 0 &&
                              s.slabs > 0;      /* one by one, what no refill could have */
                while (got)
                        stook_cache_free(cache, objects[--got]);
                assert_int_equal(stook_cache_validate(cache), 0);
                assert_int_equal(stook_cache_shrink(cache), 0);
                assert_int_equal(stats_of(cache).slabs, 0);
                assert_int_equal(stats_of(cache).sheaves, 0);
                assert_int_equal(stook_cache_destroy(cache), 0);
        }
        assert_true(fell_short);
}

/* ---- an RCU with grace periods by hand ---- */

static struct stook_rcu_head *waiting[1000];
static void (*waiting_done[1000])(struct stook_rcu_head *);
static unsigned n_waiting;

static void rcu_call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *))
{
        assert_true(n_waiting < 1000);
        waiting[n_waiting] = head;
        waiting_done[n_waiting++] = done;
}

static void rcu_barrier(void)
{
        while (n_waiting) {
                n_waiting--;
                waiting_done[n_waiting](waiting[n_waiting]);
        }
}

static const struct stook_rcu by_hand = { .ops_size = sizeof(by_hand),
                                          .call = rcu_call,
                                          .barrier = rcu_barrier };

static void trap_2_a_barrier_of_one_cache_waits_for_callbacks(void **state)
{
        struct stook_cache *cache = stook_cache_create("trap 2", 64, ARGS(.rcu = &by_hand));
        void *objects[500];

        (void)state;
        for (int round = 0; round < 2; round++) {
                for (int i = 0; i < 500; i++)
                        assert_non_null(objects[i] = stook_cache_alloc(cache));
                for (int i = 0; i < 500; i++)
                        assert_int_equal(stook_cache_free_rcu(cache, objects[i]), 0);
                assert_true(n_waiting > 0); /* full sheaves are in the implementation's hands */
                if (round == 0) {
                        stook_cache_rcu_barrier(cache);
                        assert_int_equal(stook_cache_shrink(cache), 0); /* every object is back */
                } else {
                        assert_int_equal(stook_cache_destroy(cache), 0);
                }
                assert_int_equal(n_waiting, 0);         /* nothing calls back into what is gone */
        }
}

/* ---- locks of other nodes ---- */

static unsigned sleeps;

static void count_sleep(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value, (void)ns;
        sleeps++;
}

static void wake_none(uint32_t *word)
{
        (void)word;
}

static void *hold_all_but_home_of_0(void *cache)
{
        struct stook_slabs *slabs = &((struct stook_cache *)cache)->slabs;

        for (unsigned node = 0; node < stook_os_node_count(); node++)
                if (node != stook_os_node_home(0) && !stook_lock_try(&slabs->node[node].lock))
                        return NULL;
        return cache;
}

static void trap_3_a_refill_only_tries_the_locks_of_other_nodes(void **state)
{
        static const struct stook_lock_sleep counted = { count_sleep, wake_none };
        static const struct stook_lock_sleep real = {
                stook_os_futex_wait, stook_os_futex_wake };
        struct stook_cache *cache;
        void *objects[64], *held;
        pthread_t holder;

        (void)state;
        if (stook_os_node_count() < 2)
                skip();
        cache = stook_cache_create("trap 3", 64, NULL);
        for (unsigned node = 0; node < stook_os_node_count(); node++) {
                bool other = stook_os_node_has_memory(node) && node != stook_os_node_home(0);
                size_t n = other ? stook_slab_fill(&cache->slabs, node, 64, objects,
                                                   STOOK_FILL_THISNODE)
                                 : 0;

                stook_slab_drain(&cache->slabs, n, objects);            /* something on each list */
        }
        assert_int_equal(pthread_create(&holder, NULL, hold_all_but_home_of_0, cache), 0);
        pthread_join(holder, &held);
        assert_ptr_equal(held, cache);
        stook_lock_set_sleep(&counted);
        stook_inject.span_fail_from = 1;               /* so that it looks everywhere */
        assert_int_equal(stook_slab_fill(&cache->slabs, 0, 64, objects, 0), 0);
        stook_inject.span_fail_from = 0;
        stook_lock_set_sleep(&real);
        assert_int_equal(sleeps, 0);
        for (unsigned node = 0; node < stook_os_node_count(); node++)
                stook_lock_reset(&cache->slabs.node[node].lock);
        assert_int_equal(stook_slab_fill(&cache->slabs, 0, 64, objects, 0), 64);
        stook_slab_drain(&cache->slabs, 64, objects);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void trap_4_callers_that_cannot_wait_get_sheaves(void **state)
{
        struct stook_cache *cache = stook_cache_create("trap 4", 64, NULL);
        void *objects[1000];
        struct stook_cache_stats s;

        (void)state;
        for (int i = 0; i < 1000; i++)
                objects[i] = i & 1 ? stook_cache_alloc_node(cache, STOOK_ALLOC_NOWAIT, -1)
                                   : stook_cache_alloc_nolock(cache);
        s = stats_of(cache);
        assert_true(s.alloc_fastpath > 900);            /* but for sections that were aborted */
        assert_true(s.sheaf_refill > 900);
        for (int i = 0; i < 1000; i++)
                stook_cache_free_nolock(cache, objects[i]);
        s = stats_of(cache);
        assert_true(s.free_fastpath > 900);
        assert_true(s.barn_put > 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* ---- a slot that is not to be had ---- */

static void hold_locked_slots(bool hold)
{
        for (unsigned slot = stook_regions.rseq_slots; slot < stook_slots_bound(); slot++)
                if (stook_slots_head(slot))
                        __atomic_store_n(&stook_slots_head(slot)->holder, hold, __ATOMIC_RELEASE);
}

static void *let_go_soon(void *nothing)
{
        usleep(20000);
        hold_locked_slots(false);
        return nothing;
}

static void trap_5_a_flush_that_cannot_have_the_slot_says_so(void **state)
{
        struct stook_cache *cache = stook_cache_create("trap 5", 64, NULL);
        pthread_t thread;
        int answer;

        (void)state;
        stook_cache_free(cache, stook_cache_alloc(cache));
        stook_on_report(on_report, NULL);
        reports = 0;
        hold_locked_slots(true);
        answer = stook_cache_destroy(cache);
        assert_int_equal(reports, 0);                   /* nothing was left: it was not looked at */
        if (stook_slot_ops() == &stook_section_locked)
                assert_int_equal(answer, -16 /* EBUSY */);
        hold_locked_slots(false);
        if (answer) {
                /* And it waits for a holder that does return. */
                hold_locked_slots(true);
                assert_int_equal(pthread_create(&thread, NULL, let_go_soon, NULL), 0);
                answer = stook_cache_destroy(cache);
                pthread_join(thread, NULL);
                if (answer) /* not within its patience on a busy machine */
                        answer = stook_cache_destroy(cache);
        }
        assert_int_equal(answer, 0);
        assert_int_equal(reports, 0);
        stook_on_report(NULL, NULL);
}

/* ---- */

static int add_up(struct stook_cache *cache, void *sum)
{
        struct stook_cache_stats s = stats_of(cache);

        *(uint64_t *)sum += s.alloc_fastpath + s.alloc_slowpath + s.sheaf_refill;
        return 0;
}

static void trap_7_sheaves_come_from_no_cache(void **state)
{
        struct stook_cache *cache = stook_cache_create("trap 7", 32, ARGS(.sheaf_capacity = 500));
        static void *objects[20000];
        uint64_t before = 0, after = 0, own;

        (void)state;
        stook_cache_for_each(add_up, &before);
        for (int i = 0; i < 20000; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        stook_cache_for_each(add_up, &after);
        own = stats_of(cache).alloc_fastpath + stats_of(cache).alloc_slowpath +
              stats_of(cache).sheaf_refill;
        assert_true(stats_of(cache).sheaf_alloc > 0);
        assert_int_equal(after - before, own);          /* nothing was allocated for it anywhere */
        stook_cache_free_bulk(cache, 20000, objects);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* Exit status of a child; 1000 + signal for a killed one. */
static int in_child(void (*body)(void))
{
        pid_t child = fork();
        int   status;

        assert_true(child >= 0);
        if (!child) {
                setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
                body();
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                skip();
        return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

/* A new slot's line may be dumped: a free on another CPU says so, and that is no purging. */
static void kill_for(const int *numbers, unsigned count)
{
        struct sock_filter filter[16] = {
                LOAD(nr),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 4),
                LOAD(args[2]),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_DODUMP, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                LOAD(nr),
        };
        struct sock_fprog program = { .filter = filter };
        unsigned short    n = 6;

        for (unsigned i = 0; i < count; i++) {
                filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                           (uint32_t)numbers[i], 0, 1);
                filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                           SECCOMP_RET_KILL_PROCESS);
        }
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        program.len = n;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
            syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
                _exit(77);
}

static struct stook_cache *shared;
static void *many[30000];

static bool on_top_of_a_holder;

/* On top of a lock's holder, as a handler: nothing may sleep, and purging is left to others. */
static void free_all_and_die_of_purging(void)
{
        static const int others_work[] = { SYS_futex, SYS_madvise, SYS_munmap };

        kill_for(others_work, 3);
        if (on_top_of_a_holder)
                stook_lock_raise(0);         /* this frame calls on */
        for (int i = 0; i < 30000; i++) {
                stook_cache_free(shared, many[i]);
                if (i % 3000 == 0)
                        usleep(3000);                   /* purging is due (STOOK_DECAY_MS=1) */
        }
}

static void trap_8_a_free_starts_no_work_that_takes_locks(void **state)
{
        (void)state;
        shared = stook_cache_create("trap 8", 256, NULL);
        for (int i = 0; i < 30000; i++)
                assert_non_null(many[i] = stook_cache_alloc(shared));
        on_top_of_a_holder = true;
        assert_int_equal(in_child(free_all_and_die_of_purging), 0);
        on_top_of_a_holder = false;
        assert_int_equal(in_child(free_all_and_die_of_purging),
                         1000 + SIGSYS); /* or it proves nothing */
        stook_cache_free_bulk(shared, 30000, many);
        assert_int_equal(stook_cache_destroy(shared), 0);
}

static void alloc_at_random(void)
{
        static const int random_numbers[] = { SYS_getrandom, SYS_openat, SYS_read, SYS_futex };

        kill_for(random_numbers, 4);
        for (int i = 0; i < 30000; i++)
                if (!stook_cache_alloc_nolock(shared))
                        _exit(1);
}

static void trap_9_nolock_asks_for_no_random_numbers(void **state)
{
        (void)state;
        shared = stook_cache_create("trap 9", 64, ARGS(.flags = STOOK_CACHE_RANDOM_ORDER));
        assert_int_equal(in_child(alloc_at_random), 0);
        assert_int_equal(stook_cache_destroy(shared), 0);
}

static void trap_11_the_first_call_of_all_fills_a_sheaf(void **state)
{
        struct stook_cache *cache = stook_cache_create("trap 11", 64, NULL);
        void *object = stook_cache_alloc(cache);

        (void)state;
        assert_true(stats_of(cache).sheaf_refill > 1);          /* the first one is small */
        assert_int_equal(stats_of(cache).alloc_slowpath, 0);
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void trap_14_bulk_calls_count_objects(void **state)
{
        struct stook_cache *cache = stook_cache_create("trap 14", 64, NULL);
        struct stook_cache_stats s;
        static void *objects[3000];
        uint64_t sum = 0;

        (void)state;
        for (size_t n = 1; n <= 3000; n = 2 * n + 1) {
                assert_int_equal(stook_cache_alloc_bulk(cache, 0, n, objects), 0);
                sum += n;
                s = stats_of(cache);
                assert_int_equal(s.alloc_fastpath + s.alloc_slowpath, sum);
                stook_cache_free_bulk(n & 2 ? cache : NULL, n, objects);
                s = stats_of(cache);
                assert_int_equal(s.free_fastpath + s.free_slowpath, sum);
        }
        assert_true(s.alloc_fastpath && s.alloc_slowpath && s.free_fastpath && s.free_slowpath);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void trap_15_objects_in_sheaves_are_no_leak(void **state)
{
        struct stook_cache *cache = stook_cache_create("trap 15", 64, NULL);
        void *objects[2000];

        (void)state;
        for (int i = 0; i < 2000; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        for (int i = 0; i < 2000; i++)
                stook_cache_free(cache, objects[i]);
        stook_sheaf_return(cache, stook_sheaf_prefill(cache, 0, 40));
        assert_true(stats_of(cache).objects_cached > 100);
        assert_true(stook_slabs_objects_out(&cache->slabs) > 100);      /* as the slabs see it */
        stook_on_report(on_report, NULL);
        reports = 0;
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(reports, 0);
        stook_on_report(NULL, NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(trap_11_the_first_call_of_all_fills_a_sheaf),
                cmocka_unit_test(trap_1_leak_on_partial_refill),
                cmocka_unit_test(trap_2_a_barrier_of_one_cache_waits_for_callbacks),
                cmocka_unit_test(trap_3_a_refill_only_tries_the_locks_of_other_nodes),
                cmocka_unit_test(trap_4_callers_that_cannot_wait_get_sheaves),
                cmocka_unit_test(trap_5_a_flush_that_cannot_have_the_slot_says_so),
                cmocka_unit_test(trap_7_sheaves_come_from_no_cache),
                cmocka_unit_test(trap_8_a_free_starts_no_work_that_takes_locks),
                cmocka_unit_test(trap_9_nolock_asks_for_no_random_numbers),
                cmocka_unit_test(trap_14_bulk_calls_count_objects),
                cmocka_unit_test(trap_15_objects_in_sheaves_are_no_leak),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
