/*
 * Proves what bins.c joins: what fits in no free span is taken from a dirty one and the clean ones
 * beside it, before the node grows. All of the dirty one is taken, of the others only what is
 * missing.
 * Where the neighbours are not enough, or not free, nothing is joined.
 */
#include "pages_env.h"
#include "pages/pages_node.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define ROW 5                           /* the first and the last stay taken */

static struct stook_span *row[ROW];

/* Five spans of 1 MiB side by side, the three in the middle free: clean, dirty, clean. */
static void make_row(void)
{
        for (unsigned i = 0; i < ROW; i++) {
                row[i] = stook_span_take(0, MIB, 0);
                assert_non_null(row[i]);
                memset((void *)row[i]->start, 1, MIB);
                assert_true(!i || row[i]->start == row[i - 1]->start + MIB);
        }
        stook_span_give(row[1]);
        stook_span_give(row[3]);
        stook_pages_purge(0);
        stook_span_give(row[2]);
        assert_sound();
}

static void give_row(void)
{
        stook_span_give(row[0]);
        stook_span_give(row[4]);
        stook_pages_purge(0);
        assert_sound();
}

static size_t committed(void)
{
        struct stook_pages_stats stats;

        stook_pages_stats(&stats);
        return stats.committed_bytes;
}

static size_t dirty(void)
{
        struct stook_pages_stats stats;

        stook_pages_stats(&stats);
        return stats.free_dirty_bytes;
}

/* Takes @bytes, which are to begin @offset behind the row's first free byte, and gives them. */
static void assert_joined(size_t bytes, size_t offset)
{
        uintptr_t first, middle;
        size_t before;
        struct stook_span *span;

        make_row();
        first = row[0]->start + MIB;
        middle = first + MIB;
        before = committed();
        assert_int_equal(dirty(), MIB);
        span = stook_span_take(0, bytes, 0);
        assert_non_null(span);
        assert_int_equal(span->start, first + offset);
        assert_int_equal(span->bytes, bytes);
        assert_false(stook_span_is_zero(span));
        assert_int_equal(*(volatile char *)middle, 1);
        memset((void *)span->start, 2, bytes);
        assert_int_equal(committed(), before);
        assert_int_equal(dirty(), 0);
        assert_int_equal(*(volatile char *)(row[0]->start + MIB - 1), 1);
        assert_int_equal(*(volatile char *)row[4]->start, 1);
        assert_sound();
        stook_span_give(span);
        give_row();
}

static void the_end_of_it_comes_first(void **state)
{
        (void)state;
        assert_joined(MIB + 64 * KIB, MIB);
        assert_joined(2 * MIB, MIB);
}

static void the_front_gives_what_is_missing(void **state)
{
        (void)state;
        assert_joined(2 * MIB + 64 * KIB, MIB - 64 * KIB);
        assert_joined(3 * MIB, 0);
}

static void too_little_is_left_alone(void **state)
{
        struct stook_span *span;
        size_t before;

        (void)state;
        make_row();
        before = committed();
        span = stook_span_take(0, 3 * MIB + 4 * KIB, 0);
        assert_non_null(span);
        assert_true(committed() > before);
        assert_int_equal(dirty(), MIB);
        assert_sound();
        stook_span_give(span);
        give_row();
}

static int start(void **state)
{
        (void)state;
        return stook_pages_start() ? 0 : -1;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_end_of_it_comes_first),
                cmocka_unit_test(the_front_gives_what_is_missing),
                cmocka_unit_test(too_little_is_left_alone),
        };

        return cmocka_run_group_tests(tests, start, NULL);
}
