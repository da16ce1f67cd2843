/*
 * What this proves: rank.h, compiled with ranks whatever the build's option. Locks taken in order
 * pass, and so does a try out of order. Each wait out of order ends the process, with both names.
 * After a jump, a reset or a refusal no rank is left behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/lock.h"
#include "base/mutex.h"
#include "os/os.h"
#include "report/report.h"

static struct stook_mutex registry = STOOK_MUTEX_INIT(STOOK_RANK_REGISTRY);
static struct stook_mutex evacuation = STOOK_MUTEX_INIT(STOOK_RANK_EVACUATE);
static struct stook_lock list = STOOK_LOCK_INIT(STOOK_RANK_PARTIAL_LIST);
static struct stook_lock bins = STOOK_LOCK_INIT(STOOK_RANK_BINS);
static struct stook_lock plain;

static int setup(void **state)
{
        (void)state;
        stook_rank_set_report(stook_report_rank);
        return 0;
}

/* In a process of its own. "": it returned; else what it wrote before it was aborted. */
static const char *outcome(void (*call)(void))
{
        static char text[256];
        int ends[2], status;
        ssize_t bytes;
        pid_t child;

        assert_int_equal(pipe(ends), 0);
        child = fork();
        assert_true(child >= 0);
        if (!child) {
                dup2(ends[1], STDERR_FILENO);
                call();
                _exit(0);
        }
        close(ends[1]);
        bytes = read(ends[0], text, sizeof(text) - 1);
        close(ends[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        text[bytes > 0 ? bytes : 0] = '\0';
        if (*text)
                assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        else
                assert_int_equal(status, 0);
        return text;
}

#define expect(call, text) assert_string_equal(outcome(call), text)
#define WAITS(wanted, held) "stook: lock order: waits for " wanted " while it holds " held "\n"

static void in_order(void)
{
        for (int i = 0; i < 2; i++) {
                stook_mutex_lock(&registry);
                stook_mutex_lock(&evacuation);
                if (!stook_lock_take(&list))
                        _exit(1);
                stook_lock_drop(&list);
                stook_mutex_unlock(&evacuation);
                if (!stook_lock_take(&bins))
                        _exit(1);
                stook_lock_drop(&bins);
                stook_mutex_unlock(&registry);
        }
}

/* A thread that holds a lock only tries, so this cannot deadlock. */
static void tries_out_of_order(void)
{
        if (!stook_lock_take(&bins) || !stook_lock_take(&list) || !stook_lock_try(&plain) ||
            !stook_mutex_try(&evacuation) || !stook_mutex_try_counting(&registry))
                _exit(1);
        stook_lock_drop(&list);
        stook_lock_drop(&plain);
        stook_lock_drop(&bins);
        stook_mutex_unlock(&registry);
        stook_mutex_unlock(&evacuation);
        in_order();
}

static void refusals_leave_nothing(void)
{
        plain.word = registry.word = 1 << 12;           /* as if another thread had them */
        stook_lock_forbid_waits();
        if (stook_lock_take(&plain) || stook_mutex_try(&registry))
                _exit(1);
        stook_lock_allow_waits();
        registry.word = 0;
        in_order();
}

static void resets_leave_nothing(void)
{
        stook_mutex_lock(&evacuation);
        if (!stook_lock_take(&list))
                _exit(1);
        stook_lock_reset(&list);
        stook_lock_hold_none();
        stook_mutex_reset(&evacuation);
        in_order();
}

static void registry_under_evacuation(void)
{
        stook_mutex_lock(&evacuation);
        stook_mutex_lock(&registry);
}

static void evacuation_twice(void)
{
        stook_mutex_lock(&evacuation);
        stook_mutex_lock(&evacuation);
}

static void evacuation_under_a_list(void)
{
        (void)!stook_lock_take(&list);
        stook_mutex_lock(&evacuation);
}

static void bounded_wait_under_a_plain_lock(void)
{
        (void)!stook_lock_take(&plain);
        (void)!stook_mutex_wait(&registry, 1);
}

static void registry_after_a_try_of_the_evacuation(void)
{
        (void)!stook_mutex_try(&evacuation);
        stook_mutex_lock(&registry);
}

/* As a defect in the count would have it: the thread holds a lock, and waits for another. */
static void lock_under_a_lock(void)
{
        (void)!stook_lock_take(&list);
        __atomic_store_n(stook_lock_held(), 0, __ATOMIC_RELAXED);
        (void)!stook_lock_take(&bins);
}

static void what_is_in_order_passes(void **state)
{
        (void)state;
        expect(in_order, "");
        expect(tries_out_of_order, "");
        expect(refusals_leave_nothing, "");
        expect(resets_leave_nothing, "");
}

static void each_violation_is_told(void **state)
{
        (void)state;
        expect(registry_under_evacuation, WAITS("registry", "evacuation"));
        expect(evacuation_twice, WAITS("evacuation", "evacuation"));
        expect(evacuation_under_a_list, WAITS("evacuation", "partial list"));
        expect(bounded_wait_under_a_plain_lock, WAITS("registry", "a lock"));
        expect(registry_after_a_try_of_the_evacuation, WAITS("registry", "evacuation"));
        expect(lock_under_a_lock, WAITS("bins", "partial list"));
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test_setup(what_is_in_order_passes, setup),
                cmocka_unit_test_setup(each_violation_is_told, setup),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
