/*
 * Proves what waiting.c says: pages of a chain wait beside the bins and count as free and dirty, a
 * request for a page gets the lowest, one for more has them joined, so has a purge, a step and a
 * fork. What is joined is as old as its youngest part. A child that makes the bins anew finds them.
 * What a jump leaves behind is mended. What has no place in the window goes to the bins.
 */
#include <sys/wait.h>

#include "base/lock.h"
#include "pages_env.h"
#include "pages/pages_node.h"

#define PAGES 200                       /* more than three words of bits */

static struct stook_pages_node *node = &stook_pages_nodes[0];
static size_t page;

static size_t waiting(void)
{
        return stook_singles_bytes(&node->singles);
}

static size_t free_dirty(void)
{
        struct stook_pages_stats stats;

        stook_pages_stats(&stats);
        return stats.free_dirty_bytes;
}

static struct stook_span *take(size_t pages)
{
        struct stook_span *span = stook_span_take(0, pages * page, 0);

        assert_non_null(span);
        return span;
}

/* Gives pages @from to @to, by @step: one chain each, as slabs come that are emptied one by one. */
static void give(struct stook_span **spans, unsigned from, unsigned to, unsigned step)
{
        for (unsigned i = from; i < to; i += step) {
                spans[i]->link.next = NULL;
                stook_span_give_chain(&spans[i]->link);
        }
}

/* PAGES neighbours, one span each, the lowest first; there is a map for their bits. */
static void take_neighbours(struct stook_span **spans)
{
        struct stook_link *link;

        stook_pages_purge(0);
        link = stook_span_take_run(0, 256 * page, page, false);
        assert_non_null(link);
        for (unsigned i = 0; i < 256; i++) {
                struct stook_span *span = stook_container_of(link, struct stook_span, link);

                link = link->next;
                if (i < PAGES)
                        spans[i] = span;
                else
                        stook_span_give(span);
        }
        if (!node->singles.map)
                node->singles.wanted = spans[0]->start;
        stook_singles_make_map(&node->singles);
}

static void pages_wait_and_the_lowest_is_taken(void **state)
{
        struct stook_span *spans[PAGES], *some[3];
        size_t free_before, taken;

        (void)state;
        take_neighbours(spans);
        free_before = free_dirty();
        taken = stook_pages_taken(0);
        give(spans, 1, PAGES, 2);
        give(spans, 0, PAGES, 2);
        assert_int_equal(waiting(), PAGES * page);
        assert_int_equal(free_dirty(), free_before + PAGES * page);
        assert_int_equal(stook_pages_taken(0), taken - PAGES * page);
        assert_sound();
        assert_ptr_equal(take(1), spans[0]);
        assert_int_equal(spans[0]->state, STOOK_SPAN_DIRTY);
        assert_int_equal(spans[0]->kind, STOOK_SPAN_TAKEN);
        assert_int_equal(stook_span_take_some(0, page, 3, some), 3);
        for (unsigned i = 0; i < 3; i++)
                assert_ptr_equal(some[i], spans[1 + i]);
        assert_int_equal(waiting(), (PAGES - 4) * page);
        assert_sound();
        give(spans, 0, 4, 1);
        stook_pages_purge(0);
        assert_int_equal(waiting(), 0);
        assert_int_equal(free_dirty(), 0);
        assert_sound();
}

static void a_larger_request_has_them_joined(void **state)
{
        struct stook_span *spans[PAGES], *span;
        uintptr_t start;

        (void)state;
        take_neighbours(spans);
        start = spans[1]->start;
        give(spans, 1, PAGES - 1, 1);
        span = take(PAGES - 2);
        assert_int_equal(waiting(), 0);
        assert_int_equal(span->start, start);
        assert_int_equal(span->state, STOOK_SPAN_DIRTY);
        assert_sound();
        stook_span_give(span);
        give(spans, 0, PAGES, PAGES - 1);
        assert_int_equal(waiting(), 2 * page);
        stook_pages_purge(0);
        assert_sound();
}

/* What lies behind a page that waits may have been freed later than that page. */
static void what_is_joined_is_as_old_as_its_youngest(void **state)
{
        struct stook_span *spans[PAGES], *joined;
        uint32_t youngest;

        (void)state;
        take_neighbours(spans);
        stook_span_give(spans[2]);
        youngest = spans[2]->dirty_since_ms;
        give(spans, 0, 2, 1);
        spans[0]->dirty_since_ms = youngest - 1000;
        spans[1]->dirty_since_ms = youngest - 500;
        assert_true(stook_pages_lock_joined(node));
        joined = stook_pages_free_at(node, spans[0]->start);
        stook_pages_unlock(node);
        assert_non_null(joined);
        assert_int_equal(joined->bytes, 3 * page);
        assert_int_equal(joined->dirty_since_ms, youngest);
        give(spans, 3, PAGES, 1);
        stook_pages_purge(0);
        assert_sound();
}

static void pages_that_wait_are_counted_as_spans(void **state)
{
        struct stook_span *spans[PAGES];
        struct stook_pages_stats before, after;

        (void)state;
        take_neighbours(spans);
        stook_pages_stats(&before);
        give(spans, 0, PAGES, 2);
        stook_pages_stats(&after);
        assert_int_equal(after.free_spans - before.free_spans, PAGES / 2);
        give(spans, 1, PAGES, 2);
        stook_pages_purge(0);
        assert_sound();
}

static void a_step_has_them_joined(void **state)
{
        struct stook_span *spans[PAGES];

        (void)state;
        take_neighbours(spans);
        give(spans, 0, PAGES, 1);
        assert_int_equal(waiting(), PAGES * page);
        stook_pages_age();
        assert_int_equal(waiting(), 0);
        stook_pages_purge(0);
        assert_sound();
}

/* In the child of a fork: 0, or how often what was expected did not hold. */
static int child(bool whole, size_t expected)
{
        stook_pages_fork_child(whole);
        return (waiting() != 0) + (free_dirty() != expected) + stook_pages_validate(print_fault);
}

static void fork_here(bool whole)
{
        struct stook_span *spans[PAGES];
        size_t expected;
        int status;
        pid_t pid;

        take_neighbours(spans);
        give(spans, 0, PAGES, 3);
        expected = free_dirty();
        if (whole)
                assert_true(stook_pages_fork_prepare());
        pid = fork();
        assert_true(pid >= 0);
        if (!pid)
                _exit(child(whole, expected));
        if (whole)
                stook_pages_fork_parent();
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(free_dirty(), expected);
        give(spans, 1, PAGES, 3);
        give(spans, 2, PAGES, 3);
        stook_pages_purge(0);
        assert_int_equal(free_dirty(), 0);
        assert_sound();
}

static void a_child_has_them(void **state)
{
        (void)state;
        fork_here(true);
}

static void a_child_that_makes_the_bins_anew_has_them(void **state)
{
        (void)state;
        fork_here(false);
}

static void what_a_jump_leaves_is_mended(void **state)
{
        struct stook_span *spans[PAGES];
        size_t bytes;

        (void)state;
        take_neighbours(spans);
        give(spans, 0, PAGES, 5);
        bytes = waiting();
        /* As if a put were jumped out of, and a take. */
        node->singles.top |= 1;
        node->singles.high[0] |= 2;
        node->singles.map->some[1] |= 4;
        node->singles.bytes = 0;
        assert_false(stook_singles_are_sound(&node->singles));
        stook_singles_mend(&node->singles, false);
        assert_int_equal(waiting(), bytes);
        assert_sound();
        for (unsigned i = 0; i < PAGES; i++)
                if (i % 5)
                        give(spans, i, i + 1, 1);
        stook_pages_purge(0);
        assert_int_equal(free_dirty(), 0);
        assert_sound();
}

static void what_is_outside_of_the_window_goes_to_the_bins(void **state)
{
        struct stook_span *spans[PAGES];
        uintptr_t base;

        (void)state;
        take_neighbours(spans);
        base = node->singles.map->base;
        node->singles.map->base = spans[0]->start + page;
        give(spans, 0, 1, 1);
        assert_int_equal(waiting(), 0);
        assert_int_equal(stook_span_kind_of(spans[0]), STOOK_SPAN_FREE);
        assert_int_equal(node->singles.wanted, 0);      /* a map would not help */
        node->singles.map->base = base;
        give(spans, 1, PAGES, 1);
        stook_pages_purge(0);
        assert_int_equal(free_dirty(), 0);
        assert_sound();
}

/* The first one of a program goes to the bins, and makes those after the next take wait. */
static void a_map_is_made_by_the_next_take(void **state)
{
        struct stook_span *first = take(1), *second = take(1);

        (void)state;
        give(&first, 0, 1, 1);
        assert_int_equal(waiting(), 0);
        first = take(1);
        give(&second, 0, 1, 1);
        assert_int_equal(waiting(), page);
        give(&first, 0, 1, 1);
        assert_int_equal(waiting(), 2 * page);
        stook_pages_purge(0);
        assert_sound();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_map_is_made_by_the_next_take),
                cmocka_unit_test(pages_wait_and_the_lowest_is_taken),
                cmocka_unit_test(a_larger_request_has_them_joined),
                cmocka_unit_test(what_is_joined_is_as_old_as_its_youngest),
                cmocka_unit_test(pages_that_wait_are_counted_as_spans),
                cmocka_unit_test(a_step_has_them_joined),
                cmocka_unit_test(a_child_has_them),
                cmocka_unit_test(a_child_that_makes_the_bins_anew_has_them),
                cmocka_unit_test(what_a_jump_leaves_is_mended),
                cmocka_unit_test(what_is_outside_of_the_window_goes_to_the_bins),
        };

        if (!stook_pages_start())
                return 1;
        page = stook_os_page_bytes();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
