/*
 * Proves that caches of <stook/typed.h> have the size and the alignment of their type, whatever
 * the arguments say; that their calls are those of <stook/cache.h>; and that a create fails as
 * stook_cache_create() does. What must not compile is abi/typed's.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/typed.h>

struct small { char bytes[3]; };
struct line { _Alignas(64) char bytes[192]; };
struct page { _Alignas(4096) char bytes[4096]; };
struct huge { char bytes[STOOK_OBJECT_MAX + 1]; };

STOOK_DEFINE_CACHE(smalls, struct small);
STOOK_DEFINE_CACHE(lines, struct line);
STOOK_DEFINE_CACHE(pages, struct page);
STOOK_DEFINE_CACHE(huges, struct huge);
STOOK_DEFINE_CACHE(functions, int (*)(void));
static union lines lines;

static void make(void *object, void *data)
{
        memset(object, *(const char *)data, sizeof(struct line));
}

static void test_alignment(void **state)
{
        union smalls smalls;
        union pages pages;
        union functions functions;
        char fill = 7;

        (void)state;
        assert_null(lines.cache);
        assert_non_null(stook_typed_create(&lines, "lines", NULL));
        assert_non_null(stook_typed_create(&smalls, "smalls", STOOK_CACHE_ARGS(.align = 256)));
        assert_non_null(stook_typed_create(&pages, "pages", STOOK_CACHE_ARGS(.align = 8)));
        assert_non_null(stook_typed_create(&functions, "functions", NULL));
        assert_int_equal(stook_cache_object_size(lines.cache), sizeof(struct line));
        assert_int_equal(stook_cache_object_size(smalls.cache), sizeof(struct small));
        for (int i = 0; i < 100; i++) {
                struct line *line = stook_new(&lines);
                struct small *small = stook_new(&smalls);
                struct page *page = stook_new_zeroed(&pages);
                int (**function)(void) = stook_new(&functions);

                assert_true(line && small && page && function);
                assert_int_equal((uintptr_t)line % 64, 0);
                assert_int_equal((uintptr_t)small % 256, 0);
                assert_int_equal((uintptr_t)page % 4096, 0);
                assert_int_equal(page->bytes[i], 0);
                memset(page, 1, sizeof(*page));
                assert_ptr_equal(stook_object_cache(line), lines.cache);
                stook_delete(&lines, line);
                stook_delete(&smalls, small);
                stook_delete(&pages, page);
                stook_delete(&functions, function);
        }
        stook_delete(&lines, (struct line *)NULL);
        assert_int_equal(stook_cache_destroy(lines.cache), 0);
        assert_int_equal(stook_cache_destroy(smalls.cache), 0);
        assert_int_equal(stook_cache_destroy(pages.cache), 0);
        assert_int_equal(stook_cache_destroy(functions.cache), 0);
        assert_non_null(stook_typed_create(&lines, "made", STOOK_CACHE_ARGS(.ctor = make,
                                                                            .ctor_data = &fill)));
        struct line *const line = stook_new(&lines);
        assert_true(line && line->bytes[191] == 7 && (uintptr_t)line % 64 == 0);
        errno = 0;
        assert_null(stook_new_zeroed(&lines));
        assert_int_equal(errno, EINVAL);
        stook_cache_free_nolock(lines.cache, STOOK_OBJECT_OF(&lines, line));
        assert_int_equal(stook_cache_destroy(lines.cache), 0);
}

static void assert_refused(struct stook_cache *cache, int error)
{
        assert_null(cache);
        assert_int_equal(errno, error);
}

static void test_refusals(void **state)
{
        union lines cache;
        union huges huges;
        struct stook_cache_args other = { .args_size = 8 };

        (void)state;
        assert_refused(stook_typed_create(&cache, NULL, NULL), EINVAL);
        assert_null(cache.cache);
        assert_refused(stook_typed_create(&cache, "size", &other), EINVAL);
        assert_refused(stook_typed_create(&cache, "align", STOOK_CACHE_ARGS(.align = 96)), EINVAL);
        assert_refused(stook_typed_create(&huges, "huge", NULL), ERANGE);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_alignment),
                cmocka_unit_test(test_refusals),
        };

        return cmocka_run_group_tests_name("typed caches", tests, NULL, NULL);
}
