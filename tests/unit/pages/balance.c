/*
 * Proves that the page layer loses nothing (balance.h): where a commit, a mapping, address space or
 * a descriptor is refused, what was got by then is given back, and serves again. Where the lock is
 * refused, what is left of a pending span stays pending. Nothing is handed out that has no memory
 * behind it.
 */
#include "balance.h"
#include "../os/child.h"
#include "base/inject.h"
#include "base/lock.h"
#include "huge_env.h"
#include "refuse.h"

#define KIB  ((size_t)1 << 10)
#define MIB  ((size_t)1 << 20)
#define OWN  (STOOK_SPAN_OWN_MAPPING + MIB)
#define SOME 16

static struct stook_span *take(size_t bytes, size_t align)
{
        struct stook_span *span = stook_span_take(0, bytes, align);

        assert_non_null(span);
        span->kind = STOOK_SPAN_LARGE;
        *(volatile char *)span->start = 1;
        *(volatile char *)(span->start + span->bytes - 1) = 1;
        return span;
}

static struct stook_span *take_own(size_t bytes, size_t headroom)
{
        struct stook_span *span = stook_span_take_own(0, bytes, stook_os_page_bytes(), headroom);

        assert_non_null(span);
        span->kind = STOOK_SPAN_LARGE;
        *(volatile char *)(span->start + span->bytes - 1) = 1;
        return span;
}

static void gaps_before_aligned_spans_are_used(void **state)
{
        struct stook_span *odd = take(36 * KIB, 0), *spans[SOME];

        (void)state;
        for (unsigned i = 0; i < SOME; i++)
                spans[i] = take((i + 1) * 100 * KIB, (size_t)1 << (21 + i % 4));
        assert_balance();
        for (unsigned i = 0; i < SOME; i++)
                stook_span_give(spans[i]);
        stook_span_give(odd);
        assert_balance();
        assert_sound();
}

static void mappings_count_what_they_have(void **state)
{
        struct stook_span *span = take_own(OWN, OWN);
        size_t page = stook_os_page_bytes();

        (void)state;
        assert_balance();
        assert_true(stook_span_resize(span, OWN + MIB));
        assert_balance();
        memset((void *)span->start, 1, span->bytes);
        assert_true(stook_span_resize(span, OWN / 2));
        assert_int_equal(span->committed, OWN / 2);     /* no memory behind what is cut off */
        assert_balance();
        assert_true(stook_span_resize(span, OWN / 2 + page));
        assert_int_equal(((char *)span->start)[OWN / 2], 0);
        stook_span_give(span);
        assert_balance();
        assert_sound();
}

/* Each request of a round is refused in turn; what it got until then is there. */
static void refused_commits_give_all_back(void **state)
{
        unsigned refused;
        long n = 0;

        (void)state;
        do {
                struct stook_span *spans[4] = { NULL };
                struct stook_link *run;

                stook_pages_purge(0);
                refused = 0;
                stook_inject.commit_fail_from = ++n;
                spans[0] = stook_span_take(0, 3 * MIB + n * 64 * KIB, 2 * MIB);
                spans[1] = stook_span_take_own(0, OWN, stook_os_page_bytes(), OWN);
                spans[2] = stook_span_take(0, OWN, 0);
                spans[3] = stook_span_take(0, 20 * MIB + n * MIB, 0);
                run = stook_span_take_run(0, 16 * MIB, 4 * MIB, false);
                stook_inject.commit_fail_from = 0;
                for (unsigned i = 0; i < 4; i++) {
                        refused += !spans[i];
                        if (spans[i])
                                spans[i]->kind = STOOK_SPAN_LARGE;
                }
                refused += !run;
                assert_balance();
                for (unsigned i = 0; i < 4; i++)
                        if (spans[i])
                                stook_span_give(spans[i]);
                stook_span_give_chain(run);
                assert_balance();
                assert_sound();
        } while (refused && n < 100);
        assert_in_range(n, 2, 99);
}

static void headroom_that_is_refused_is_left_out(void **state)
{
        unsigned ranges = stook_ranges_count();
        struct stook_span *span = take_own(MIB, (size_t)1 << 62);
        size_t page = stook_os_page_bytes();

        (void)state;
        assert_int_equal(span->reserved, MIB);
        stook_span_give(span);
        /* Sums that wrap: in its bytes, and in what is added for its range. */
        span = take_own(MIB, SIZE_MAX - MIB / 2);
        assert_int_equal(span->reserved, MIB);
        stook_span_give(span);
        span = take_own(MIB, (size_t)0 - MIB - page);
        assert_int_equal(span->reserved, MIB);
        stook_span_give(span);
        assert_null(stook_span_take(0, SIZE_MAX, 0));
        assert_null(stook_span_take(0, (size_t)PTRDIFF_MAX + 1, 0));
        assert_int_equal(stook_ranges_count(), ranges);
        assert_balance();
}

/* More than the range has left: where it is reserved at all, it is in a range of its own. */
static void a_span_is_in_one_range(void **state)
{
        size_t bytes = (size_t)1 << 41;
        struct stook_span *span = take_own(MIB, bytes);
        const struct stook_range_record *range = stook_range_of(span->start);

        (void)state;
        assert_non_null(range);
        assert_ptr_equal(stook_range_of(span->start + span->reserved - 1), range);
        stook_span_give(span);
        assert_balance();
}

/* Reserved address space lies behind a span: it grows into that only with memory. */
static void what_is_reserved_is_not_grown_into(void **state)
{
        struct stook_span *spans[512], *own;
        unsigned n = 0;

        (void)state;
        do
                assert_true(n < 512), spans[n] = take(256 * KIB, 0);
        while (!stook_range_frontier_is(spans[n]->start + spans[n]->bytes) && ++n);
        own = take_own(OWN, 0);
        assert_true(own->start == spans[n]->start + spans[n]->bytes);
        stook_span_give(own);
        if (stook_span_resize(spans[n], MIB))
                memset((void *)spans[n]->start, 1, MIB);
        assert_balance();
        for (unsigned i = 0; i <= n; i++)
                stook_span_give(spans[i]);
        assert_balance();
        assert_sound();
}

/* All descriptors are in use, and there is no memory for more. */
static void without_a_descriptor_nothing_is_resized(void **state)
{
        struct stook_span *span = take(MIB, 0), *other;
        struct stook_link *taken = NULL;

        (void)state;
        stook_inject.commit_fail_from = 1;
        while ((other = stook_meta_span_new()) != NULL) {
                stook_link_set_next(&other->link, taken);
                taken = &other->link;
        }
        assert_false(stook_span_resize(span, 64 * KIB));
        assert_int_equal(span->bytes, MIB);
        assert_null(stook_span_take(0, 64 * KIB, 0));
        assert_null(stook_span_take_run(0, MIB, 64 * KIB, false));
        stook_inject.commit_fail_from = 0;
        while (taken) {
                other = stook_container_of(taken, struct stook_span, link);
                taken = taken->next;
                stook_meta_span_free(other);
        }
        assert_true(stook_span_resize(span, 64 * KIB));
        stook_span_give(span);
        assert_balance();
        assert_sound();
}

/* This thread holds the lock, as below a handler: what is given is pending and serves. */
static void what_is_pending_serves(void **state)
{
        struct stook_span *span = take(MIB, 0), *own = take_own(OWN, 0), *first, *second;
        uintptr_t start = span->start;

        (void)state;
        assert_true(stook_lock_take(&stook_pages_nodes[0].lock));
        stook_pages_pend(&stook_pages_nodes[0], span);
        stook_ledger_give(&stook_pages_nodes[0].ledger, MIB);
        stook_span_give(own);           /* address space alone, pending from here on */
        first = take(64 * KIB, 0);
        second = take(128 * KIB, 0);
        assert_in_range(first->start, start, start + MIB - 1);
        assert_in_range(second->start, start, start + MIB - 1);
        stook_pages_unlock(&stook_pages_nodes[0]);
        assert_balance();
        stook_span_give(first);
        stook_span_give(second);
        assert_balance();
        assert_sound();
}

static void who_may_not_wait_purges_nothing(void **state)
{
        struct stook_pages_node *node = &stook_pages_nodes[0];
        struct stook_span *spans[SOME];
        size_t purged;

        (void)state;
        for (unsigned i = 0; i < SOME; i++)
                spans[i] = take(4 * MIB, 0);
        for (unsigned i = 0; i < SOME; i++)
                spans[i]->link.next = i + 1 < SOME ? &spans[i + 1]->link : NULL;
        stook_pages_purge(0);
        purged = node->ledger.purged;
        stook_span_give_chain(&spans[0]->link);
        stook_lock_forbid_waits();
        stook_pages_purge_excess();
        assert_int_equal(node->ledger.purged, purged);
        stook_lock_allow_waits();
        stook_pages_purge_excess();
        assert_true(node->ledger.purged > purged);
        assert_balance();
}

/* In a child: the calls that are refused stay refused. */
static void a_mapping_that_stays_is_memory(void)
{
        struct stook_span *span, *again;
        size_t used = stook_pages_taken(0);

        span = stook_span_take_own(0, OWN, stook_os_page_bytes(), OWN);
        CHECK(span);
        span->kind = STOOK_SPAN_LARGE;
        memset((void *)span->start, 0xee, OWN);
        NEEDS(refuse_mappings_over_ours() && refuse_purges());
        stook_span_give(span);
        CHECK(stook_pages_taken(0) == used);
        for (unsigned i = 0; i < 4; i++) {
                again = stook_span_take(0, (i + 1) * 8 * MIB, 0);
                CHECK(again);
                for (size_t at = 0; stook_span_is_zero(again) && at < again->bytes; at += 512)
                        CHECK(((char *)again->start)[at] == 0);
                ((char *)again->start)[again->bytes - 1] = 1;
                stook_span_give(again);
        }
        CHECK(stook_pages_validate(print_fault) == 0);
}

static void refused_decommits_lose_nothing(void **state)
{
        (void)state;
        assert_child_fine(a_mapping_that_stays_is_memory);
}

/* Each in a process of its own: what one left free would serve the next. */
int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(gaps_before_aligned_spans_are_used),
                cmocka_unit_test(mappings_count_what_they_have),
                cmocka_unit_test(refused_commits_give_all_back),
                cmocka_unit_test(headroom_that_is_refused_is_left_out),
                cmocka_unit_test(a_span_is_in_one_range),
                cmocka_unit_test(what_is_reserved_is_not_grown_into),
                cmocka_unit_test(without_a_descriptor_nothing_is_resized),
                cmocka_unit_test(what_is_pending_serves),
                cmocka_unit_test(who_may_not_wait_purges_nothing),
                cmocka_unit_test(refused_decommits_lose_nothing),
        };
        int failed = 0;

        stook_pages_set_decay_ms(UINT32_MAX / 4);
        for (unsigned i = 0; i < sizeof(tests) / sizeof(*tests); i++)
                failed |= alone(&tests[i]);
        return failed != 0;
}
