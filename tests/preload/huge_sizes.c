/*
 * Proves: no mode hands out a size that no address space has. What a mode adds to a size, for
 * zones, guards, tracks or a group, does not make a small one of it; nor does an alignment.
 */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const size_t hidden_sizes[] = {
        SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 7, SIZE_MAX - 8, SIZE_MAX - 15, SIZE_MAX - 16,
        SIZE_MAX - 31, SIZE_MAX - 63, SIZE_MAX - 127, SIZE_MAX - 255, SIZE_MAX - 4095,
        SIZE_MAX - 4096, SIZE_MAX - 8191, SIZE_MAX - 8192, SIZE_MAX - 65536, SIZE_MAX / 2 + 1,
        SIZE_MAX / 2, SIZE_MAX / 2 - 1, SIZE_MAX / 2 - 4096, SIZE_MAX / 4,
};

static void assert_refused(void *object)
{
        assert_null(object);
        assert_int_equal(errno, ENOMEM);
        errno = 0;
}

static void assert_kept(size_t has, size_t size)
{
        char *object = malloc(has);

        memset(object, 7, has);
        assert_refused(realloc(object, size));
        assert_int_equal(object[0], 7);
        assert_int_equal(object[has - 1], 7);
        free(object);
        errno = 0;
}

static void no_mode_hands_out_a_huge_size(void **state)
{
        (void)state;
        for (unsigned i = 0; i < sizeof(hidden_sizes) / sizeof(hidden_sizes[0]); i++) {
                volatile size_t size = hidden_sizes[i];
                void *object = NULL;

                errno = 0;
                assert_refused(malloc(size));
                assert_refused(calloc(1, size));
                assert_refused(calloc(size, 1));
                assert_refused(realloc(NULL, size));
                assert_kept(24, size);
                assert_kept(5000, size);
                assert_kept(300000, size);
                for (size_t align = 16; align <= 1 << 21; align *= 2) {
                        assert_refused(aligned_alloc(align, size));
                        assert_int_equal(posix_memalign(&object, align, size), ENOMEM);
                        assert_null(object);
                }
                errno = 0;
                assert_refused(valloc(size));
                assert_refused(pvalloc(size));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(no_mode_hands_out_a_huge_size) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
