/*
 * What this proves: after a large live set was given back in random order, no more lies free and
 * dirty than is kept at any time, though no call follows. Pages come back one by one, between
 * others that were purged already, so none of them is part of a larger free span. Where the lock
 * was never to be had, the next round of maintenance does it, before anything is old.
 * Where a thread ages the heap, all of it stays for that thread; not where it does so no more.
 * Where the system refuses, as for memory that mlockall locked, each call asks it a few times only.
 * Where a large object is taken while the last ones are purged, what was not purged yet stays.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "pages_env.h"
#include "base/lock.h"
#include "base/tagged_stack.h"
#include "pages/pages_node.h"

#define SPANS 16384
#define BATCH 124                       /* slabs that one flush of a sheaf may empty */
#define KEPT  ((size_t)2 << 20)         /* twice the dirty limit of purge.c */

static struct stook_span *spans[SPANS];

static void take_all(void)
{
        for (unsigned n = 0; n < SPANS; n++) {
                spans[n] = stook_span_take(0, stook_os_page_bytes(), 0);
                assert_non_null(spans[n]);
        }
}

static void shuffle(void)
{
        uint64_t random = 88172645463325252u;

        for (unsigned i = SPANS; i > 1; i--) {
                unsigned at = (unsigned)(next_random(&random) % i);
                struct stook_span *swap = spans[i - 1];

                spans[i - 1] = spans[at];
                spans[at] = swap;
        }
}

static void give_all(void)
{
        for (unsigned n = 0; n < SPANS; n += BATCH) {
                unsigned end = n + BATCH < SPANS ? n + BATCH : SPANS;

                for (unsigned i = n; i < end; i++)
                        spans[i]->link.next = i + 1 < end ? &spans[i + 1]->link : NULL;
                stook_span_give_chain(&spans[n]->link);
                stook_pages_purge_excess();             /* as slabs do it */
        }
}

static void what_comes_back_in_random_order_is_purged(void **state)
{
        (void)state;
        take_all();
        for (unsigned i = 0; i < SPANS; i++)
                *(volatile char *)spans[i]->start = 1;
        shuffle();
        give_all();
        assert_int_equal(stook_pages_taken(0), 0);
        assert_in_range(stook_pages_purge(0), 0, KEPT);
        assert_sound();
}

/* As when the lock is another thread's all the time. */
static void what_could_not_be_purged_is_by_the_next_round(void **state)
{
        (void)state;
        take_all();
        for (unsigned i = 0; i < SPANS; i++)
                *(volatile char *)spans[i]->start = 1;
        stook_lock_forbid_waits();
        give_all();
        stook_lock_allow_waits();
        assert_int_equal(stook_pages_taken(0), 0);
        stook_pages_age();
        assert_in_range(stook_pages_purge(0), 0, KEPT);
        assert_sound();
}

/* As many as were in use at most lately stay, if a thread ages them. */
static void what_a_thread_ages_is_left_to_it(void **state)
{
        (void)state;
        stook_dirty_set_threaded(true);
        take_all();
        for (unsigned i = 0; i < SPANS; i++)
                *(volatile char *)spans[i]->start = 1;
        shuffle();
        give_all();
        assert_int_equal(stook_pages_taken(0), 0);
        assert_true(stook_pages_purge(0) >= SPANS * stook_os_page_bytes());
        assert_sound();
}

/* Nor does a child of fork have the thread. */
static void what_no_thread_ages_any_more_is_purged(void **state)
{
        (void)state;
        stook_dirty_set_threaded(true);
        take_all();
        for (unsigned i = 0; i < SPANS; i++)
                *(volatile char *)spans[i]->start = 1;
        give_all();
        stook_pages_fork_prepare();
        stook_pages_fork_child(true);
        stook_pages_purge_excess();
        assert_in_range(stook_pages_purge(0), 0, KEPT);
        assert_sound();
}

/* ---- refused ---- */

static volatile sig_atomic_t asked;

static void answer(void *context, int value)
{
        ucontext_t *at = context;

#if defined(__x86_64__)
        at->uc_mcontext.gregs[REG_RAX] = value;
#elif defined(__aarch64__)
        at->uc_mcontext.regs[0] = (uint64_t)(int64_t)value;
#endif
}

static void refuse(int signal, siginfo_t *info, void *context)
{
        (void)signal;
        (void)info;
        asked++;
        answer(context, -EINVAL);
}

/* @handler answers each madvise from here on. False: the system has no such filters. */
static bool handle_purges(void (*handler)(int, siginfo_t *, void *))
{
        struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = 4, .filter = filter };

        return !sigaction(SIGSYS, &action, NULL) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
               !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#define LARGE      64
#define ASKED_EACH 4                    /* by one give, at most; arbitrary */

static void refused_purges_are_not_repeated(void **state)
{
        (void)state;
        if (!handle_purges(refuse))
                skip();
        for (unsigned i = 0; i < LARGE; i++) {
                spans[i] = stook_span_take(0, ((size_t)1 << 20) + i * stook_os_page_bytes(), 0);
                assert_non_null(spans[i]);
        }
        asked = 0;
        for (unsigned i = 0; i < LARGE; i++)
                stook_span_give(spans[i]);
        assert_in_range(asked, 1, LARGE * ASKED_EACH);
        assert_sound();
}

/* ---- while another thread takes ---- */

#define MIB  ((size_t)1 << 20)
#define EACH (16 * MIB)

/* As another thread: no lock is held. The purge itself is left out. */
static void take_next(int signal, siginfo_t *info, void *context)
{
        (void)signal;
        (void)info;
        if (!asked++)
                spans[2] = stook_span_take(0, EACH / 2, 0);
        answer(context, 0);
}

/* Two objects are freed in turn, so the process may be done. */
static void what_is_not_purged_yet_stays_for_the_next(void **state)
{
        (void)state;
        for (unsigned n = 0; n < 2; n++) {
                spans[n] = stook_span_take(0, EACH, 0);
                assert_non_null(spans[n]);
                memset((void *)spans[n]->start, 1, EACH);
        }
        if (!handle_purges(take_next))
                skip();
        stook_span_give(spans[0]);
        assert_int_equal(asked, 0);
        stook_span_give(spans[1]);
        assert_true(asked > 0);
        assert_non_null(spans[2]);
        assert_int_equal(spans[2]->state, STOOK_SPAN_DIRTY);
        assert_in_range(stook_pages_nodes[0].bins[STOOK_SET_DIRTY].bytes, EACH - 4 * MIB, 2 * EACH);
        assert_sound();
}

static int start(void **state)
{
        (void)state;
        return stook_pages_start() ? 0 : -1;
}

/* What was taken again after a purge is kept (policy/ledger.h), so each test has a process. */
int main(int argc, char **argv)
{
        const struct CMUnitTest at_once[] = {
                cmocka_unit_test(what_comes_back_in_random_order_is_purged),
        };
        const struct CMUnitTest by_a_round[] = {
                cmocka_unit_test(what_could_not_be_purged_is_by_the_next_round),
        };
        const struct CMUnitTest aged[] = {
                cmocka_unit_test(what_a_thread_ages_is_left_to_it),
        };
        const struct CMUnitTest aged_no_more[] = {
                cmocka_unit_test(what_no_thread_ages_any_more_is_purged),
        };
        const struct CMUnitTest refused[] = {
                cmocka_unit_test(refused_purges_are_not_repeated),
        };

        const struct CMUnitTest pieces[] = {
                cmocka_unit_test(what_is_not_purged_yet_stays_for_the_next),
        };

        if (argc > 1 && !strcmp(argv[1], "pieces"))
                return cmocka_run_group_tests(pieces, start, NULL);
        if (argc > 1 && !strcmp(argv[1], "refused"))
                return cmocka_run_group_tests(refused, start, NULL);
        if (argc > 1 && !strcmp(argv[1], "aged"))
                return cmocka_run_group_tests(aged, start, NULL);
        if (argc > 1 && !strcmp(argv[1], "aged_no_more"))
                return cmocka_run_group_tests(aged_no_more, start, NULL);
        if (argc > 1)
                return cmocka_run_group_tests(by_a_round, start, NULL);
        return cmocka_run_group_tests(at_once, start, NULL);
}
