/*
 * Proves: a process shows its figures through the file of STOOK_STATS as inspect/stats_page.h says:
 * records are drawn one for each process, forked and raw-cloned children included (I1); what is
 * read is whole at any moment, after a SIGKILL too (I2); publishing is paced by clock and by powers
 * of two; at the end the figures are exact and final. Fakes: the heap below, and the clock. Each
 * test is a process of its own. What is no file for figures: stats_page_files.c.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "gate/gate.h"
#include "stat/gone.h"
#include "stat/counter.h"
#include "unit/inspect/stats_page_test.h"

static void body_pace(void)
{
        struct stook_stats_record *r = record(0);

        stook_stats_page_start();
        CHECK(taken() == 1 && r->birth == STOOK_STATS_BORN_BY_EXEC && r->pid == (uint32_t)getpid());
        CHECK(r->parent == (uint32_t)getppid() && r->sequence == 0);
        /* the 1st, 2nd, 4th and 8th, though no time passes */
        for (unsigned i = 1; i <= 8; i++) {
                uint64_t before = r->sequence;

                stook_stats_page_tick();
                CHECK(r->sequence - before == ((i & (i - 1)) == 0));
        }
        CHECK(r->sequence == 4 && !strcmp(r->backend, "fake"));
        now_ms += STOOK_STATS_PAGE_MS - 1;
        stook_stats_page_tick();
        CHECK(r->sequence == 4);
        now_ms++;
        stook_stats_page_tick();
        CHECK(r->sequence == 5 && latest(r)->at_ms == now_ms && !latest(r)->final);
        stook_stats_page_tick();
        CHECK(r->sequence == 5);
        /* the end: always, final, with the numbers of that moment; then nothing more */
        set_all(3, 7);
        stook_stats_page_end();
        CHECK(r->sequence == 6 && latest(r)->final == 1 && latest(r)->caches == 3 &&
              latest(r)->taken_bytes == 12345);
        CHECK(latest(r)->cache[2].alloc_slab == 7 && latest(r)->cache[2].objects_cached == 3);
        CHECK(!strcmp(latest(r)->cache[0].name, "cache-1") &&
              latest(r)->cache[0].objects_live == 0);
        now_ms += 100;
        stook_stats_page_tick();
        stook_stats_page_end();
        CHECK(r->sequence == 6);
}

static void body_more(void)
{
        struct stook_gone one = { .name = "gone", .object_size = 40, .slab_bytes = 4096,
                                  .slabs_peak = 3 };
        const struct stook_stats_snapshot *s;

        stook_stats_page_start();
        CHECK(!strcmp(record(0)->variables, "STOOK_CAPACITY=1?2\nSTOOK_OTHER\n"));
        stook_stats_page_tick();
        CHECK(latest(record(0))->gone == 0 && latest(record(0))->groups == 0);
        CHECK(latest(record(0))->cache[0].slabs_peak == 5);

        one.counted[STOOK_STAT_alloc_slab] = 4;
        stook_gone_add(&one);
        one.slabs_peak = 2;
        stook_gone_add(&one);
        one.object_size = 48;           /* another one of that name */
        stook_gone_add(&one);
        stook_groups_bound = GROUPS;
        for (unsigned i = 2; i < GROUPS; i++)
                groups[i].state = STOOK_GROUP_LIVE;
        stook_stats_page_tick();
        s = latest(record(0));
        CHECK(s->caches == 3 && s->gone == 2 && s->gone_caches[0] == 2 && s->gone_caches[1] == 1);
        CHECK(!strcmp(s->cache[3].name, "gone") && s->cache[3].object_size == 40);
        CHECK(s->cache[3].slabs_peak == 3 && s->cache[3].alloc_slab == 8);
        CHECK(s->cache[3].slab_bytes == 4096 && s->cache[4].object_size == 48);
        CHECK(s->groups == STOOK_STATS_PAGE_GROUPS && s->groups_more == 22 - s->groups);
        CHECK(s->group_list[0].usage_bytes == 1111);
        /* Many names: the last entry takes them. */
        for (unsigned i = 0; i < 2 * STOOK_GONE_MAX; i++) {
                one.object_size = 1000 + i;
                stook_gone_add(&one);
        }
        stook_stats_page_end();
        s = latest(record(0));
        CHECK(s->gone == STOOK_GONE_MAX && s->gone_caches[STOOK_GONE_MAX - 1] ==
              2 * STOOK_GONE_MAX - (STOOK_GONE_MAX - 3));
        CHECK(!strcmp(s->cache[3 + STOOK_GONE_MAX - 1].name, "(others)"));
}

static void test_groups_variables_and_destroyed_caches(void **state)
{
        (void)state;
        in_process(body_more);
}

static void test_pace_and_end(void **state)
{
        (void)state;
        in_process(body_pace);
}

static void body_children(void)
{
        int status;
        pid_t pid;

        stook_stats_page_start();
        stook_stats_page_tick();
        CHECK(record(0)->sequence == 1);

        pid = fork();           /* by the fork handler, without any call */
        if (!pid)
                _exit(0);
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        CHECK(taken() == 2 && record(1)->pid == (uint32_t)pid &&
              record(1)->birth == STOOK_STATS_BORN_BY_FORK);
        CHECK(record(1)->parent == (uint32_t)getpid() && record(1)->sequence == 0);

        pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);   /* by its first slow call */
        if (!pid) {
                stook_stats_page_tick();
                stook_stats_page_end();
                _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        CHECK(taken() == 3 && record(2)->pid == (uint32_t)pid &&
              record(2)->birth == STOOK_STATS_BORN_BY_FORK);
        CHECK(record(2)->sequence == 2 && latest(record(2))->final);
        CHECK(record(0)->sequence == 1 && record(0)->pid == (uint32_t)getpid());

        pid = fork();           /* room was for three: it goes without */
        if (!pid) {
                stook_stats_page_tick();
                stook_stats_page_end();
                _exit(stook_stats_page_hook != NULL);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        CHECK(taken() == 4);
}

static void test_children_draw_their_own(void **state)
{
        (void)state;
        in_process(body_children);
}

/* Publishes as fast as it can, each snapshot with one number in all of its counters. */
static void publish_for_ever(void)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);       /* a failed check must not leave it behind */
        stook_stats_page_start();
        for (uint64_t k = 1;; k++) {
                set_all(3, k);
                now_ms += STOOK_STATS_PAGE_MS;
                stook_stats_page_tick();
        }
}

static bool whole(const struct stook_stats_snapshot *s)
{
        for (unsigned i = 0; i < s->caches; i++)
                if (s->cache[i].alloc_slab != s->cache[0].alloc_slab ||
                    s->cache[i].barn_put != s->cache[0].alloc_slab)
                        return false;
        return s->caches == 3;
}

static void body_killed(void)
{
        static struct stook_stats_snapshot copy;
        unsigned live_reads = 0, kills_seen = 0;

        for (unsigned i = 0; i < 30; i++) {
                struct stook_stats_record *r = record(i);
                struct timespec pause = { .tv_nsec = 2000000 + (long)i * 77777 };
                int status;
                pid_t pid = fork();

                if (!pid)
                        publish_for_ever();
                while (__atomic_load_n(&r->sequence, __ATOMIC_ACQUIRE) < 3)
                        ;
                for (unsigned k = 0; k < 2000; k++) {   /* live, as M1 says */
                        uint64_t sequence = __atomic_load_n(&r->sequence, __ATOMIC_ACQUIRE);

                        memcpy(&copy, (const void *)&r->snapshot[sequence & 1], sizeof copy);
                        __atomic_thread_fence(__ATOMIC_ACQUIRE);
                        if (__atomic_load_n(&r->sequence, __ATOMIC_RELAXED) != sequence)
                                continue;
                        CHECK(whole(&copy));
                        live_reads++;
                }
                nanosleep(&pause, NULL);
                kill(pid, SIGKILL);
                CHECK(waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGKILL);
                CHECK(whole(latest(r)));
                /* it did not stop at one place: the other half was often being written */
                kills_seen += latest(r)->cache[0].alloc_slab > 0;
        }
        CHECK(kills_seen == 30 && live_reads > 0);
}

static void test_whole_when_killed(void **state)
{
        (void)state;
        in_process(body_killed);
}

static void body_many(void)
{
        bound = STOOK_STATS_PAGE_CACHES + 11;
        stook_stats_page_start();
        stook_stats_page_end();
        CHECK(latest(record(0))->caches == STOOK_STATS_PAGE_CACHES &&
              latest(record(0))->caches_more == 10);
        CHECK(latest(record(0))->cache[STOOK_STATS_PAGE_CACHES - 1].alloc_slab == 1);
}

static void test_more_caches_than_room(void **state)
{
        (void)state;
        in_process(body_many);
}

static void body_group(void)
{
        stook_group_of_process = 7;
        stook_stats_page_start();
        stook_stats_page_end();
        const struct stook_group_stats *g = &latest(record(0))->group;

        CHECK(g->stats_size == sizeof *g && g->usage_bytes == 1111 && g->refusals == 22);
}

static void test_group(void **state)
{
        (void)state;
        in_process(body_group);
}

static void body_no_group(void)
{
        stook_stats_page_start();
        stook_stats_page_end();
        CHECK(record(0)->sequence && !latest(record(0))->group.stats_size);
}

static void test_no_group(void **state)
{
        (void)state;
        in_process(body_no_group);
}

static void body_unused_caches(void)
{
        *stook_counter_at(&stook_caches[2].counters, STOOK_STAT_alloc_slab) = 0;
        stook_caches[3].state = STOOK_CACHE_FREE;
        stook_stats_page_start();
        stook_stats_page_end();
        CHECK(latest(record(0))->caches == 1 && latest(record(0))->caches_more == 0);
}

static void test_unused_caches_are_left_out(void **state)
{
        (void)state;
        in_process(body_unused_caches);
}

static void body_not_started(void)
{
        stook_gate_state = STOOK_GATE_CLOSED;
        stook_stats_page_start();
        stook_stats_page_end();
        CHECK(latest(record(0))->final && latest(record(0))->caches == 0 &&
              latest(record(0))->taken_bytes == 0);
}

static void test_heap_never_started(void **state)
{
        (void)state;
        in_process(body_not_started);
}

static int set_up_large(void **state)
{
        (void)state;
        return set_up_records(64);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_pace_and_end, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_groups_variables_and_destroyed_caches, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_children_draw_their_own, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_whole_when_killed, set_up_large, tear_down),
                cmocka_unit_test_setup_teardown(test_more_caches_than_room, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_group, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_no_group, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_unused_caches_are_left_out, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_heap_never_started, set_up, tear_down),
        };

        make_heap();
        return cmocka_run_group_tests_name("figures through a file", tests, NULL, NULL);
}
