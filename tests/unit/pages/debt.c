/*
 * Proves policy/dirty.c: where the process reaches a new high-water mark while dirty memory lies
 * free in pieces that do not fit, as much of that is purged. Below its mark nothing is.
 */
#include "pages_env.h"
#include "pages/pages_node.h"

#define KIB   ((size_t)1 << 10)
#define MIB   ((size_t)1 << 20)
#define PIECE (16 * KIB)
#define HOLES 48                        /* 768 KiB: less than the dirty limit */
#define KEPT  (256 * KIB)               /* policy/dirty.c */

static size_t dirty(void)
{
        struct stook_pages_stats stats;

        stook_pages_stats(&stats);
        return stats.free_dirty_bytes;
}

/* Takes pieces, and gives every second one. */
static void make_holes(struct stook_span *pieces[2 * HOLES])
{
        for (unsigned i = 0; i < 2 * HOLES; i++) {
                pieces[i] = stook_span_take(0, PIECE, 0);
                assert_non_null(pieces[i]);
                memset((void *)pieces[i]->start, 1, PIECE);
        }
        for (unsigned i = 1; i < 2 * HOLES; i += 2)
                stook_span_give(pieces[i]);
}

static void a_new_height_purges_what_does_not_fit(void **state)
{
        static struct stook_span *pieces[2 * HOLES];
        struct stook_span *large;
        size_t left;

        (void)state;
        make_holes(pieces);
        stook_pages_pay();
        assert_int_equal(dirty(), HOLES * PIECE);
        large = stook_span_take(0, MIB, 0);
        assert_non_null(large);
        for (unsigned i = 0; i < 4; i++)
                stook_pages_pay();
        left = dirty();
        assert_in_range(left, 1, KEPT);
        assert_sound();
        /* Up to here it has been: nothing rises, and nothing is owed. */
        stook_span_give(pieces[0]);
        left = dirty();
        pieces[0] = stook_span_take(0, 3 * PIECE, 0);
        assert_non_null(pieces[0]);
        stook_pages_pay();
        assert_true(dirty() + 3 * PIECE >= left);
        stook_span_give(large);
        for (unsigned i = 0; i < 2 * HOLES; i += 2)
                stook_span_give(pieces[i]);
        stook_pages_purge(0);
        assert_sound();
}

/* What a rise had purged is taken again. That says nothing of phases, so nothing more is kept. */
static void what_a_rise_purged_is_not_missed(void **state)
{
        static struct stook_span *pieces[2 * HOLES];
        struct stook_pages_node *node = &stook_pages_nodes[0];
        size_t missed, excused;
        struct stook_span *large;

        (void)state;
        node->ledger.high_water = 0;           /* else the test before was higher */
        make_holes(pieces);
        large = stook_span_take(0, MIB, 0);
        assert_non_null(large);
        for (unsigned i = 0; i < 4; i++)
                stook_pages_pay();
        excused = node->ledger.forced;
        missed = node->ledger.refault;
        assert_in_range(excused, 1, HOLES * PIECE);
        for (unsigned i = 1; i < 2 * HOLES; i += 2) {
                pieces[i] = stook_span_take(0, PIECE, 0);
                assert_non_null(pieces[i]);
        }
        assert_true(node->ledger.forced < excused);
        assert_int_equal(node->ledger.refault, missed);
        stook_span_give(large);
        for (unsigned i = 0; i < 2 * HOLES; i++)
                stook_span_give(pieces[i]);
        stook_pages_purge(0);
        assert_sound();
}

static int start(void **state)
{
        (void)state;
        return stook_pages_start() ? 0 : -1;
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test(a_new_height_purges_what_does_not_fit),
                cmocka_unit_test(what_a_rise_purged_is_not_missed),
        };

        return cmocka_run_group_tests(all, start, NULL);
}
