/*
 * Proves: out of memory is NULL, and nothing is lost: with the n-th commit failing for every n
 * until all goes well, under RLIMIT_AS, and with the lock held by a call that never returns. A
 * limit that is set late gets what was reserved back, unless a growth is under way. Where the
 * system refuses to move pages, and has unmapped their target by then, the content is copied to
 * another place, and what other threads mapped into the hole meanwhile is left alone.
 */
#include "pages_env.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "base/inject.h"
#include "base/lock.h"
#include "pages/pages_node.h"
#include "pages/source.h"

/* A round that wants fresh memory in all ways there are; the number of requests that failed. */
static unsigned round_of_requests(void)
{
        struct stook_span *span[40] = { NULL };
        size_t page = stook_os_page_bytes();
        unsigned failed = 0;

        for (unsigned i = 0; i < 40; i++) {
                size_t bytes = i % 8 == 7 ? (size_t)33 << 20 : (size_t)(i + 1) * 150 << 10;

                span[i] = stook_span_take(0, bytes, i % 5 ? 0 : 1 << 20);
                if (!span[i]) {
                        failed++;
                        continue;
                }
                span[i]->kind = STOOK_SPAN_LARGE;
                ((char *)span[i]->start)[span[i]->bytes - 1] = 7;
                if (i % 3 == 0 && !stook_span_resize(span[i], bytes * 2)) {
                        struct stook_span *to = stook_span_move(span[i], bytes * 2);

                        if (to)
                                span[i] = to;
                        else
                                failed++;
                        assert_int_equal(
                                ((char *)span[i]->start)[((bytes + page - 1) & -page) - 1], 7);
                }
        }
        assert_sound();
        for (unsigned i = 0; i < 40; i++)
                if (span[i])
                        stook_span_give(span[i]);
        assert_sound();
        return failed;
}

static size_t taken(void)
{
        struct stook_pages_stats stats;

        stook_pages_stats(&stats);
        return stats.taken_bytes;
}

/* Each in a child: memory that was committed once would hide later failures. */
static int in_a_child(int (*run)(long), long n)
{
        pid_t child = fork();
        int status;

        assert_true(child >= 0);
        if (!child)
                _exit(run(n));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static int fail_nth(long n)
{
        unsigned failed;

        stook_inject.commit_fail_from = n;
        failed = round_of_requests();
        stook_inject.commit_fail_from = 0;
        if (taken() || stook_pages_validate(print_fault) || round_of_requests())
                return 3;
        return failed ? 1 : 0;
}

static void nth_commit_fails(void **state)
{
        long n = 1, failures = 0;
        int got;

        (void)state;
        do {
                got = in_a_child(fail_nth, n++);
                assert_true(got != 3);
                failures += got;
        } while (got && n < 2000);
        printf("%ld rounds with failures until all went well\n", failures);
        assert_true(failures > 0 && n < 2000);
}

static int limited(long mib)
{
        struct rlimit limit = { (rlim_t)mib << 20, (rlim_t)mib << 20 };
        struct stook_span *span[4096];
        unsigned got = 0;

        if (setrlimit(RLIMIT_AS, &limit) || !stook_pages_start() || !stook_ranges_limited())
                return 3;
        while (got < 4096 && (span[got] = stook_span_take(0, 256 << 10, 0)) != NULL) {
                memset((void *)span[got]->start, 1, 256 << 10);
                got++;
        }
        /* most of the limit is to be had */
        if (got * 256 / 1024 < (unsigned)mib / 2 || got == 4096)
                return 2;
        if (stook_pages_validate(print_fault))
                return 3;
        for (unsigned i = 0; i < got; i++)
                stook_span_give(span[i]);
        return stook_pages_validate(print_fault) || taken() ? 3 : 0;
}

static void address_limit_is_survived(void **state)
{
        (void)state;
        assert_int_equal(in_a_child(limited, 128), 0);
        assert_int_equal(in_a_child(limited, 512), 0);
}

/* Threads ask at once for what cannot be had: that uses up none of the few ranges there may be. */
static void *ask_for_too_much(void *got)
{
        for (unsigned i = 0; i < 2000; i++)
                if (stook_span_take(0, (size_t)4 << 30, 0))
                        *(bool *)got = true;
        return NULL;
}

static int lifted(long mib)
{
        struct rlimit limit;
        pthread_t threads[4];
        bool got = false;

        getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = (rlim_t)mib << 20;
        if (setrlimit(RLIMIT_AS, &limit) || !stook_pages_start())
                return 1;
        for (unsigned i = 0; i < 4; i++)
                if (pthread_create(&threads[i], NULL, ask_for_too_much, &got))
                        return 2;
        for (unsigned i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        if (got || stook_ranges_count() > 2)
                return 3;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_AS, &limit))
                return 4;
        /* Whole huge pages, with what a range leaves out at its start, make ranges of their own. */
        for (unsigned i = 0; i < 20; i++)
                if (!stook_span_take(0, (size_t)3 << 30, (size_t)4096 << i % 12))
                        return 5;
        return 0;
}

/* A thread inside a growth, which may never come back, keeps the reservation. */
static int set_late(long mib)
{
        struct rlimit limit;
        size_t before;

        if (!stook_pages_start() || stook_ranges_limited() || !stook_span_take(0, 1 << 20, 0))
                return 1;
        before = stook_ranges_reserved();
        getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = (rlim_t)mib << 20;
        if (setrlimit(RLIMIT_AS, &limit))
                return 2;
        stook_space_begin();
        stook_space_limit_changed();
        if (stook_ranges_reserved() != before || !stook_ranges_limited())
                return 3;
        stook_space_end();
        stook_space_limit_changed();
        if (stook_ranges_reserved() > (size_t)mib << 20 || stook_pages_validate(print_fault))
                return 4;
        /* The first range has room, of which the map is there, and then pieces come. */
        for (unsigned i = 0; i < 40; i++)
                if (!stook_span_take(0, (size_t)2 << 20, 0))
                        return 5;
        if (stook_ranges_count() < 2 || stook_pages_validate(print_fault))
                return 6;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_AS, &limit))
                return 7;
        stook_space_limit_changed();
        return stook_span_take(0, (size_t)2 << 30, 0) ? 0 : 8;
}

static void a_late_limit_gives_back(void **state)
{
        (void)state;
        assert_int_equal(in_a_child(set_late, 1024), 0);
}

static void a_lifted_limit_is_used(void **state)
{
        (void)state;
        assert_int_equal(in_a_child(lifted, 1024), 0);
}

/* ---- a move that is refused when its target is gone ---- */

#define MOVERS      4
#define MOVED_BYTES ((size_t)4 << 20)
#define STEPS       8

static char *landed[MOVERS];
static size_t landed_bytes;
static unsigned refusals;

static long refuse_move(void *from, void *to, size_t bytes)
{
        unsigned n = __atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED);

        (void)from;
        /* Another thread's mapping takes the hole: one call does as well. */
        if (n >= MOVERS || mmap(to, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != to)
                _exit(4);
        memset(to, 0x77, bytes);
        landed[n] = to;
        landed_bytes = bytes;
        return -ENOMEM;
}

static void *grow_in_steps(void *ok)
{
        struct stook_span *span = stook_span_take(0, MOVED_BYTES, 0);
        size_t page = stook_os_page_bytes();
        bool fine = span != NULL;

        if (span)
                memset((void *)span->start, 0x5a, MOVED_BYTES);
        for (size_t i = 1; i <= STEPS && fine; i++) {
                struct stook_span *to = stook_span_move(span, MOVED_BYTES + i * page);

                fine = to != NULL;
                span = to ? to : span;
                for (size_t at = 0; at < MOVED_BYTES; at++)
                        fine &= ((char *)span->start)[at] == 0x5a;
                ((char *)span->start)[span->bytes - 1] = 7;
        }
        if (span)
                stook_span_give(span);
        *(bool *)ok = fine;
        return NULL;
}

static int move_refused(long threads)
{
        pthread_t thread[MOVERS];
        bool fine[MOVERS];

        stook_inject.move = refuse_move;
        for (long i = 0; i < threads; i++)
                if (pthread_create(&thread[i], NULL, grow_in_steps, &fine[i]))
                        return 2;
        for (long i = 0; i < threads; i++)
                pthread_join(thread[i], NULL);
        for (long i = 0; i < threads; i++)
                if (!fine[i])
                        return 5;
        /* Each thread may have begun a move before one was refused, and none does afterwards. */
        if (!refusals || refusals > (unsigned)threads)
                return 6;
        for (unsigned i = 0; i < refusals; i++)
                for (size_t at = 0; at < landed_bytes; at++)
                        if (landed[i][at] != 0x77)
                                return 7;
        return taken() || stook_pages_validate(print_fault) || round_of_requests() ? 3 : 0;
}

static void a_refused_move_loses_nothing(void **state)
{
        (void)state;
        assert_int_equal(in_a_child(move_refused, 1), 0);
        assert_int_equal(in_a_child(move_refused, MOVERS), 0);
}

static void *work_without_the_lock(void *arg)
{
        (void)arg;
        for (unsigned i = 0; i < 200; i++) {
                struct stook_span *a = stook_span_take(0, 64 << 10, 0),
                                  *b = stook_span_take(0, 200 << 10, 1 << 16);

                assert_non_null(a);
                assert_non_null(b);
                memset((void *)a->start, 1, a->bytes);
                stook_span_give(a);
                stook_span_give(b);
        }
        return NULL;
}

static void holder_that_never_returns(void **state)
{
        pthread_t thread;

        (void)state;
        assert_true(stook_lock_take(&stook_pages_nodes[0].lock));
        work_without_the_lock(NULL);                    /* as a handler on top of the holder */
        assert_int_equal(pthread_create(&thread, NULL, work_without_the_lock, NULL), 0);
        /* Another thread: waits, boundedly, and goes on. */
        pthread_join(thread, NULL);
        stook_pages_unlock(&stook_pages_nodes[0]);
        assert_int_equal(taken(), 0);
        assert_sound();
}

int main(int argc, char **argv)
{
        const struct CMUnitTest limits[] = {
                cmocka_unit_test(address_limit_is_survived),
                cmocka_unit_test(a_late_limit_gives_back),
                cmocka_unit_test(a_lifted_limit_is_used),
        };
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nth_commit_fails),
                cmocka_unit_test(a_refused_move_loses_nothing),
                cmocka_unit_test(holder_that_never_returns),
        };
        int failed;

        (void)argc, (void)argv;
        /* Children start the layer themselves. */
        failed = cmocka_run_group_tests(limits, NULL, NULL);
        if (!stook_pages_start())
                return 1;
        return failed | cmocka_run_group_tests(tests, NULL, NULL);
}
