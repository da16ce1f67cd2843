/*
 * Proves what the drop-in makes of allocation tokens, by calls as clang 22 makes them: tokens of
 * types with pointers and of data are in different heaps, never in one slab or span, and what comes
 * without a token is in none; each call means what the one without a token means, on every edge;
 * objects stay in their partition when they grow; any free takes them. The number of partitions is
 * an option, and nonsense is refused.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/heap.h>
#include <stook/malloc.h>

#include "off_by.h"

void *__alloc_token_malloc(size_t size, uint64_t token);
void *__alloc_token_calloc(size_t n, size_t size, uint64_t token);
void *__alloc_token_realloc(void *object, size_t size, uint64_t token);
void *__alloc_token_reallocarray(void *object, size_t n, size_t size, uint64_t token);
void *__alloc_token_aligned_alloc(size_t align, size_t size, uint64_t token);
void *__alloc_token_memalign(size_t align, size_t size, uint64_t token);
int __alloc_token_posix_memalign(void **out, size_t align, size_t size, uint64_t token);
void *__alloc_token_valloc(size_t size, uint64_t token);
void *__alloc_token_pvalloc(size_t size, uint64_t token);
void *token_new(size_t size, uint64_t token) __asm__("__alloc_token__Znwm");
void *token_new_array(size_t size, uint64_t token) __asm__("__alloc_token__Znam");
void *token_new_aligned(size_t size, size_t align, uint64_t token)
        __asm__("__alloc_token__ZnwmSt11align_val_t");
void *token_new_array_aligned(size_t size, size_t align, uint64_t token)
        __asm__("__alloc_token__ZnamSt11align_val_t");
void *token_new_nothrow(size_t size, const void *nothrow, uint64_t token)
        __asm__("__alloc_token__ZnwmRKSt9nothrow_t");
void *token_new_array_nothrow(size_t size, const void *nothrow, uint64_t token)
        __asm__("__alloc_token__ZnamRKSt9nothrow_t");
void *token_new_aligned_nothrow(size_t size, size_t align, const void *nothrow, uint64_t token)
        __asm__("__alloc_token__ZnwmSt11align_val_tRKSt9nothrow_t");
void *token_new_array_aligned_nothrow(size_t size, size_t align, const void *nothrow,
                                      uint64_t token)
        __asm__("__alloc_token__ZnamSt11align_val_tRKSt9nothrow_t");

void delete(void *object) __asm__("_ZdlPv");
void delete_array(void *object) __asm__("_ZdaPv");
void delete_sized(void *object, size_t size) __asm__("_ZdlPvm");
void delete_aligned(void *object, size_t align) __asm__("_ZdlPvSt11align_val_t");

#define DATA    UINT64_C(0x3C7A5D4CFB25AF3)     /* as clang gives them */
#define POINTER UINT64_C(0xED30CA9819079F4E)

static volatile size_t too_large = (size_t)PTRDIFF_MAX + 1;

static unsigned partitions(void)
{
        const char *value = getenv("STOOK_TOKENS");
        unsigned n = value ? (unsigned)atoi(value) : 2;

        return n % 2 || n < 2 || n > 16 ? 2 : n;
}

/* ---- partitions ---- */

static uintptr_t page(const void *object)
{
        return (uintptr_t)object >> 12;
}

static void halves_never_share_a_page(void **state)
{
        enum { EACH = 500 };
        static char *data[EACH], *pointers[EACH], *none[EACH];
        static const size_t sizes[] = { 8, 24, 100, 1000, 5000, 70000 };

        (void)state;
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
                for (int i = 0; i < EACH; i++) {
                        data[i] = __alloc_token_malloc(sizes[s], DATA);
                        pointers[i] = __alloc_token_malloc(sizes[s], POINTER);
                        none[i] = malloc(sizes[s]);
                        assert_true(data[i] && pointers[i] && none[i]);
                        memset(data[i], 1, sizes[s]);
                        assert_non_null(stook_heap_of(data[i]));
                        assert_non_null(stook_heap_of(pointers[i]));
                        assert_ptr_not_equal(stook_heap_of(data[i]), stook_heap_of(pointers[i]));
                        assert_null(stook_heap_of(none[i]));
                }
                for (int i = 0; i < EACH; i++)
                        for (int j = 0; j < EACH; j++) {
                                assert_int_not_equal(page(data[i]), page(pointers[j]));
                                assert_int_not_equal(page(data[i]), page(none[j]));
                        }
                for (int i = 0; i < EACH; i++) {
                        free(data[i]);
                        free(pointers[i]);
                        free(none[i]);
                }
        }
}

/* The upper bits say which; an even number of partitions divides the halves. */
static void there_are_as_many_as_was_said(void **state)
{
        struct stook_heap *seen[64] = { NULL }, *last = NULL;
        unsigned different = 0;

        (void)state;
        for (unsigned i = 0; i < 64; i++) {
                void *object = __alloc_token_malloc(40, ((uint64_t)i << 58) + 12345);

                seen[i] = stook_heap_of(object);
                assert_non_null(seen[i]);
                different += seen[i] != last;
                last = seen[i];
                free(object);
        }
        assert_int_equal(different, partitions());
        assert_ptr_not_equal(seen[31], seen[32]);
        for (unsigned token = 0; token < 16; token++) {         /* -falloc-token-max=16 or less */
                void *object = __alloc_token_malloc(40, token);
                struct stook_heap *heap = stook_heap_of(object);

                for (unsigned i = 0; i < 64; i++)
                        assert_ptr_not_equal(heap, seen[i]);
                assert_ptr_not_equal(heap, last);
                last = heap;
                free(object);
        }
}

static void *take(void *tokens)
{
        void **objects = tokens;

        for (uint64_t i = 0; i < 16; i++)
                objects[i] = __alloc_token_malloc(3000, i);
        return NULL;
}

/* Threads that meet where a partition is made have one of it. */
static void threads_have_the_same(void **state)
{
        pthread_t thread[4];
        void *objects[4][16];

        (void)state;
        for (int i = 0; i < 4; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, take, objects[i]), 0);
        for (int i = 0; i < 4; i++)
                assert_int_equal(pthread_join(thread[i], NULL), 0);
        for (int i = 0; i < 16; i++) {
                for (int t = 1; t < 4; t++)
                        assert_ptr_equal(stook_heap_of(objects[0][i]),
                                         stook_heap_of(objects[t][i]));
                for (int t = 0; t < 4; t++)
                        free(objects[t][i]);
        }
}

/* ---- each call ---- */

static void is_data(void *object, size_t align)
{
        void *other = __alloc_token_malloc(1, DATA);

        assert_non_null(object);
        assert_int_equal(off_by(object, align), 0);
        assert_ptr_equal(stook_heap_of(object), stook_heap_of(other));
        free(other);
        free(object);
}

static void each_call_means_what_it_means_without(void **state)
{
        static const char nothrow;
        void *object = NULL, *before = &object;
        char *zeros = __alloc_token_calloc(30, 100, DATA);

        (void)state;
        for (int i = 0; i < 3000; i++)
                assert_int_equal(zeros[i], 0);
        is_data(zeros, 16);
        is_data(__alloc_token_malloc(0, DATA), 16);
        is_data(__alloc_token_realloc(NULL, 10, DATA), 16);
        is_data(__alloc_token_reallocarray(NULL, 3, 10, DATA), 16);
        is_data(__alloc_token_aligned_alloc(256, 10, DATA), 256);
        is_data(__alloc_token_memalign(100, 10, DATA), 128);
        is_data(__alloc_token_memalign(1, 10, DATA), 16);
        is_data(__alloc_token_valloc(10, DATA), 4096);
        is_data(__alloc_token_pvalloc(10, DATA), 4096);
        object = __alloc_token_pvalloc(5000, DATA);
        assert_true(malloc_usable_size(object) >= 8192);
        free(object);
        assert_int_equal(__alloc_token_posix_memalign(&object, 64, 100, DATA), 0);
        is_data(object, 64);
        is_data(token_new(10, DATA), 16);
        is_data(token_new_array(10, DATA), 16);
        is_data(token_new_aligned(10, 128, DATA), 128);
        is_data(token_new_array_aligned(10, 128, DATA), 128);
        is_data(token_new_nothrow(10, &nothrow, DATA), 16);
        is_data(token_new_array_nothrow(10, &nothrow, DATA), 16);
        is_data(token_new_aligned_nothrow(10, 128, &nothrow, DATA), 128);
        is_data(token_new_array_aligned_nothrow(10, 128, &nothrow, DATA), 128);

        /* What fails. */
        object = before;
        errno = 0;
        assert_int_equal(__alloc_token_posix_memalign(&object, 48, 100, DATA), EINVAL);
        assert_int_equal(__alloc_token_posix_memalign(&object, 2, 100, DATA), EINVAL);
        assert_int_equal(__alloc_token_posix_memalign(&object, 64, too_large, DATA), ENOMEM);
        assert_ptr_equal(object, before);
        assert_int_equal(errno, 0);
        assert_null(__alloc_token_aligned_alloc(48, 100, DATA));
        assert_int_equal(errno, EINVAL);
        errno = 0;
        assert_null(__alloc_token_malloc(too_large, DATA));
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_null(__alloc_token_reallocarray(NULL, too_large, 4, DATA));
        assert_int_equal(errno, ENOMEM);
        assert_null(__alloc_token_calloc(too_large, 4, DATA));
        assert_null(__alloc_token_pvalloc(too_large, DATA));
        assert_null(token_new_nothrow(too_large, &nothrow, DATA));
        assert_null(token_new_aligned_nothrow(too_large, 64, &nothrow, DATA));
}

/* Also where the call names another token, or none. */
static void what_grows_stays_in_its_partition(void **state)
{
        char *object = __alloc_token_malloc(10, POINTER);
        struct stook_heap *heap = stook_heap_of(object);

        (void)state;
        memcpy(object, "012345678", 10);
        for (size_t size = 20; size < (4 << 20); size *= 3) {
                object = size % 2 ? realloc(object, size)
                        : __alloc_token_realloc(object, size, DATA);
                assert_ptr_equal(stook_heap_of(object), heap);
                assert_string_equal(object, "012345678");
        }
        object = __alloc_token_reallocarray(object, 2, 50, DATA);
        assert_ptr_equal(stook_heap_of(object), heap);
        assert_null(__alloc_token_realloc(object, 0, POINTER));         /* as realloc(p, 0) */
        object = malloc(10);
        object = __alloc_token_realloc(object, 5000, DATA);
        assert_null(stook_heap_of(object));
        free(object);
}

/* With hardening's `pairs` and debug mode F none of these is a mismatch. */
static void each_delete_takes_what_its_new_made(void **state)
{
        static const size_t sizes[] = { 40, 5000, 300000 };

        (void)state;
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
                delete(token_new(sizes[s], POINTER));
                delete_array(token_new_array(sizes[s], DATA));
                delete_sized(token_new(sizes[s], DATA), sizes[s]);
                delete_aligned(token_new_aligned(sizes[s], 64, POINTER), 64);
                free(__alloc_token_realloc(__alloc_token_malloc(sizes[s], DATA), 2 * sizes[s],
                                           DATA));
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_delete_takes_what_its_new_made),
                cmocka_unit_test(threads_have_the_same),
                cmocka_unit_test(halves_never_share_a_page),
                cmocka_unit_test(there_are_as_many_as_was_said),
                cmocka_unit_test(each_call_means_what_it_means_without),
                cmocka_unit_test(what_grows_stays_in_its_partition),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
