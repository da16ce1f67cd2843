/*
 * Proves bins.c's order and states: of free spans of one size the lowest is taken first, whatever
 * the order in which they came; and neighbours that become one are what the larger of them was, so
 * that a little purged memory beside much that is fresh is not counted as refaulted.
 */
#include "balance.h"

#define KIB  ((size_t)1 << 10)
#define MIB  ((size_t)1 << 20)
#define ROWS 64

static struct stook_span *take(size_t bytes)
{
        struct stook_span *span = stook_span_take(0, bytes, 0);

        assert_non_null(span);
        span->kind = STOOK_SPAN_LARGE;
        return span;
}

static int by_address(const void *a, const void *b)
{
        uintptr_t x = (*(struct stook_span *const *)a)->start;
        uintptr_t y = (*(struct stook_span *const *)b)->start;

        return x < y ? -1 : x > y;
}

static void the_lowest_is_taken_first(void **state)
{
        struct stook_span *spans[2 * ROWS], *free[ROWS];
        uint64_t random = seed_of_run();
        uintptr_t last = 0;

        (void)state;
        for (unsigned i = 0; i < 2 * ROWS; i++)
                spans[i] = take(32 * KIB);
        qsort(spans, 2 * ROWS, sizeof(*spans), by_address);
        for (unsigned i = 0; i < ROWS; i++)
                free[i] = spans[2 * i + 1];             /* none beside another */
        for (unsigned i = ROWS; i; i--) {
                unsigned at = (unsigned)(next_random(&random) % i);
                struct stook_span *span = free[at];

                free[at] = free[i - 1];
                stook_span_give(span);
        }
        for (unsigned i = 0; i < ROWS; i++) {
                spans[2 * i + 1] = take(32 * KIB);
                assert_true(spans[2 * i + 1]->start > last);
                last = spans[2 * i + 1]->start;
        }
        for (unsigned i = 0; i < 2 * ROWS; i++)
                stook_span_give(spans[i]);
        assert_balance();
        assert_sound();
}

static void the_larger_part_says_what_both_are(void **state)
{
        struct stook_pages_node *node = &stook_pages_nodes[0];
        struct stook_span *span = take(64 * KIB), *rest;
        size_t refaulted;

        (void)state;
        stook_pages_purge(0);
        /* Fresh memory lies behind it. */
        rest = stook_pages_free_at(node, span->start + span->bytes);
        assert_non_null(rest);
        assert_int_equal(rest->state, STOOK_SPAN_ZERO);
        assert_true(rest->bytes > 2 * span->bytes);
        stook_span_give(span);
        assert_int_equal(stook_pages_purge(0), 64 * KIB);
        refaulted = node->ledger.refaulted;
        span = take(256 * KIB);
        assert_int_equal(node->ledger.refaulted, refaulted);
        stook_span_give(span);
        assert_int_equal(stook_pages_purge(0), 256 * KIB);
        assert_sound();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_larger_part_says_what_both_are),
                cmocka_unit_test(the_lowest_is_taken_first),
        };

        if (!stook_pages_start())
                return 1;
        stook_pages_set_decay_ms(UINT32_MAX / 4);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
