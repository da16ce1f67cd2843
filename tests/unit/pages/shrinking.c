/*
 * Proves what purge.c keeps in a process that replaces what it has, and in one that shrinks: half
 * of what is in use while two thirds of the most of lately are, far less below that, and next to
 * nothing at the end, though no further call comes.
 */
#include "pages_env.h"
#include "pages/pages_node.h"

#define MIB   ((size_t)1 << 20)
#define SPANS 8
#define EACH  (8 * MIB)

static struct stook_span *spans[SPANS];

static size_t dirty(void)
{
        return stook_pages_nodes[0].bins[STOOK_SET_DIRTY].bytes;
}

static void take(unsigned n)
{
        spans[n] = stook_span_take(0, EACH, 0);
        assert_non_null(spans[n]);
        memset((void *)spans[n]->start, 1, EACH);
}

static void what_is_replaced_stays(void **state)
{
        size_t missed;

        (void)state;
        stook_pages_set_decay_ms(UINT32_MAX / 4);       /* nothing by age, nothing forgotten */
        for (unsigned n = 0; n < SPANS; n++)
                take(n);
        for (unsigned round = 0; round < 4; round++) {
                stook_span_give(spans[0]);
                stook_span_give(spans[1]);
                assert_int_equal(dirty(), 2 * EACH);
                take(0);
                take(1);
                assert_int_equal(dirty(), 0);
        }
        missed = stook_pages_nodes[0].retaken_bytes;
        assert_int_equal(missed, 0);
        assert_sound();
}

/* Runs after it: 64 MiB are in use. */
static void what_shrinks_goes(void **state)
{
        (void)state;
        stook_span_give(spans[0]);
        stook_span_give(spans[1]);
        stook_span_give(spans[2]);
        assert_in_range(dirty(), 0, 5 * EACH / 8);
        for (unsigned n = 3; n < SPANS; n++)
                stook_span_give(spans[n]);
        assert_int_equal(stook_pages_taken(0), 0);
        assert_in_range(dirty(), 0, MIB);
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
                cmocka_unit_test(what_is_replaced_stays),
                cmocka_unit_test(what_shrinks_goes),
        };

        return cmocka_run_group_tests(tests, start, NULL);
}
