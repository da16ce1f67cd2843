/*
 * What this proves: the bits of users (harden/harden.c): one for each 8 bytes, of any
 * address, and of two threads that end one user's time at once exactly one succeeds.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "harden/harden.h"

#define ROUNDS  2000
#define THREADS 4

/* The bits ask nothing of the memory: any number serves as an address. */
static const void *at(uintptr_t addr)
{
        return (const void *)addr;
}

static const uintptr_t bases[] = {
        0x10000, 0xfffff8, 0x1000000, 0x1fffffffff8, 0x2000000000, 0x7ec55220d000, 0xfffffffffff0,
};

static void each_eight_bytes_have_a_bit(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++) {
                assert_false(stook_harden_has_user(at(bases[i])));
                assert_false(stook_harden_user_ends(at(bases[i])));
                assert_true(stook_harden_user_begins(at(bases[i])));
                assert_false(stook_harden_user_begins(at(bases[i])));
                assert_true(stook_harden_has_user(at(bases[i])));
                assert_false(stook_harden_has_user(at(bases[i] - 8)));
                assert_false(stook_harden_has_user(at(bases[i] + 8)));
                assert_true(stook_harden_user_ends(at(bases[i])));
                assert_false(stook_harden_user_ends(at(bases[i])));
                assert_false(stook_harden_has_user(at(bases[i])));
        }
}

static void what_no_bit_stands_for_is_believed(void **state)
{
        (void)state;
        assert_true(stook_harden_user_begins(at(UINTPTR_MAX - 15)));
        assert_true(stook_harden_user_begins(at(UINTPTR_MAX - 15)));
        assert_true(stook_harden_has_user(at(UINTPTR_MAX - 15)));
        assert_true(stook_harden_user_ends(at(UINTPTR_MAX - 15)));
        assert_true(stook_harden_user_ends(at(UINTPTR_MAX - 15)));
}

static pthread_barrier_t start;
static unsigned ended;                  /* atomic */

static void *end_all(void *data)
{
        pthread_barrier_wait(&start);
        for (uintptr_t i = 0; i < ROUNDS; i++)
                if (stook_harden_user_ends(at(0x300000000000 + i * 8)))
                        __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
        return data;
}

static void one_of_many_ends_it(void **state)
{
        pthread_t threads[THREADS];

        (void)state;
        for (uintptr_t i = 0; i < ROUNDS; i++)
                assert_true(stook_harden_user_begins(at(0x300000000000 + i * 8)));
        pthread_barrier_init(&start, NULL, THREADS);
        for (int i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, end_all, NULL), 0);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        assert_int_equal(ended, ROUNDS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_eight_bytes_have_a_bit),
                cmocka_unit_test(what_no_bit_stands_for_is_believed),
                cmocka_unit_test(one_of_many_ends_it),
        };

        /* The bits are metadata: the library must have started. */
        stook_free(stook_malloc(1));
        return cmocka_run_group_tests(tests, NULL, NULL);
}
