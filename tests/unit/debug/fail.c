/*
 * What this proves: which allocations fail on purpose: the terms of STOOK_FAIL and of
 * stook_set_fail(), each by itself and together; what fails has changed nothing; what was promised
 * does not fail. Each text is read in a child, as a process reads one.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "debug/debug_modes.h"
#include <stook/debug.h>
#include <stook/group.h>
#include <stook/malloc.h>
#include <stook/sheaf.h>
#include <stook/stook.h>

#define ALLOCATIONS 12

static struct stook_cache *cache;

static int setup(void **unused)
{
        const struct stook_cache_args args = { .args_size = sizeof(args),
                                               .flags = STOOK_CACHE_MAY_FAIL };

        (void)unused;
        cache = stook_cache_create("may fail", 64, &args);
        return !cache;
}

static int teardown(void **unused)
{
        (void)unused;
        stook_set_fail(NULL);
        return stook_cache_destroy(cache);
}

/* Which of some allocations fail: "." succeeds, "x" fails. */
static void expect(const char *outcome)
{
        void *objects[ALLOCATIONS];
        size_t n = strlen(outcome);

        for (size_t i = 0; i < n; i++) {
                errno = 0;
                objects[i] = stook_cache_alloc(cache);
                assert_int_equal(objects[i] ? '.' : 'x', outcome[i]);
                assert_int_equal(errno, objects[i] ? 0 : ENOMEM);
        }
        for (size_t i = 0; i < n; i++)
                stook_cache_free(cache, objects[i]);
}

#define TERMS(...) (&(struct stook_fail_terms){ \
        .terms_size = sizeof(struct stook_fail_terms), .interval = 1, .probability = 100, \
        .times = -1, __VA_ARGS__ })

#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif

static void terms_hold(void **unused)
{
        uint64_t before = stook_fail_count();

        (void)unused;
        expect("............");
        assert_int_equal(stook_set_fail(TERMS(.interval = 3)), 0);
        expect("..x..x..x..x");
        assert_int_equal(stook_fail_count() - before, 4);
        assert_int_equal(stook_set_fail(TERMS(.interval = 3, .times = 2)), 0);
        expect("..x..x......");
        assert_int_equal(stook_set_fail(TERMS(.space = 3 * 64)), 0);
        expect("...xxxx");
        assert_int_equal(stook_set_fail(TERMS(.space = 64, .interval = 2, .times = 1)), 0);
        expect("..x...");
        assert_int_equal(stook_set_fail(TERMS(.probability = 0)), 0);
        expect("............");
        assert_int_equal(stook_set_fail(TERMS(.times = 0)), 0);
        expect("............");
        assert_int_equal(stook_set_fail(TERMS()), 0);
        expect("xxx");
        assert_int_equal(stook_set_fail(NULL), 0);
        expect("...");
}

static void a_probability_is_neither_never_nor_always(void **unused)
{
        unsigned failed = 0;

        (void)unused;
        assert_int_equal(stook_set_fail(TERMS(.probability = 50)), 0);
        for (unsigned i = 0; i < 2000; i++) {
                void *object = stook_cache_alloc(cache);

                failed += !object;
                stook_cache_free(cache, object);
        }
        assert_in_range(failed, 700, 1300);     /* 13 standard deviations */
        stook_set_fail(NULL);
}

static void bad_terms_are_refused(void **unused)
{
        (void)unused;
        assert_int_equal(stook_set_fail(TERMS(.interval = 0)), -EINVAL);
        assert_int_equal(stook_set_fail(TERMS(.probability = 101)), -EINVAL);
        assert_int_equal(stook_set_fail(TERMS(.terms_size = 1)), -EINVAL);
        expect("...");
}

static void other_calls_fail_too(void **unused)
{
        void *objects[4];
        struct stook_sheaf *sheaf;

        (void)unused;
        assert_int_equal(stook_set_fail(TERMS(.interval = 3)), 0);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 4, objects), -ENOMEM);
        stook_set_fail(TERMS());
        assert_null(stook_sheaf_prefill(cache, 0, 4));
        assert_null(stook_cache_zalloc(cache));
        assert_null(stook_cache_alloc_nolock(cache));
        stook_set_fail(NULL);
        sheaf = stook_sheaf_prefill(cache, 0, 4);
        assert_non_null(sheaf);
        stook_set_fail(TERMS());
        for (unsigned i = 0; i < 4; i++) {
                objects[i] = stook_sheaf_alloc(cache, sheaf);
                assert_non_null(objects[i]);            /* what was promised */
        }
        stook_sheaf_return(cache, sheaf);
        stook_set_fail(NULL);
        stook_cache_free_bulk(cache, 4, objects);
}

static void a_refill_fails_for_what_lacks(void **unused)
{
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 4), *had = sheaf;
        uint64_t failed;
        void *object;

        (void)unused;
        assert_non_null(sheaf);
        object = stook_sheaf_alloc(cache, sheaf);
        assert_non_null(object);
        stook_set_fail(TERMS());
        failed = stook_fail_count();
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 3), 0);   /* it has as many */
        assert_int_equal(stook_fail_count(), failed);
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 4), -ENOMEM);
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 1000), -ENOMEM);
        assert_int_equal(stook_fail_count(), failed + 2);
        assert_ptr_equal(sheaf, had);
        assert_int_equal(stook_sheaf_available(sheaf), 3);
        stook_set_fail(NULL);
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 4), 0);
        assert_true(stook_sheaf_available(sheaf) >= 4);
        stook_sheaf_return(cache, sheaf);
        stook_cache_free(cache, object);
}

static void a_group_is_not_charged(void **unused)
{
        const struct stook_cache_args args = { .args_size = sizeof(args),
                                               .flags = STOOK_CACHE_MAY_FAIL |
                                                       STOOK_CACHE_ACCOUNT };
        struct stook_cache *accounted = stook_cache_create("charged", 64, &args);
        struct stook_group *group = stook_group_create("fails", NULL, 1 << 20);
        void *object;

        (void)unused;
        assert_non_null(accounted);
        assert_non_null(group);
        stook_set_fail(TERMS());
        assert_null(stook_cache_alloc_group(accounted, 0, group));
        assert_int_equal(stook_group_usage(group), 0);
        stook_set_fail(NULL);
        object = stook_cache_alloc_group(accounted, 0, group);
        assert_non_null(object);
        assert_true(stook_group_usage(group) > 0);
        stook_cache_free(accounted, object);
        assert_int_equal(stook_group_usage(group), 0);
        assert_int_equal(stook_cache_destroy(accounted), 0);
        stook_group_destroy(group);
}

/* ---- STOOK_FAIL ---- */

/* What a child answers that reads @text: "." or "x" for each name. "?": the text was refused. */
static char asks(const char *text, const char *name)
{
        int status, output[2];
        char said[512];
        ssize_t bytes;
        pid_t child;

        assert_int_equal(pipe(output), 0);
        child = fork();
        assert_true(child >= 0);
        if (!child) {
                dup2(output[1], STDERR_FILENO);
                setenv("STOOK_FAIL", text, 1);
                stook_fail_read_options();
                _exit(stook_fail_is_asked() ? stook_fail_wants(name) ? 'x' : '.' : '?');
        }
        close(output[1]);
        bytes = read(output[0], said, sizeof(said));
        close(output[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if ((bytes > 0) != (*text && WEXITSTATUS(status) == '?'))
                fail_msg("STOOK_FAIL=%s: %.*s", text, (int)bytes, said);
        return (char)WEXITSTATUS(status);
}

static void the_text_is_read(void **unused)
{
        static const struct { const char *text, *name; char answer; } cases[] = {
                { "", "any", '?' },
                { "interval=3", "any", 'x' },
                { "interval=3,times=1,space=4096,probability=100,tell=1", "any", 'x' },
                { "caches=conn", "conn", 'x' },
                { "caches=conn", "connection", '.' },
                { "caches=conn*", "connection", 'x' },
                { "caches=a:malloc-*:large", "malloc-64", 'x' },
                { "caches=a:malloc-*:large", "large", 'x' },
                { "caches=a:malloc-*:large", "b", '.' },
                { "times=1,caches=a", "b", '.' },
                { "stack=10-20", "b", 'x' },
                { "stack=20-20", "b", '?' },
                { "stack=20", "b", '?' },
                { "stack=x-y", "b", '?' },
                { "interval=0", "b", '?' },
                { "interval=", "b", '?' },
                { "interval=99999999999", "b", '?' },
                { "probability=101", "b", '?' },
                { "probability=-1", "b", '?' },
                { "times=1;space=2", "b", '?' },
                { "caches=", "b", '?' },
                { "tell=2", "b", '?' },
                { "nonsense", "b", '?' },
        };

        (void)unused;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                if (asks(cases[i].text, cases[i].name) != cases[i].answer)
                        fail_msg("STOOK_FAIL=%s, %s: not %c", cases[i].text, cases[i].name,
                                 cases[i].answer);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(terms_hold),
                cmocka_unit_test(a_probability_is_neither_never_nor_always),
                cmocka_unit_test(bad_terms_are_refused),
                cmocka_unit_test(other_calls_fail_too),
                cmocka_unit_test(a_refill_fails_for_what_lacks),
                cmocka_unit_test(a_group_is_not_charged),
                cmocka_unit_test(the_text_is_read),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
