/*
 * What this proves: a search for room that finds none looks at no node whose keys all lie beyond
 * its limits. Such nodes are put out of reach meanwhile: a search that reads one dies.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <cmocka.h>
#include <stook/maple.h>
#include "../../maple/mtree.h"
#include "fake_cache.h"

#define RANGES   600
#define KEYS      10                    /* of a range, and of the gap behind it */
#define MOST    2000                    /* pointers to nodes, all of them */

static struct stook_maple tree = STOOK_MAPLE_INIT(STOOK_MAPLE_GAPS);
static struct mnode *closed;            /* may not be read */
static struct { void **at, *was; } moved[MOST];
static size_t moves;

static void close_beyond(struct mnode *node, unsigned level, uint64_t first, uint64_t last,
                         uint64_t min, uint64_t max)
{
        for (unsigned i = 0; i < mnode_count(node); i++) {
                uint64_t from = first, to = last;

                mnode_narrow(node, MNODE_INNER_GAPS, i, &from, &to);
                if (to >= min && from <= max) {
                        if (level > 1)
                                close_beyond(node->gaps.entry[i], level - 1, from, to, min, max);
                        continue;
                }
                assert_true(moves < MOST);
                moved[moves].at = &node->gaps.entry[i];
                moved[moves++].was = node->gaps.entry[i];
                node->gaps.entry[i] = closed;
        }
}

static void open_all(void)
{
        while (moves--)
                *moved[moves].at = moved[moves].was;
        moves = 0;
}

static void test_ends_at_the_other_limit(void **state)
{
        uintptr_t root;
        uint64_t found = 7;

        (void)state;
        for (uint64_t i = 0; i < RANGES; i++)
                assert_int_equal(stook_maple_store(&tree, i * 2 * KEYS, i * 2 * KEYS + KEYS - 1,
                                                   &tree), 0);
        assert_true(stook_maple_height(&tree) > 2);
        root = mtree_root(&tree);
        /* Half of the gap before a range, the range, and half of the gap behind it. */
        for (uint64_t i = 1; i < RANGES - 1; i++) {
                uint64_t min = i * 2 * KEYS - KEYS / 2, max = min + 2 * KEYS - 1;

                close_beyond(mroot_node(root), mroot_height(root) - 1, 0, UINT64_MAX, min, max);
                assert_true(moves > 0);
                assert_int_equal(stook_maple_empty_area(&tree, KEYS, min, max, &found), -EBUSY);
                assert_int_equal(stook_maple_empty_area_rev(&tree, KEYS, min, max, &found), -EBUSY);
                open_all();
        }
        assert_int_equal(found, 7);
        assert_int_equal(stook_maple_validate(&tree), 0);
        stook_maple_destroy(&tree);
        assert_int_equal(fake_live, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ends_at_the_other_limit),
        };

        closed = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (closed == MAP_FAILED)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
