/*
 * What this proves: a cursor that is overtaken by writes finds its place again. Its leaf may be
 * changed, replaced, freed, and used again by another tree; by the same thread while it holds the
 * lock, or by another thread while the lock is let go without a pause. Freed leaves read as poison
 * (fake_cache.c), and ASan reports a look at one.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stook/maple.h>
#include "fake_cache.h"

#define MAX UINT64_MAX

static struct stook_maple tree, other_tree;
static char a __attribute__((aligned(8))), b __attribute__((aligned(8)));
static char c __attribute__((aligned(8))), d __attribute__((aligned(8)));
static void *const A = &a, *const B = &b, *const C = &c, *const D = &d;

/* [10, 19] A, [20, 29] B, [100, 199] C */
static void three(unsigned flags)
{
        assert_int_equal(stook_maple_init(&tree, flags), 0);
        assert_int_equal(stook_maple_init(&other_tree, flags), 0);
        assert_int_equal(stook_maple_store(&tree, 10, 19, A), 0);
        assert_int_equal(stook_maple_store(&tree, 20, 29, B), 0);
        assert_int_equal(stook_maple_store(&tree, 100, 199, C), 0);
}

static int end(void **state)
{
        (void)state;
        stook_maple_destroy(&tree);
        stook_maple_destroy(&other_tree);
        fake_grace();
        return fake_live ? -1 : 0;
}

static void check(const struct stook_maple_cursor *cursor, enum stook_maple_status status,
                  uint64_t first, uint64_t last)
{
        assert_int_equal(stook_maple_cursor_status(cursor), status);
        assert_int_equal(cursor->first, first);
        assert_int_equal(cursor->last, last);
}

/* A cursor in a leaf that is replaced, or changed, behind its back sees what is there now. */
static void test_overtaken(void **state)
{
        (void)state;
        for (unsigned flags = 0; flags < 4; flags++) {
                STOOK_MAPLE_CURSOR(cursor, &tree, 10, 10);

                three(flags | STOOK_MAPLE_EXTERNAL_LOCK);
                assert_ptr_equal(stook_maple_cursor_find(&cursor, MAX), A);
                assert_int_equal(stook_maple_store(&tree, 22, 24, C), 0);
                assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), B);
                check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 20, 21);
                assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), C);
                check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 22, 24);
                for (uint64_t key = 200; key < 20000; key += 3)
                        assert_int_equal(stook_maple_store(&tree, key, key, A), 0);
                assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), B);
                assert_int_equal(stook_maple_store(&tree, 0, MAX, NULL), 0);
                assert_null(stook_maple_cursor_next(&cursor, MAX));
                assert_null(stook_maple_cursor_prev(&cursor, 0));
                assert_int_equal(end(NULL), 0);
        }
}

/* A thread with the lock need not be a reader: the leaf that its cursor stood in may be gone. */
static void test_overtaken_and_the_leaf_gone(void **state)
{
        (void)state;
        for (unsigned flags = 0; flags < 8; flags++) {
                STOOK_MAPLE_CURSOR(cursor, &tree, 10, 10);
                STOOK_MAPLE_CURSOR(second, &tree, 20, 24);

                three(flags);
                stook_maple_lock(&tree);
                assert_ptr_equal(stook_maple_cursor_find(&cursor, MAX), A);
                assert_int_equal(stook_maple_store(&tree, 22, 24, C), 0);
                fake_grace();
                assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), B);
                check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 20, 21);
                assert_int_equal(stook_maple_cursor_store(&second, NULL), 0);
                fake_grace();
                assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), B);
                check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 25, 29);
                stook_maple_unlock(&tree);
                assert_int_equal(end(NULL), 0);
        }
}

/* ---- another thread writes while the lock is let go ---- */

static void *replace_the_leaf(void *unused)
{
        (void)unused;
        stook_maple_store(&tree, 22, 24, C);
        return NULL;
}

static void *fill_the_tree(void *unused)
{
        (void)unused;
        for (uint64_t key = 200; key < 20000; key += 3)
                stook_maple_store(&tree, key, key, D);
        return NULL;
}

static void *destroy_and_fill_again(void *unused)
{
        (void)unused;
        stook_maple_destroy(&tree);
        stook_maple_store(&tree, 20, 21, B);
        stook_maple_store(&tree, 40, 49, C);
        return NULL;
}

static void *(*const writes[])(void *) = {
        replace_the_leaf, fill_the_tree, destroy_and_fill_again,
};
#define WRITES (sizeof(writes) / sizeof(*writes))

static void *fill_the_other_tree(void *unused)
{
        (void)unused;
        for (uint64_t key = 0; key < 60; key++)
                stook_maple_store(&other_tree, key * 10, key * 10 + 9, D);
        return NULL;
}

/* Then all readers leave, and another tree takes what was freed. This thread writes nothing. */
static void by_another_thread(void *(*write)(void *))
{
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, write, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        fake_grace();
        assert_int_equal(pthread_create(&thread, NULL, fill_the_other_tree, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *find(struct stook_maple_cursor *cursor)
{
        return stook_maple_cursor_find(cursor, MAX);
}

static void *next(struct stook_maple_cursor *cursor)
{
        return stook_maple_cursor_next(cursor, MAX);
}

static void *next_range(struct stook_maple_cursor *cursor)
{
        return stook_maple_cursor_next_range(cursor, MAX);
}

/* From [10, 19] upwards. */
static void *(*const moves_up[])(struct stook_maple_cursor *) = { find, next, next_range };
#define MOVES_UP (sizeof(moves_up) / sizeof(*moves_up))

static void test_lock_let_go(void **state)
{
        (void)state;
        for (unsigned flags = 0; flags < 8; flags++)
                for (unsigned i = 0; i < WRITES * MOVES_UP; i++) {
                        uint64_t last = writes[i % WRITES] == fill_the_tree ? 29 : 21;
                        STOOK_MAPLE_CURSOR(cursor, &tree, 10, 10);

                        three(flags);
                        stook_maple_lock(&tree);
                        assert_ptr_equal(stook_maple_cursor_find(&cursor, MAX), A);
                        stook_maple_unlock(&tree);
                        by_another_thread(writes[i % WRITES]);
                        stook_maple_lock(&tree);
                        assert_ptr_equal(moves_up[i / WRITES](&cursor), B);
                        check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 20, last);
                        stook_maple_unlock(&tree);
                        assert_int_equal(end(NULL), 0);
                }
}

/* Downwards, to the same key, and by an erase, which begins by a walk. */
static void test_lock_let_go_other_calls(void **state)
{
        (void)state;
        for (unsigned flags = 0; flags < 8; flags++) {
                STOOK_MAPLE_CURSOR(down, &tree, 100, 100);
                STOOK_MAPLE_CURSOR(same, &tree, 23, 23);
                STOOK_MAPLE_CURSOR(erasing, &tree, 23, 23);
                void *old;

                three(flags);
                stook_maple_lock(&tree);
                assert_ptr_equal(stook_maple_cursor_walk(&down), C);
                assert_ptr_equal(stook_maple_cursor_walk(&same), B);
                assert_ptr_equal(stook_maple_cursor_walk(&erasing), B);
                stook_maple_unlock(&tree);
                by_another_thread(replace_the_leaf);
                stook_maple_lock(&tree);
                assert_ptr_equal(stook_maple_cursor_prev(&down, 0), B);
                check(&down, STOOK_MAPLE_CURSOR_ACTIVE, 25, 29);
                assert_ptr_equal(stook_maple_cursor_walk(&same), B);
                check(&same, STOOK_MAPLE_CURSOR_ACTIVE, 20, 21);
                erasing.first = 23;
                assert_int_equal(stook_maple_cursor_erase(&erasing, &old), 0);
                assert_ptr_equal(old, C);
                assert_null(stook_maple_load(&tree, 22));
                stook_maple_unlock(&tree);
                assert_int_equal(end(NULL), 0);
        }
}

/*
 * Used under the lock, then in a read section that began after the writes, without a pause. (The
 * fake has no readers: nothing is freed until a test calls fake_grace().)
 */
static void test_from_the_lock_to_a_section(void **state)
{
        (void)state;
        for (unsigned flags = STOOK_MAPLE_RCU; flags < 8; flags++)
                for (unsigned i = 0; flags & STOOK_MAPLE_RCU && i < WRITES; i++) {
                        STOOK_MAPLE_CURSOR(cursor, &tree, 10, 10);

                        three(flags);
                        stook_maple_lock(&tree);
                        assert_ptr_equal(stook_maple_cursor_find(&cursor, MAX), A);
                        stook_maple_unlock(&tree);
                        by_another_thread(writes[i]);
                        assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), B);
                        assert_int_equal(stook_maple_cursor_status(&cursor),
                                         STOOK_MAPLE_CURSOR_ACTIVE);
                        assert_int_equal(end(NULL), 0);
                }
}

static void *erase_far_away(void *unused)
{
        (void)unused;
        stook_maple_erase(&tree, 14999, NULL);
        return NULL;
}

/* A reader goes by its section: writes elsewhere do not send it down from the root again. */
static void test_readers_keep_their_leaf(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 10, 10);
        pthread_t thread;
        void *leaf;

        (void)state;
        three(STOOK_MAPLE_RCU);
        fill_the_tree(NULL);
        assert_ptr_equal(stook_maple_cursor_find(&cursor, MAX), A);
        leaf = cursor.node;
        assert_non_null(leaf);
        assert_ptr_equal(stook_maple_load(&tree, 14999), D);
        assert_int_equal(pthread_create(&thread, NULL, erase_far_away, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_null(stook_maple_load(&tree, 14999));
        assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), B);
        assert_ptr_equal(cursor.node, leaf);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(test_overtaken, end),
                cmocka_unit_test_teardown(test_overtaken_and_the_leaf_gone, end),
                cmocka_unit_test_teardown(test_lock_let_go, end),
                cmocka_unit_test_teardown(test_lock_let_go_other_calls, end),
                cmocka_unit_test_teardown(test_from_the_lock_to_a_section, end),
                cmocka_unit_test_teardown(test_readers_keep_their_leaf, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
