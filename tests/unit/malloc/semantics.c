/*
 * Proves the meanings of <stook/malloc.h> that the standard leaves no doubt about: unique objects,
 * alignment at every size, zeroes, what happens to errno, sizes that no machine has memory for.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/malloc.h>
#include "malloc/malloc.h"
#include "off_by.h"

/* Not known to the compiler, or it warns of what is tested here. */
static volatile size_t too_large = (size_t)PTRDIFF_MAX + 1;

static void test_size_zero_gives_unique_objects(void **state)
{
        void *objects[200];

        (void)state;
        for (int i = 0; i < 200; i++) {
                objects[i] = i % 2 ? stook_malloc(0) : stook_calloc(0, 7);
                assert_non_null(objects[i]);
                for (int j = 0; j < i; j++)
                        assert_ptr_not_equal(objects[i], objects[j]);
        }
        for (int i = 0; i < 200; i++)
                stook_free(objects[i]);
        stook_free(NULL);
        assert_int_equal(stook_usable_size(NULL), 0);
        assert_false(stook_owns(NULL));
}

static void test_every_size_is_usable_aligned_and_owned(void **state)
{
        (void)state;
        for (size_t size = 1; size < 300000; size += size < 3000 ? 1 : size / 37) {
                char *object = stook_malloc(size);

                assert_non_null(object);
                assert_int_equal(off_by(object, 16), 0);
                assert_true(stook_usable_size(object) >= size);
                assert_true(stook_owns(object));
                assert_false(stook_owns(object + 8));
                memset(object, 0xa5, stook_usable_size(object));
                stook_free(object);
        }
        assert_false(stook_owns((void *)&too_large));
        assert_int_equal(stook_usable_size((void *)&too_large), 0);
}

static void test_calloc_zeroes_what_was_used_before(void **state)
{
        static const size_t sizes[] = { 1,     16,     100,    1000,   1025,   5000,
                                        40000, 131072, 131073, 500000, 3000000 };

        (void)state;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                unsigned char *dirty[4];

                for (int j = 0; j < 4; j++)
                        dirty[j] = memset(stook_malloc(sizes[i]), 0xff, sizes[i]);
                for (int j = 0; j < 4; j++)
                        stook_free(dirty[j]);
                for (int j = 0; j < 4; j++) {
                        dirty[j] = stook_calloc(1, sizes[i]);
                        assert_non_null(dirty[j]);
                        for (size_t k = 0; k < sizes[i]; k++)
                                assert_int_equal(dirty[j][k], 0);
                        memset(dirty[j], 0xff, sizes[i]);
                }
                for (int j = 0; j < 4; j++)
                        stook_free(dirty[j]);
        }
}

static void test_impossible_sizes_are_refused_with_enomem(void **state)
{
        void *object = stook_malloc(100);

        (void)state;
        memset(object, 1, 100);
#define REFUSED(call) \
        do { \
                errno = 0; \
                assert_null(call); \
                assert_int_equal(errno, ENOMEM); \
        } while (0)
        REFUSED(stook_malloc(too_large));
        REFUSED(stook_malloc(SIZE_MAX - too_large + too_large));
        REFUSED(stook_calloc(too_large, 1));
        REFUSED(stook_calloc(too_large, 2));
        REFUSED(stook_calloc((size_t)1 << 32, (size_t)1 << 32));
        REFUSED(stook_calloc((size_t)3 << 62, 6));
        REFUSED(stook_realloc(object, too_large));
        REFUSED(stook_reallocarray(object, (size_t)1 << 33, (size_t)1 << 31));
        REFUSED(stook_reallocarray(NULL, too_large, 4));
        REFUSED(stook_aligned_alloc(64, too_large));
        REFUSED(stook_aligned_alloc(64, SIZE_MAX - too_large + too_large));
        REFUSED(stook_aligned_alloc(1 << 20, too_large));
        REFUSED(stook_aligned_alloc(too_large, 1));
        /* possible for the standard, not for any machine */
        REFUSED(stook_malloc(too_large - 4096));
        for (int i = 0; i < 100; i++)
                assert_int_equal(((char *)object)[i], 1);
        stook_free(object);
}

static void test_alignments_that_are_none_are_refused_with_einval(void **state)
{
        static const size_t none[] = {0, 3, 24, 48, 4097, SIZE_MAX};

        (void)state;
        for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
                errno = 0;
                assert_null(stook_aligned_alloc(none[i], 64));
                assert_int_equal(errno, EINVAL);
        }
}

static void test_errno_survives_frees_shrinking_and_success(void **state)
{
        static const size_t sizes[] = {1, 200, 3000, 50000, 200000, 5000000};

        (void)state;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                char *objects[50];

                errno = 4242;
                for (int j = 0; j < 50; j++)
                        objects[j] = stook_malloc(sizes[i]);
                assert_int_equal(errno, 4242);
                for (int j = 0; j < 50; j++) {
                        objects[j] = stook_realloc(objects[j], sizes[i] / 3 + 1);
                        assert_non_null(objects[j]);
                }
                for (int j = 0; j < 50; j += 2)
                        stook_free(objects[j]);
                for (int j = 1; j < 50; j += 2)
                        stook_free_sized(objects[j], sizes[i] * 7); /* the size is not trusted */
                stook_free(NULL);
                assert_int_equal(errno, 4242);
        }
}

static void test_realloc_of_nothing_and_to_nothing(void **state)
{
        char *object = stook_realloc(NULL, 40);

        (void)state;
        assert_non_null(object);
        object = stook_realloc(object, 0);      /* frees, a unique object again */
        assert_non_null(object);
        assert_true(stook_owns(object));
        stook_free_aligned_sized(object, 4096, 99);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_size_zero_gives_unique_objects),
                cmocka_unit_test(test_every_size_is_usable_aligned_and_owned),
                cmocka_unit_test(test_calloc_zeroes_what_was_used_before),
                cmocka_unit_test(test_impossible_sizes_are_refused_with_enomem),
                cmocka_unit_test(test_alignments_that_are_none_are_refused_with_einval),
                cmocka_unit_test(test_errno_survives_frees_shrinking_and_success),
                cmocka_unit_test(test_realloc_of_nothing_and_to_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
