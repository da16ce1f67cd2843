/*
 * What this proves: what a tree and a cursor can be told beforehand holds. Nodes for a known number
 * of entries are enough, whatever the tree and the gaps. RCU can be switched while the tree lives.
 * A registered lock is asked, and a write without it ends the process. A cursor that is moved
 * within its leaf keeps it. What is printed of a cursor is so. Wrong arguments are refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/maple.h>
#include "fake_cache.h"

#define MAX UINT64_MAX

static struct stook_maple tree;
static char entries[64] __attribute__((aligned(8)));
static void *const A = entries, *const B = entries + 8;

static int end(void **state)
{
        (void)state;
        fake_fail_in = 0;
        fake_no_rcu = false;
        stook_maple_destroy(&tree);
        fake_grace();
        return fake_live ? -1 : 0;
}

/* ---- a known number of entries ---- */

/*
 * Loads @n entries of @width keys every @stride keys behind what is there, with no allocation. What
 * is held for a large load is little more than is used with gaps, and twice that without.
 */
static void load(uint64_t from, uint64_t n, uint64_t width, uint64_t stride)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);
        uint64_t held, used;

        stook_maple_lock(&tree);
        assert_int_equal(stook_maple_cursor_expect(&cursor, n), 0);
        held = cursor.expected_left;
        fake_requests = 0;
        fake_fail_in = 1;
        for (uint64_t i = 0; i < n; i++) {
                uint64_t first = from + i * stride;

                stook_maple_cursor_set(&cursor, first, first + width - 1);
                assert_int_equal(stook_maple_cursor_store(&cursor, A), 0);
        }
        fake_fail_in = 0;
        assert_int_equal(fake_requests, 0);
        used = held - cursor.expected_left;
        if (n >= 1000)
                assert_true(held * 10 <= used * (stride > width ? 12 : 24));
        stook_maple_cursor_finish(&cursor);
        stook_maple_unlock(&tree);
        assert_int_equal(fake_live, stook_maple_nodes(&tree));
        assert_int_equal(stook_maple_validate(&tree), 0);
        for (uint64_t i = 0; i < n; i += 7)
                assert_ptr_equal(stook_maple_load(&tree, from + i * stride), A);
}

static void test_expected(void **state)
{
        static const uint64_t numbers[] = { 0, 1, 2, 15, 16, 17, 33, 100, 101, 1000, 5000 };

        for (unsigned flags = 0; flags < 2; flags++)
                for (unsigned i = 0; i < 3 * sizeof(numbers) / sizeof(*numbers); i++) {
                        uint64_t n = numbers[i / 3], stride = i % 3 ? 3 : 1;

                        assert_int_equal(stook_maple_init(&tree, flags), 0);
                        /* on an empty tree, without and with gaps, and behind any other shape */
                        for (uint64_t key = 0; i % 3 == 2 && key < n * 3; key += 2 + key % 3)
                                assert_int_equal(stook_maple_store(&tree, key, key, B), 0);
                        load(n * 4, n, 1, stride);
                        load(n * 20, n, 2, 2);
                        assert_int_equal(end(state), 0);
                }
}

/* One entry after the other, each behind a tree of another number of entries. */
static void test_expected_one_by_one(void **state)
{
        (void)state;
        for (unsigned flags = 0; flags < 2; flags++) {
                assert_int_equal(stook_maple_init(&tree, flags), 0);
                for (uint64_t i = 0; i < 400; i++)
                        load(i * 3, 1, 1 + i % 2, 1);
                assert_int_equal(end(state), 0);
        }
}

/* Gaps here and there, behind trees of all kinds of ends. */
static void test_expected_any_gaps(void **state)
{
        uint64_t random = 1;

        (void)state;
        for (unsigned i = 0; i < 400; i++) {
                STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);
                uint64_t key = 0;

                assert_int_equal(stook_maple_init(&tree, i % 2), 0);
                for (unsigned j = 0; j < i; j++) {
                        random = random * 6364136223846793005 + 1442695040888963407;
                        key = random >> 32 & 1023;
                        assert_int_equal(stook_maple_store(&tree, key, key + random % 4, B), 0);
                }
                stook_maple_lock(&tree);
                assert_int_equal(stook_maple_cursor_expect(&cursor, i), 0);
                fake_fail_in = 1;
                key = 1027 + i % 3;
                for (unsigned j = 0; j < i; j++) {
                        random = random * 6364136223846793005 + 1442695040888963407;
                        stook_maple_cursor_set(&cursor, key, key);
                        assert_int_equal(stook_maple_cursor_store(&cursor, A), 0);
                        key += 1 + (random >> 32) % (1 + i % 3);
                }
                fake_fail_in = 0;
                stook_maple_cursor_finish(&cursor);
                stook_maple_unlock(&tree);
                assert_int_equal(stook_maple_validate(&tree), 0);
                assert_int_equal(end(state), 0);
        }
}

static void test_expected_refused(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);

        (void)state;
        assert_int_equal(stook_maple_init(&tree, STOOK_MAPLE_RCU), 0);
        assert_int_equal(stook_maple_cursor_expect(&cursor, 10), -EINVAL);
        assert_int_equal(stook_maple_set_rcu(&tree, false), 0);
        assert_int_equal(stook_maple_cursor_expect(&cursor, (1 << 30) + 1), -EINVAL);
        assert_int_equal(stook_maple_cursor_expect(&cursor, 10), 0);
        size_t live = fake_live;

        fake_fail_in = 3;
        assert_int_equal(stook_maple_cursor_expect(&cursor, 10000), -ENOMEM);
        assert_int_equal(fake_live, live);
        fake_fail_in = 0;
        stook_maple_cursor_finish(&cursor);
        assert_int_equal(fake_live, 0);
}

/* A store may be preallocated while a load is expected; each has its nodes. */
static void test_expected_and_preallocated(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 5, 6);

        (void)state;
        assert_int_equal(stook_maple_init(&tree, 0), 0);
        stook_maple_lock(&tree);
        assert_int_equal(stook_maple_cursor_expect(&cursor, 20), 0);
        assert_int_equal(stook_maple_cursor_preallocate(&cursor, A), 0);
        fake_fail_in = 1;
        assert_int_equal(stook_maple_cursor_store_prealloc(&cursor, A), 0);
        for (uint64_t i = 0; i < 19; i++) {
                stook_maple_cursor_set(&cursor, 10 + i, 10 + i);
                assert_int_equal(stook_maple_cursor_store(&cursor, B), 0);
        }
        fake_fail_in = 0;
        stook_maple_cursor_finish(&cursor);
        stook_maple_unlock(&tree);
        assert_ptr_equal(stook_maple_load(&tree, 28), B);
}

/* ---- RCU on and off ---- */

static void test_set_rcu(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);

        (void)state;
        assert_int_equal(stook_maple_init(&tree, STOOK_MAPLE_GAPS), 0);
        for (uint64_t i = 0; i < 500; i++)
                assert_int_equal(stook_maple_store(&tree, i * 2, i * 2, A), 0);
        assert_int_equal(fake_waiting, 0);
        stook_maple_lock(&tree);
        assert_ptr_equal(stook_maple_cursor_find(&cursor, MAX), A);
        assert_int_equal(stook_maple_set_rcu(&tree, true), 0);          /* under the lock, too */
        stook_maple_unlock(&tree);
        for (uint64_t i = 0; i < 500; i += 3)
                assert_int_equal(stook_maple_store(&tree, i * 2, i * 2 + 1, B), 0);
        assert_true(fake_waiting >= 166);                               /* a copy for each */
        fake_grace();
        stook_maple_lock(&tree);
        assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), B);
        stook_maple_unlock(&tree);
        assert_int_equal(cursor.first, 0);
        assert_int_equal(cursor.last, 1);
        assert_int_equal(stook_maple_set_rcu(&tree, false), 0);
        assert_int_equal(stook_maple_store(&tree, 3, 3, B), 0);
        assert_int_equal(fake_waiting, 0);
        assert_int_equal(stook_maple_validate(&tree), 0);
        assert_int_equal(fake_live, stook_maple_nodes(&tree));
        assert_ptr_equal(stook_maple_load(&tree, 3), B);
}

/* The node that a full free_rcu did not take is freed after RCU is off, too. */
static void test_set_rcu_with_deferred_nodes(void **state)
{
        (void)state;
        assert_int_equal(stook_maple_init(&tree, STOOK_MAPLE_RCU), 0);
        fake_rcu_full = false;
        for (uint64_t i = 0; i < 20; i++)
                assert_int_equal(stook_maple_store(&tree, i, i, A), 0);
        fake_rcu_full = true;
        assert_int_equal(stook_maple_store(&tree, 5, 5, B), 0);
        assert_int_equal(stook_maple_store(&tree, 5, 6, B), 0);
        assert_int_equal(stook_maple_set_rcu(&tree, false), 0);
        fake_rcu_full = false;
        assert_int_equal(stook_maple_store(&tree, 30, 31, B), 0);
        fake_grace();
        assert_int_equal(fake_live, stook_maple_nodes(&tree));
}

/* ---- an external lock ---- */

static bool is_held(const void *lock)
{
        return *(const bool *)lock;
}

static void write_without_the_lock(void)
{
        struct rlimit no_core = { 0, 0 };

        setrlimit(RLIMIT_CORE, &no_core);
        stook_maple_store(&tree, 1, 1, A);
        _exit(0);
}

static void test_external_lock(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 1, 1);
        bool held = false;
        char text[200];
        ssize_t n, all = 0;
        int ends[2], status;
        pid_t pid;

        (void)state;
        assert_int_equal(stook_maple_init(&tree, 0), 0);
        assert_int_equal(stook_maple_set_external_lock(&tree, is_held, &held), -EINVAL);
        assert_int_equal(stook_maple_init(&tree, STOOK_MAPLE_EXTERNAL_LOCK), 0);
        assert_int_equal(stook_maple_store(&tree, 1, 1, B), 0);         /* nothing is registered */
        assert_int_equal(stook_maple_set_external_lock(&tree, is_held, &held), 0);
        assert_int_equal(pipe(ends), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                signal(SIGABRT, SIG_DFL);
                dup2(ends[1], 2);
                write_without_the_lock();
        }
        close(ends[1]);
        while ((n = read(ends[0], text + all, sizeof(text) - 1 - (size_t)all)) > 0)
                all += n;
        close(ends[0]);
        text[all] = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        assert_string_equal(text, "stook: maple tree: a write without the tree's lock held\n");
        held = true;
        assert_int_equal(stook_maple_cursor_store(&cursor, A), 0);
        held = false;
        assert_ptr_equal(stook_maple_load(&tree, 1), A);                /* reads are not checked */
        assert_int_equal(stook_maple_set_external_lock(&tree, NULL, NULL), 0);
        assert_int_equal(stook_maple_store(&tree, 1, 1, B), 0);
}

/* ---- cursors ---- */

static void test_moved_in_its_leaf(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);
        void *leaf;

        (void)state;
        assert_int_equal(stook_maple_init(&tree, 0), 0);
        for (uint64_t i = 0; i < 100; i++)
                assert_int_equal(stook_maple_store(&tree, i * 10, i * 10 + 9, A + i % 8 * 8), 0);
        stook_maple_lock(&tree);
        stook_maple_cursor_walk(&cursor);
        leaf = cursor.node;
        stook_maple_cursor_move(&cursor, 35, 35);
        assert_ptr_equal(cursor.node, leaf);
        assert_ptr_equal(stook_maple_cursor_find(&cursor, MAX), A + 3 * 8);     /* itself */
        assert_ptr_equal(cursor.node, leaf);
        assert_int_equal(cursor.first, 30);
        stook_maple_cursor_move(&cursor, 15, 15);
        assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), A + 2 * 8);     /* beside it */
        stook_maple_cursor_move(&cursor, 995, 995);
        assert_ptr_equal(stook_maple_cursor_walk(&cursor), A + 99 % 8 * 8);
        assert_ptr_not_equal(cursor.node, leaf);
        stook_maple_cursor_move(&cursor, 35, 35);
        stook_maple_cursor_pause(&cursor);
        assert_null(cursor.node);
        assert_ptr_equal(stook_maple_cursor_find(&cursor, MAX), A + 3 * 8);
        stook_maple_unlock(&tree);
}

static void print(const struct stook_maple_cursor *cursor, char *text, size_t size)
{
        FILE *stream = fmemopen(text, size, "w");

        assert_non_null(stream);
        assert_int_equal(stook_maple_cursor_dump(cursor, stream), 0);
        assert_int_equal(fclose(stream), 0);
}

static void test_cursor_dump(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 7, 8);
        char text[400];

        (void)state;
        assert_int_equal(stook_maple_init(&tree, 0), 0);
        print(&cursor, text, sizeof(text));
        assert_non_null(strstr(text, ": start, range 7-8; nodes held: 0 preallocated, 0 expected"));
        assert_int_equal(stook_maple_store(&tree, 5, 9, A), 0);
        stook_maple_lock(&tree);
        stook_maple_cursor_walk(&cursor);
        print(&cursor, text, sizeof(text));
        assert_non_null(strstr(text, ": active, range 5-9; leaf 0-max at 0x"));
        assert_non_null(strstr(text, ", entry 1; nodes"));
        assert_int_equal(stook_maple_store(&tree, 5, 5, B), 0);
        print(&cursor, text, sizeof(text));
        assert_non_null(strstr(text, ", entry 1, overtaken; nodes"));
        assert_int_equal(stook_maple_cursor_expect(&cursor, 1), 0);
        print(&cursor, text, sizeof(text));
        assert_null(strstr(text, " 0 expected"));
        stook_maple_cursor_finish(&cursor);
        stook_maple_unlock(&tree);
}

/* The first key of all may be a placeholder, though the root word cannot hold it. */
static void test_placeholder_alone(void **state)
{
        void *old;

        (void)state;
        for (unsigned flags = 0; flags < 4; flags++) {
                assert_int_equal(stook_maple_init(&tree, flags), 0);
                assert_int_equal(stook_maple_store(&tree, 0, 0, STOOK_MAPLE_PLACEHOLDER), 0);
                assert_null(stook_maple_load(&tree, 0));
                assert_false(stook_maple_empty(&tree));
                assert_true(stook_maple_overlaps(&tree, 0, 0));
                assert_false(stook_maple_overlaps(&tree, 1, MAX));
                assert_int_equal(stook_maple_insert(&tree, 0, 5, A), -EEXIST);
                assert_int_equal(stook_maple_store(&tree, 0, MAX, STOOK_MAPLE_PLACEHOLDER), 0);
                assert_int_equal(stook_maple_validate(&tree), 0);
                assert_null(stook_maple_next(&tree, 0, MAX));
                assert_int_equal(stook_maple_erase(&tree, 9, &old), 0);
                assert_ptr_equal(old, STOOK_MAPLE_PLACEHOLDER);
                assert_true(stook_maple_empty(&tree));
                assert_int_equal(end(state), 0);
        }
}

static void test_refused(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);
        void *reserved = (void *)(uintptr_t)6, *old = B;
        uint64_t start = 7, next = 0;

        (void)state;
        assert_int_equal(stook_maple_init(&tree, 0), 0);
        stook_maple_lock(&tree);
        assert_int_equal(stook_maple_empty_area(&tree, 1, 0, 5, &start), -EINVAL);
        assert_int_equal(stook_maple_cursor_empty_area_next(&cursor, 1, 5), -EINVAL);
        assert_int_equal(stook_maple_cursor_alloc_cyclic(&cursor, A, 0, 5, &next), -EINVAL);
        assert_int_equal(stook_maple_cursor_replace(&cursor, reserved, &old), -EINVAL);
        assert_ptr_equal(old, B);
        stook_maple_unlock(&tree);
        assert_int_equal(stook_maple_init(&tree, STOOK_MAPLE_GAPS), 0);
        stook_maple_lock(&tree);
        assert_int_equal(stook_maple_empty_area(&tree, 0, 0, 5, &start), -EINVAL);
        assert_int_equal(stook_maple_empty_area_rev(&tree, 1, 6, 5, &start), -EINVAL);
        assert_int_equal(stook_maple_cursor_empty_area_prev(&cursor, 0, 0), -EINVAL);
        assert_int_equal(stook_maple_cursor_alloc_cyclic(&cursor, NULL, 0, 5, &next), -EINVAL);
        assert_int_equal(stook_maple_cursor_alloc_cyclic(&cursor, reserved, 0, 5, &next), -EINVAL);
        assert_int_equal(stook_maple_cursor_alloc_cyclic(&cursor, A, 6, 5, &next), -EINVAL);
        assert_false(stook_maple_overlaps(&tree, 5, 4));
        assert_int_equal(start, 7);
        assert_int_equal(next, 0);
        stook_maple_unlock(&tree);
}

/* In a process of its own: once an RCU was chosen it stays so. */
static void test_no_rcu(void **state)
{
        int status;
        pid_t pid;

        (void)state;
        pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                fake_no_rcu = true;
                stook_maple_init(&tree, 0);
                if (stook_maple_set_rcu(&tree, true) != -ENOTSUP || tree.flags)
                        _exit(1);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
        assert_int_equal(stook_maple_init(&tree, 0), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(test_no_rcu, end),    /* first */
                cmocka_unit_test_teardown(test_expected, end),
                cmocka_unit_test_teardown(test_expected_one_by_one, end),
                cmocka_unit_test_teardown(test_expected_any_gaps, end),
                cmocka_unit_test_teardown(test_expected_refused, end),
                cmocka_unit_test_teardown(test_expected_and_preallocated, end),
                cmocka_unit_test_teardown(test_set_rcu, end),
                cmocka_unit_test_teardown(test_set_rcu_with_deferred_nodes, end),
                cmocka_unit_test_teardown(test_external_lock, end),
                cmocka_unit_test_teardown(test_moved_in_its_leaf, end),
                cmocka_unit_test_teardown(test_cursor_dump, end),
                cmocka_unit_test_teardown(test_placeholder_alone, end),
                cmocka_unit_test_teardown(test_refused, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
