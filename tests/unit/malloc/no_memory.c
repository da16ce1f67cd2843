/*
 * Proves: before malloc fails for lack of memory it calls the program's function: by each call,
 * once; it tries again only if the function says so; a malloc in the function, and a nolock one,
 * fail without it, and so does one in a handler; errno is ENOMEM, or as it was.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>
#include <stook/stook.h>

/* No machine has so much; caches are asked all the same. Not known to the compiler. */
static volatile size_t much = (size_t)1 << 46;
static unsigned calls;
static int answer;
static void *kept;

static int give_back(void *data)
{
        assert_ptr_equal(data, &kept);
        calls++;
        errno = 4711;
        assert_null(stook_malloc(much));        /* asks nothing */
        if (answer) {
                stook_free(kept);
                kept = NULL;
        }
        return answer;
}

static void refused(void *object)
{
        assert_null(object);
        assert_int_equal(errno, ENOMEM);
}

static void test_each_call_asks(void **state)
{
        void *object = stook_malloc(100), *objects[2];

        (void)state;
        stook_on_no_memory(give_back, &kept);
        answer = 0;
        calls = 0;
        refused(stook_malloc(much));
        refused(stook_calloc(1, much));
        refused(stook_realloc(object, much));
        refused(stook_aligned_alloc(64, much));
        assert_int_equal(stook_malloc_bulk(much, 2, objects), -ENOMEM);
        assert_int_equal(calls, 5);
        refused(stook_malloc_nolock(much));
        assert_int_equal(calls, 5);
        answer = 1;                     /* in vain: once more, and no third time */
        refused(stook_malloc(much));
        assert_int_equal(calls, 6);
        stook_on_no_memory(NULL, NULL);
        refused(stook_malloc(much));
        assert_int_equal(calls, 6);
        stook_free(object);
}

static void in_handler(int number)
{
        (void)number;
        refused(stook_malloc(much));
}

static void test_not_in_a_handler(void **state)
{
        (void)state;
        stook_on_no_memory(give_back, &kept);
        calls = 0;
        signal(SIGUSR1, in_handler);
        raise(SIGUSR1);
        assert_int_equal(calls, 0);
        stook_on_no_memory(NULL, NULL);
}

static void test_what_is_given_back_serves(void **state)
{
        struct rlimit before, less;
        char *object;

        (void)state;
        stook_on_no_memory(give_back, &kept);
        assert_non_null(kept = stook_malloc(64 << 20));
        assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
        less = (struct rlimit){ 1 << 20, before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
        calls = 0;
        answer = 1;
        errno = 7;
        object = stook_malloc(60 << 20);        /* the limit is below what there is already */
        assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
        assert_int_equal(calls, 1);
        if (object)
                assert_int_equal(errno, 7);
        else
                assert_int_equal(errno, ENOMEM);
        stook_free(object);
        stook_on_no_memory(NULL, NULL);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_call_asks),
                cmocka_unit_test(test_not_in_a_handler),
                cmocka_unit_test(test_what_is_given_back_serves),
        };

        return cmocka_run_group_tests_name("no memory", tests, NULL, NULL);
}
