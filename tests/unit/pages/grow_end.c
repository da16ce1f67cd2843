/*
 * Proves stook_pages_grow_end (span_grow.c): large objects that are written lie side by side,
 * because each has what the last one left of its huge page. That is not purged in between, though
 * the process reaches a new high-water mark with each (policy/dirty.c). At the end all of it is
 * given back. What the heap grows by beside a purged piece is no refault.
 */
#include "pages_env.h"
#include "pages/pages_node.h"

#define BYTES  (((size_t)3 << 20) - ((size_t)128 << 10))
#define SPANS  10
#define PIECE  ((size_t)256 << 10)
#define SECOND 4                        /* from here on the heap asks for huge pages */

static struct stook_span *spans[SPANS];

static void take(unsigned n)
{
        spans[n] = stook_span_take(0, BYTES, 0);
        assert_non_null(spans[n]);
        memset((void *)spans[n]->start, 1, BYTES);
        stook_pages_pay();
}

static void large_objects_lie_side_by_side(void **state)
{
        struct stook_pages_node *node = &stook_pages_nodes[0];

        (void)state;
        stook_pages_set_decay_ms(UINT32_MAX / 4);       /* nothing by age */
        for (unsigned n = 0; n < SPANS; n++)
                take(n);
        assert_int_equal(stook_density_found(&node->ledger.density[STOOK_DENSITY_LARGE]),
                         STOOK_DENSE);
        for (unsigned n = SECOND; n < SPANS; n++)
                assert_int_equal(spans[n]->start, spans[n - 1]->start + BYTES);
        assert_int_equal(node->ledger.refault, 0);
        assert_sound();
        for (unsigned n = 0; n < SPANS; n++)
                stook_span_give(spans[n]);
        assert_int_equal(node->bins[STOOK_SET_DIRTY].bytes, 0);
        assert_sound();
}

/* Runs after it: the heap ends in memory that was purged. */
static void what_is_fresh_beside_a_purged_piece_was_not_missed(void **state)
{
        struct stook_pages_node *node = &stook_pages_nodes[0];
        struct stook_span *last = stook_pages_free_at(node, stook_range_frontier(0) - 1);
        struct stook_span *before, *span;

        (void)state;
        assert_non_null(last);
        assert_int_equal(last->state, STOOK_SPAN_PURGED);
        before = stook_span_take(0, last->bytes - PIECE, 0);
        assert_non_null(before);
        node->ledger.refault = 0;
        span = stook_span_take(0, BYTES, 0);
        assert_non_null(span);
        assert_int_equal(span->start, before->start + before->bytes);
        assert_int_equal(node->ledger.refault, 0);
        stook_span_give(span);
        stook_span_give(before);
        assert_sound();
}

static int start(void **state)
{
        (void)state;
        return stook_pages_start() ? 0 : -1;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(large_objects_lie_side_by_side),
                cmocka_unit_test(what_is_fresh_beside_a_purged_piece_was_not_missed),
        };

        return cmocka_run_group_tests(tests, start, NULL);
}
