/*
 * Proves that two threads may copy two trees into each other at the same time: one of them finds
 * the target not empty, and neither waits for ever.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include <stook/maple.h>

#define ROUNDS 500000

static struct stook_maple trees[2];
static unsigned copies, refused;        /* atomic */

static void *copy(void *way)
{
        unsigned from = (unsigned)(uintptr_t)way;

        for (unsigned i = 0; i < ROUNDS; i++) {
                int error = stook_maple_dup(&trees[from], &trees[!from]);

                if (error == -EINVAL)
                        __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
                else if (!error)
                        __atomic_fetch_add(&copies, 1, __ATOMIC_RELAXED);
        }
        return NULL;
}

static void test_two_trees_into_each_other(void **state)
{
        pthread_t threads[2];

        (void)state;
        assert_int_equal(stook_maple_init(&trees[0], 0), 0);
        assert_int_equal(stook_maple_init(&trees[1], 0), 0);
        for (uintptr_t i = 0; i < 100; i++)
                assert_int_equal(stook_maple_store(&trees[0], i * 20, i * 20 + 9, &trees), 0);
        alarm(100);
        for (uintptr_t i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, copy, (void *)i), 0);
        for (unsigned i = 0; i < 2; i++)
                pthread_join(threads[i], NULL);
        alarm(0);
        /* an empty tree into a full one, perhaps, before the copy: refused */
        assert_int_equal(copies, 1);
        assert_int_equal(refused, 2 * ROUNDS - 1);
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(stook_maple_validate(&trees[i]), 0);
                assert_ptr_equal(stook_maple_load(&trees[i], 1985), &trees);
                stook_maple_destroy(&trees[i]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_two_trees_into_each_other),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
