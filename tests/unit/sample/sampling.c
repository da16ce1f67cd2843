/*
 * What this proves: a session begins and ends in the running process; a sample is an object as any
 * other to its user; statistics and validation hold meanwhile; errors are those of the header; a
 * sheaf that had no countdown gets one at the start; a refused new count loses nothing; a sample
 * makes no system call that malloc does not make.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "off_by.h"
#include "stack/stack.h"

#define ARGS(...) (&(struct stook_sampling_args){ .args_size = sizeof(struct stook_sampling_args), \
                                                  __VA_ARGS__ })

static struct stook_sampling_stats stats(void)
{
        struct stook_sampling_stats stats = { .stats_size = sizeof stats };

        assert_int_equal(stook_sampling_get_stats(&stats), 0);
        return stats;
}

static void errors(void **state)
{
        struct stook_sampling_stats wrong = { .stats_size = 1 };

        (void)state;
        assert_int_equal(stook_sampling_stop(), -ENOTSUP);
        assert_int_equal(stook_sampling_get_stats(NULL), -EINVAL);
        assert_int_equal(stook_sampling_get_stats(&wrong), -EINVAL);
        assert_int_equal(stook_sampling_start(&(struct stook_sampling_args){ 0 }), -EINVAL);
        assert_int_equal(stook_sampling_start(ARGS(.interval = (UINT64_C(1) << 40) + 1)), -EINVAL);
        assert_int_equal(stook_sampling_start(ARGS(.most = 1000001)), -EINVAL);
        assert_int_equal(stook_sampling_start(ARGS(.flags = 2)), -EINVAL);
        assert_int_equal(stats().interval, 0);
        assert_int_equal(stats().marks, 0);
        assert_int_equal(stook_sampling_start(NULL), 0);
        assert_int_equal(stats().interval, 2 << 20);
        assert_int_equal(stook_sampling_start(ARGS(.interval = UINT64_C(1) << 40)), 0);
        assert_int_equal(stats().interval, UINT64_C(1) << 40);
        assert_int_equal(stook_sampling_stop(), 0);
        assert_int_equal(stook_sampling_stop(), -ENOTSUP);
}

/* Each byte is sampled: each object of malloc is a sample. */
static void samples_are_objects(void **state)
{
        static unsigned char *objects[300];
        uint64_t kept;

        (void)state;
        assert_int_equal(stook_sampling_start(ARGS(.interval = 1, .most = 1000000,
                                                   .flags = STOOK_SAMPLING_LIFETIMES)), 0);
        kept = stats().kept;
        for (size_t i = 0; i < 300; i++) {
                size_t size = i * i % 5000;

                objects[i] = i % 3 ? stook_malloc(size) : stook_calloc(1, size);
                assert_non_null(objects[i]);
                assert_true(stook_owns(objects[i]));
                assert_true(stook_usable_size(objects[i]) >= size);
                for (size_t b = 0; i % 3 == 0 && b < size; b++)
                        assert_int_equal(objects[i][b], 0);
                memset(objects[i], (int)i | 1, size);
        }
        assert_true(stats().kept - kept >= 300);
        for (size_t i = 0; i < 300; i++) {
                size_t old = i * i % 5000, size = (i * 7919) % 20000;

                objects[i] = stook_realloc(objects[i], size + 1);
                assert_non_null(objects[i]);
                for (size_t b = 0; b < old && b < size; b++)
                        assert_int_equal(objects[i][b], (unsigned char)(i | 1));
        }
        assert_int_equal(stook_validate_all(), 0);
        for (size_t i = 0; i < 300; i++) {
                if (i % 2)
                        stook_free(objects[i]);
                else
                        stook_free_sized(objects[i], (i * 7919) % 20000 + 1);
        }
        assert_int_equal(off_by(stook_aligned_alloc(2048, 100), 2048), 0);
        assert_int_equal(stook_validate_all(), 0);
        assert_int_equal(stook_sampling_stop(), 0);
}

static void statistics_hold(void **state)
{
        struct stook_cache *cache = stook_cache_create("statistics", 100, NULL);
        struct stook_cache_stats s = { .stats_size = sizeof s };
        void *objects[500];

        (void)state;
        assert_non_null(cache);
        for (unsigned round = 0; round < 20; round++) {
                assert_int_equal(stook_sampling_start(ARGS(.interval = 200 << round % 8)), 0);
                for (unsigned i = 0; i < 500; i++)
                        assert_non_null(objects[i] = stook_cache_alloc(cache));
                assert_int_equal(stook_cache_get_stats(cache, &s), 0);
                assert_int_equal(s.objects_live, 500);
                if (round % 2)
                        assert_int_equal(stook_sampling_stop(), 0);
                stook_cache_free_bulk(cache, 250, objects);
                for (unsigned i = 250; i < 500; i++)
                        stook_cache_free(cache, objects[i]);
                assert_int_equal(stook_cache_get_stats(cache, &s), 0);
                assert_int_equal(s.objects_live, 0);
                assert_int_equal(stook_cache_validate(cache), 0);
        }
        assert_int_equal(stook_cache_destroy(cache), 0);
        stook_sampling_stop();
}

/* Objects that were allocated before the start leave their sheaves: the next pop is a trial. */
static void the_first_pop_after_a_start_is_a_trial(void **state)
{
        (void)state;
        for (unsigned i = 0; i < 1000; i++)
                stook_free(stook_malloc(48));
        for (unsigned i = 0; i < 10; i++) {
                uint64_t marks = stats().marks;

                assert_int_equal(stook_sampling_start(ARGS(.interval = 1)), 0);
                stook_free(stook_malloc(48));
                assert_true(stats().marks > marks);
                assert_int_equal(stook_sampling_stop(), 0);
        }
}

static void a_refused_new_count_loses_nothing(void **state)
{
        void *objects[100];

        (void)state;
        assert_int_equal(stook_sampling_start(ARGS(.interval = 64)), 0);
        for (uint32_t every = 1; every < 4; every++) {
                stook_inject.rearm_fail = every;
                for (unsigned i = 0; i < 100; i++)
                        assert_non_null(objects[i] = stook_malloc(64));
                for (unsigned i = 0; i < 100; i++)
                        stook_free(objects[i]);
        }
        stook_inject.rearm_fail = 0;
        assert_int_equal(stook_validate_all(), 0);
        assert_int_equal(stook_sampling_stop(), 0);
}

static void a_forked_child_goes_on(void **state)
{
        void *object;
        int status;

        (void)state;
        assert_int_equal(stook_sampling_start(ARGS(.interval = 1)), 0);
        object = stook_malloc(100);
        if (!fork()) {
                stook_free(object);
                for (unsigned i = 0; i < 100; i++)
                        stook_free(stook_malloc(i));
                _exit(stook_validate_all() || stook_sampling_stop());
        }
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
        stook_free(object);
        assert_int_equal(stook_sampling_stop(), 0);
}

#ifdef STOOK_STACK_HAS_RULES
/* Of this thread: all other calls end the process. */
static void allow_what_malloc_calls(void)
{
        static const int numbers[] = { SYS_mmap, SYS_munmap, SYS_madvise, SYS_membarrier,
                                       SYS_futex, SYS_exit_group };
        struct sock_filter filter[32] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        };
        struct sock_fprog program = { .filter = filter, .len = 1 };

        for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
                filter[program.len++] = (struct sock_filter)BPF_JUMP(
                        BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[i], 0, 1);
                filter[program.len++] =
                        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        }
        filter[program.len++] =
                (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
                _exit(77);
}

/* From libc: a module that no sample has met before. */
static int compare(const void *a, const void *b)
{
        stook_free(stook_malloc(*(const unsigned *)a));
        return *(const unsigned *)a < *(const unsigned *)b ? -1 : 1;
}

/* Returns 0, if samples were taken and the process lives. */
static int sample_below_a_filter(void)
{
        const unsigned middle = 1;
        uint64_t kept;

        if (stook_sampling_start(ARGS(.interval = 1, .most = 1000000)))
                return 1;
        kept = stats().kept;
        allow_what_malloc_calls();
        for (unsigned size = 0; size < 400 * 50; size += 50)
                bsearch(&size, &middle, 1, sizeof middle, compare);
        return stats().kept - kept < 400;
}

static void under_a_strict_filter(void **state)
{
        int status;
        pid_t pid = fork();

        (void)state;
        if (!pid)
                _exit(sample_below_a_filter());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                skip();                 /* no filters here */
        assert_int_equal(status, 0);
}
#endif

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(errors),
                cmocka_unit_test(samples_are_objects),
                cmocka_unit_test(statistics_hold),
                cmocka_unit_test(the_first_pop_after_a_start_is_a_trial),
                cmocka_unit_test(a_refused_new_count_loses_nothing),
                cmocka_unit_test(a_forked_child_goes_on),
#ifdef STOOK_STACK_HAS_RULES
                cmocka_unit_test(under_a_strict_filter),
#endif
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
