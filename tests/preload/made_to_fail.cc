/*
 * Proves that one allocation that is made to fail makes the call fail, for every call of the
 * drop-in that allocates: none asks again by itself. operator new does so once its handler has
 * returned. Run with all caches, and with a few, so that realloc takes an object of a cache that
 * never fails to one that does.
 */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stook/debug.h>
extern "C" {
#include <cmocka.h>
#include <malloc.h>
}

/* Of the caches that fail: malloc-64, malloc-128, malloc-4096 and large. */
static volatile std::size_t small = 20, middle = 60, more = 120, page = 4096, large = 300000;

static void let_fail(std::int64_t times)
{
        stook_fail_terms terms{};

        terms.terms_size = sizeof terms;
        terms.interval = 1;
        terms.probability = 100;
        terms.times = times;
        assert_int_equal(stook_set_fail(&terms), 0);
}

/* @get returns what it allocates. The first time it fails, the second time it does not. */
static __attribute__((noinline)) void expect_one_failure(const char *call, void *(*get)())
{
        void *volatile object;

        let_fail(1);
        try {
                object = get();
        } catch (const std::bad_alloc &) {
                object = nullptr;
        }
        if (object)
                fail_msg("%s does not fail", call);
        object = get();
        assert_non_null(object);
        std::free(object);
}

#define FAILS(call) expect_one_failure(#call, [] { return static_cast<void *>(call); })

static void *with_posix_memalign(std::size_t align, std::size_t size)
{
        void *object = nullptr;

        return posix_memalign(&object, align, size) ? nullptr : object;
}

static void allocations(void **)
{
        static char text[60];

        std::memset(text, 'x', sizeof text - 1);
        FAILS(std::malloc(middle));
        FAILS(std::malloc(large));
        FAILS(std::calloc(middle, 1));
        FAILS(std::calloc(1, large));
        FAILS(aligned_alloc(64, middle));
        FAILS(aligned_alloc(65536, middle));
        FAILS(memalign(64, middle));
        FAILS(with_posix_memalign(64, middle));
        FAILS(with_posix_memalign(64, large));
        FAILS(valloc(page));
        FAILS(pvalloc(page));
        FAILS(strdup(text));
}

static void grow(std::size_t from, std::size_t to)
{
        char *volatile object = static_cast<char *>(std::malloc(from));

        assert_non_null(object);
        std::memset(object, 1, from);
        let_fail(1);
        if (std::realloc(object, to))
                fail_msg("realloc from %zu to %zu bytes does not fail", from, to);
        object = static_cast<char *>(reallocarray(object, to, 1));
        assert_non_null(object);
        for (std::size_t i = 0; i < from; i++)
                assert_int_equal(object[i], 1);
        std::free(object);
}

static void growth(void **)
{
        FAILS(std::realloc(nullptr, middle));
        grow(small, middle);
        grow(middle, more);
        grow(small, large);
        grow(more, large);
        grow(large, large * 2);
        grow(large, large * 300);
        grow(large * 300, large * 400);
}

static void operator_new(void **)
{
        const auto align = std::align_val_t{64}, wide = std::align_val_t{65536};

        FAILS(operator new(middle));
        FAILS(operator new(large));
        FAILS(operator new[](middle));
        FAILS(operator new(middle, std::nothrow));
        FAILS(operator new[](middle, std::nothrow));
        FAILS(operator new(middle, align));
        FAILS(operator new[](middle, align));
        FAILS(operator new(middle, wide));
        FAILS(operator new(middle, align, std::nothrow));
        FAILS(operator new[](middle, align, std::nothrow));
}

static int handler_runs;

static void operator_new_after_its_handler(void **)
{
        std::set_new_handler([] { handler_runs++; });
        let_fail(3);
        operator delete(operator new(middle));
        assert_int_equal(handler_runs, 3);
        std::set_new_handler([] { throw std::bad_alloc(); });
        let_fail(2);
        assert_null(operator new(middle, std::nothrow));
        let_fail(2);
        assert_null(operator new[](middle, std::align_val_t{64}, std::nothrow));
        std::set_new_handler(nullptr);
}

int main()
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(allocations),
                cmocka_unit_test(growth),
                cmocka_unit_test(operator_new),
                cmocka_unit_test(operator_new_after_its_handler),
        };

        stook_set_fail(nullptr);
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
