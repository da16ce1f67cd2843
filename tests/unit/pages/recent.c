/*
 * Proves what span_recent.c says: the large object freed last comes back to a request of its
 * size, counts as free, is kept only if its size was asked for last, gives way to another size,
 * goes to the bins with a step, a purge and before memory would grow, survives fork, and is left
 * out where more lies free than may stay.
 */
#include <sys/wait.h>

#include "base/lock.h"
#include "pages_env.h"
#include "pages/pages_node.h"

#define KIB  ((size_t)1 << 10)
#define SIZE (256 * KIB)

static struct stook_pages_node *node = &stook_pages_nodes[0];

static struct stook_span *take(size_t bytes)
{
        struct stook_span *span = stook_span_take(0, bytes, 0);

        assert_non_null(span);
        span->kind = STOOK_SPAN_LARGE;
        memset((void *)span->start, 7, bytes);
        return span;
}

static size_t dirty(void)
{
        return node->bins[STOOK_SET_DIRTY].bytes;
}

static void a_request_of_its_size_gets_it(void **state)
{
        struct stook_span *span = take(SIZE);
        struct stook_pages_stats stats;
        size_t taken = stook_pages_taken(0);

        (void)state;
        stook_span_give(span);
        assert_int_equal(stook_recent_bytes(node), SIZE);
        assert_int_equal(stook_pages_taken(0), taken - SIZE);
        stook_pages_stats(&stats);
        assert_int_equal(stats.free_dirty_bytes, dirty() + SIZE);
        assert_null(stook_span_large_at(span->start));
        assert_ptr_equal(take(SIZE), span);
        assert_int_equal(span->state, STOOK_SPAN_DIRTY);
        assert_ptr_equal(stook_span_large_at(span->start), span);
        assert_int_equal(stook_recent_bytes(node), 0);
        stook_span_give(span);
        stook_pages_purge(0);
        assert_int_equal(dirty() + stook_recent_bytes(node), 0);
        assert_sound();
}

static void another_size_sends_it_to_the_bins(void **state)
{
        struct stook_span *span = take(SIZE), *other;

        (void)state;
        stook_span_give(span);
        other = take(SIZE / 2);
        assert_int_equal(stook_recent_bytes(node), 0);
        span = take(SIZE);
        stook_span_give(other);                 /* not what was asked for last */
        assert_int_equal(stook_recent_bytes(node), 0);
        stook_span_give(span);
        assert_int_equal(stook_recent_bytes(node), SIZE);
        stook_pages_purge(0);
        assert_sound();
}

static void small_and_large_ones_do_not_stay(void **state)
{
        struct stook_span *small = take(64 * KIB), *large = take(1024 * KIB);

        (void)state;
        stook_span_give(small);
        stook_span_give(large);
        assert_int_equal(stook_recent_bytes(node), 0);
        stook_pages_purge(0);
        assert_sound();
}

static void what_may_not_stay_does_not(void **state)
{
        struct stook_span *span = take(SIZE);
        size_t least = node->bins[STOOK_SET_DIRTY].bytes;

        (void)state;
        node->bins[STOOK_SET_DIRTY].bytes = (size_t)1 << 40;    /* as if so much lay free */
        assert_false(stook_recent_put(node, span));
        node->bins[STOOK_SET_DIRTY].bytes = least;
        stook_span_give(span);
        stook_pages_purge(0);
        assert_sound();
}

static void age_takes_it(void **state)
{
        (void)state;
        stook_span_give(take(SIZE));
        assert_int_equal(stook_recent_bytes(node), SIZE);
        node->ledger.refault = 0;                /* nothing was missed, */
        node->ledger.swing = (struct stook_swing){ 0 };
        stook_pages_set_decay_ms(0);            /* and all is old */
        stook_pages_age();
        stook_pages_set_decay_ms(1000);
        assert_int_equal(stook_recent_bytes(node), 0);
        assert_int_equal(dirty(), 0);
        assert_sound();
}

/* First of all: it lies between two free spans, and they are all there is. */
static void it_is_used_before_memory_grows(void **state)
{
        struct stook_span *spans[3], *whole = take(3 * SIZE);
        size_t committed = node->ledger.committed;

        (void)state;
        stook_span_give(whole);
        stook_pages_purge(0);
        for (unsigned i = 0; i < 3; i++)
                spans[i] = take(SIZE);
        assert_int_equal(node->ledger.committed, committed);
        stook_span_give(spans[0]);
        stook_span_give(spans[2]);
        stook_span_give(spans[1]);
        assert_int_equal(stook_recent_bytes(node), SIZE);
        whole = take(3 * SIZE);
        assert_int_equal(node->ledger.committed, committed);
        assert_int_equal(stook_recent_bytes(node), 0);
        stook_span_give(whole);
        assert_sound();
}

/* In a child that could not have all locks, the bins are made anew, and it is in them. */
static void forks_keep_it(void **state)
{
        int status;
        pid_t child;

        (void)state;
        stook_pages_purge(0);
        stook_span_give(take(SIZE));
        for (int whole = 0; whole < 2; whole++) {
                bool prepared = stook_pages_fork_prepare();

                assert_true(prepared);
                child = fork();
                if (!child) {
                        stook_pages_fork_child(whole);
                        _exit(dirty() + stook_recent_bytes(node) != SIZE ||
                              stook_pages_validate(print_fault));
                }
                stook_pages_fork_parent();
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
        }
        assert_int_equal(stook_recent_bytes(node), SIZE);
        stook_pages_purge(0);
        assert_sound();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_is_used_before_memory_grows),
                cmocka_unit_test(a_request_of_its_size_gets_it),
                cmocka_unit_test(another_size_sends_it_to_the_bins),
                cmocka_unit_test(small_and_large_ones_do_not_stay),
                cmocka_unit_test(what_may_not_stay_does_not),
                cmocka_unit_test(age_takes_it),
                cmocka_unit_test(forks_keep_it),
        };

        if (!stook_pages_start())
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
