/*
 * What this proves: where the system refuses membarrier, what slots have charged in advance cannot
 * be fetched from them. Still it serves the group there: nothing of its limit is lost.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <cmocka.h>
#include <stook/stook.h>

#define SIZE  64
#define MANY  100000
#define LIMIT ((uint64_t)2 << 20)

static void *held[MANY];

static bool refuse_membarrier(void)
{
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = 4, .filter = filter };

        return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
               !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static struct stook_group_stats stats_of(const struct stook_group *group)
{
        struct stook_group_stats stats = { .stats_size = sizeof(stats) };

        assert_int_equal(stook_group_get_stats(group, &stats), 0);
        return stats;
}

static void precharges_serve_when_they_cannot_be_fetched(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = STOOK_CACHE_ACCOUNT };
        struct stook_cache *cache = stook_cache_create("charged", SIZE, &args);
        struct stook_group *group = stook_group_create("g", NULL, LIMIT);
        uint64_t before, slot;
        size_t n = 0;

        (void)state;
        assert_non_null(cache);
        assert_non_null(group);
        stook_group_enter(group);
        while (n < 100)
                held[n++] = stook_cache_alloc(cache);
        slot = stook_group_usage(group) / n;
        before = stats_of(group).precharge_bytes;
        assert_true(before > 0);
        if (!refuse_membarrier())
                skip();
        /* Below what is charged: precharges are to be fetched, and cannot be. */
        assert_int_equal(stook_group_set_limit(group, 1), 0);
        assert_int_equal(stats_of(group).precharge_bytes, before);
        assert_int_equal(stook_group_set_limit(group, LIMIT), 0);
        assert_non_null(held[n++] = stook_cache_alloc(cache));
        assert_int_equal(stats_of(group).precharge_bytes, before - slot);
        while (n < MANY && (held[n] = stook_cache_alloc(cache)))
                n++;
        assert_true(n * slot + slot > LIMIT);
        assert_int_equal(stook_group_usage(group), n * slot);
        while (n)
                stook_cache_free(cache, held[--n]);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_enter(NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(precharges_serve_when_they_cannot_be_fetched),
        };
        cpu_set_t one;

        /* One slot: what is in another is lost to this thread. */
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        if (sched_setaffinity(0, sizeof(one), &one))
                return 77;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
