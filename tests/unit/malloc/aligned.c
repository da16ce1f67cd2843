/*
 * Proves malloc_miss.c: every alignment with every kind of size gives an aligned object of that
 * size, that overlaps no other, and can be freed and resized like any.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/malloc.h>

#include "off_by.h"

#define OBJECTS 6

static void test_matrix(void **state)
{
        (void)state;
        for (size_t align = 1; align <= (size_t)64 << 20; align *= 2) {
                for (size_t size = 0; size <= (size_t)1 << 20; size = size * 2 + (size % 3) + 1) {
                        unsigned char *objects[OBJECTS];

                        for (int i = 0; i < OBJECTS; i++) {
                                objects[i] = stook_aligned_alloc(align, size);
                                assert_non_null(objects[i]);
                                assert_int_equal(off_by(objects[i], align), 0);
                                assert_int_equal(off_by(objects[i], 16), 0);
                                assert_true(stook_usable_size(objects[i]) >= size);
                                memset(objects[i], i + 1, size);
                        }
                        objects[1] = stook_realloc(objects[1], size / 2 + 1);
                        objects[2] = stook_realloc(objects[2], size * 2 + 1);
                        for (int i = 0; i < OBJECTS; i++) {
                                for (size_t k = 0; k < (i == 1 ? size / 2 : size);
                                     k += size / 64 + 1)
                                        assert_int_equal(objects[i][k], i + 1);
                                stook_free(objects[i]);
                        }
                }
        }
}

/*
 * The class of STOOK_CLASS_PAGE_AND_MORE is a multiple of 64 alone: larger alignments go past it.
 */
static void test_a_page_and_more(void **state)
{
        (void)state;
        for (size_t align = 16; align <= 4096; align *= 2) {
                for (size_t size = 4080; size <= 4624; size += 16) {
                        void *objects[3];

                        for (int i = 0; i < 3; i++) {
                                objects[i] = stook_aligned_alloc(align, size);
                                assert_int_equal(off_by(objects[i], align), 0);
                                assert_true(stook_usable_size(objects[i]) >= size);
                        }
                        for (int i = 0; i < 3; i++)
                                stook_free(objects[i]);
                }
        }
}

/* A class serves small alignments, without a page for each object. */
static void test_aligned_objects_share_slabs(void **state)
{
        unsigned pages = 0;
        void *objects[256];

        (void)state;
        for (int i = 0; i < 256; i++) {
                objects[i] = stook_aligned_alloc(64, 64);
                bool first = true;

                for (int j = 0; first && j < i; j++)
                        first = (uintptr_t)objects[j] / 4096 != (uintptr_t)objects[i] / 4096;
                pages += first;
                assert_int_equal(stook_usable_size(objects[i]), 64);
        }
        assert_true(pages <= 32);
        for (int i = 0; i < 256; i++)
                stook_free(objects[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_matrix),
                cmocka_unit_test(test_a_page_and_more),
                cmocka_unit_test(test_aligned_objects_share_slabs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
