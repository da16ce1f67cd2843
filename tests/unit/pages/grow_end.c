/*
 * Proves stook_pages_grow_end (span_join.c): large objects that are written lie side by side,
 * because each has what the last one left of its huge page. That is not purged in between, though
 * the process reaches a new height with each (rise.c). At the end all of it is given back.
 */
#include "pages_env.h"
#include "pages/pages_node.h"

#define BYTES  (((size_t)3 << 20) - ((size_t)128 << 10))
#define SPANS  10
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
        assert_int_equal(stook_density_found(&node->density[STOOK_DENSITY_LARGE]), STOOK_DENSE);
        for (unsigned n = SECOND; n < SPANS; n++)
                assert_int_equal(spans[n]->start, spans[n - 1]->start + BYTES);
        assert_int_equal(node->retaken_bytes, 0);
        assert_sound();
        for (unsigned n = 0; n < SPANS; n++)
                stook_span_give(spans[n]);
        assert_int_equal(node->bins[STOOK_SET_DIRTY].bytes, 0);
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
        };

        return cmocka_run_group_tests(tests, start, NULL);
}
