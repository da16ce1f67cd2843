/*
 * Proves when huge pages are asked for, and which of them a purge breaks: memory that was written
 * before lets later memory be huge, memory that was not does not; slabs have time until they are
 * looked at, and what was purged meanwhile tells nothing; a purge of a part is told, and is one of
 * whole huge pages while the process does not shrink; what was small, or was purged in parts, is
 * asked for again when it is taken again and written; what slabs filled is for slabs. What the
 * system makes of the advice is not looked at.
 */
#include "base/inject.h"
#include "huge_env.h"
#include "pages_env.h"
#include "pages/pagemap.h"
#include "pages/pages_node.h"

#define MIB   ((size_t)1 << 20)
#define SPANS 1536
#define PIECE ((size_t)100 << 10)

static struct stook_pages_node *node = &stook_pages_nodes[0];
static struct stook_span *spans[SPANS];
static unsigned taken;

static struct stook_span *take(size_t bytes, bool written)
{
        struct stook_span *span = stook_span_take(0, bytes, 0);

        assert_non_null(span);
        span->kind = STOOK_SPAN_LARGE;
        if (written)
                memset((void *)span->start, 7, bytes);
        return span;
}

static void take_pieces(size_t until, bool written)
{
        while (stook_pages_taken(0) < until) {
                assert_true(taken < SPANS);
                spans[taken++] = take(PIECE, written);
        }
}

static unsigned advised_pieces(void)
{
        unsigned n = 0;

        for (unsigned i = 0; i < taken; i++)
                n += stook_huge_is_advised(spans[i]->start);
        return n;
}

static void give_all(void)
{
        while (taken)
                stook_span_give(spans[--taken]);
        assert_sound();
}

static size_t dirty(void)
{
        return node->bins[STOOK_SET_DIRTY].bytes;
}

static uint32_t found(unsigned kind)
{
        return node->ledger.density[kind].found;
}

static void what_is_not_written_stays_small(void **state)
{
        (void)state;
        take_pieces(100 * MIB, false);
        assert_int_equal(found(STOOK_DENSITY_SMALL), STOOK_SPARSE);
        assert_int_equal(advised_pieces(), 0);
        give_all();
}

static void a_small_process_asks_for_none(void **state)
{
        (void)state;
        take_pieces(10 * MIB, true);
        assert_int_equal(found(STOOK_DENSITY_SMALL), STOOK_DENSITY_UNKNOWN);
        take_pieces(30 * MIB, true);
        assert_int_equal(found(STOOK_DENSITY_SMALL), STOOK_DENSE);
        assert_int_equal(advised_pieces(), 0);
        give_all();
}

static void what_is_written_becomes_huge(void **state)
{
        (void)state;
        take_pieces(100 * MIB, true);
        assert_int_equal(found(STOOK_DENSITY_SMALL), STOOK_DENSE);
        assert_in_range(advised_pieces(), 60 * MIB / PIECE, taken);
        give_all();
}

/* As slabs are: an object here and there, and some megabytes later. */
static void what_is_written_late_becomes_huge(void **state)
{
        (void)state;
        while (stook_pages_taken(0) < 68 * MIB) {
                spans[taken++] = take(PIECE, false);
                for (size_t at = 0; taken > 8 && at < PIECE; at += 256)
                        memset((char *)spans[taken - 9]->start + at, 7, 16);
        }
        assert_int_equal(found(STOOK_DENSITY_SMALL), STOOK_DENSE);
        assert_in_range(advised_pieces(), 30 * MIB / PIECE, taken);
        give_all();
}

static void what_was_purged_tells_nothing(void **state)
{
        (void)state;
        take_pieces(10 * MIB, true);
        assert_true(node->ledger.density[STOOK_DENSITY_SMALL].told);
        give_all();
        stook_pages_purge(0);
        assert_false(node->ledger.density[STOOK_DENSITY_SMALL].told);
        assert_int_equal(found(STOOK_DENSITY_SMALL), STOOK_DENSITY_UNKNOWN);
}

/* Objects of megabytes, that is. The first ones tell that all of it is written. */
static void large_objects_become_huge_sooner(void **state)
{
        unsigned huge = 0;

        (void)state;
        for (unsigned n = 0; n < 6; n++) {
                struct stook_span *span = take(5 * MIB, true);

                spans[taken++] = span;
                if (stook_pages_taken(0) < 8 * MIB)
                        assert_false(stook_huge_is_advised(span->start + 2 * MIB));
                huge += stook_huge_is_advised(span->start + 2 * MIB);
        }
        assert_int_equal(found(STOOK_DENSITY_LARGE), STOOK_DENSE);
        assert_true(huge > 0);
        give_all();
}

static bool first_is_huge(size_t bytes, enum stook_density_found found)
{
        struct stook_span *span = take(bytes, false);
        bool huge;

        node->ledger.density[STOOK_DENSITY_LARGE].found = found;
        stook_span_will_be_written(span);
        huge = stook_huge_is_advised(span->start + 2 * MIB);
        stook_span_give(span);
        stook_pages_purge(0);
        assert_sound();
        return huge;
}

static void a_first_one_that_is_less_large_is_not(void **state)
{
        (void)state;
        assert_false(first_is_huge(5 * MIB, STOOK_DENSITY_UNKNOWN));
        assert_false(first_is_huge(12 * MIB, STOOK_SPARSE));
}

/* Also where most of it is memory that lies free, and the heap grows by the rest. */
static void all_of_a_large_object_counts(void **state)
{
        struct stook_span *beside = take(PIECE, true), *span = take(6 * MIB, true);

        (void)state;
        assert_false(stook_huge_is_advised(span->start));
        stook_span_give(span);
        assert_int_equal(found(STOOK_DENSITY_LARGE), STOOK_DENSE);
        span = take(9 * MIB, true);
        assert_false(stook_huge_is_advised(span->start));
        assert_true(stook_huge_is_advised(span->start + 6 * MIB));
        stook_span_give(span);
        stook_span_give(beside);
}

/* Nothing tells yet whether large objects are written. */
static void the_first_large_object_is_huge(void **state)
{
        (void)state;
        assert_true(first_is_huge(20 * MIB, STOOK_DENSITY_UNKNOWN));
}

/* True: the huge page in which an object of @bytes ends, the first large one, is asked for. */
static bool end_is_huge(size_t bytes)
{
        struct stook_span *span = take(bytes, false);
        bool huge;

        stook_span_will_be_written(span);
        assert_true(stook_huge_is_advised(span->start));
        huge = stook_huge_is_advised(span->start + bytes - 1);
        assert_false(stook_huge_is_advised(span->start + bytes + 2 * MIB));
        return huge;
}

static void so_is_its_end_if_little_is_left_of_that(void **state)
{
        (void)state;
        assert_true(end_is_huge(8 * MIB + 3 * MIB / 2));
}

static void its_end_is_not_if_much_is_left(void **state)
{
        (void)state;
        assert_false(end_is_huge(8 * MIB + MIB / 2));
}

/* In huge pages, however large the process is. */
static struct stook_span *huge_span(size_t bytes)
{
        struct stook_span *span;

        stook_pages_set_thp(STOOK_THP_ALWAYS);
        span = take(bytes, false);
        stook_pages_set_thp(STOOK_THP_AUTO);
        assert_int_equal(span->start % (2 * MIB), 0);
        assert_true(stook_huge_is_advised(span->start));
        return span;
}

static void give_part(struct stook_span *span, size_t left)
{
        assert_true(stook_span_resize(span, left));
}

static void a_purge_of_a_part_breaks_one(void **state)
{
        struct stook_span *span = huge_span(16 * MIB);
        uintptr_t start = span->start;

        (void)state;
        give_part(span, 15 * MIB + (512 << 10));
        assert_true(stook_huge_is_advised(start + 14 * MIB));
        assert_int_equal(stook_pages_purge(0), 512 << 10);
        assert_false(stook_huge_is_advised(start + 14 * MIB));
        for (size_t at = 0; at < 14 * MIB; at += 2 * MIB)
                assert_true(stook_huge_is_advised(start + at));
        stook_span_give(span);
        assert_sound();
}

/* Twice of what may lies free. What stays is a little less than may. */
static void a_purge_beside_objects_breaks_none(void **state)
{
        const size_t each = 8 * MIB + MIB / 2;
        uintptr_t start;

        (void)state;
        for (unsigned n = 0; n < 8; n++)
                spans[n] = take(each, true);
        start = spans[4]->start;
        node->ledger.refault = 0;                        /* as if nothing was missed */
        node->ledger.density[STOOK_DENSITY_LARGE].found = STOOK_SPARSE;
        spans[4]->state = STOOK_SPAN_DIRTY;             /* so it does not tell */
        stook_span_give(spans[4]);
        assert_in_range(dirty(), 7 * each / STOOK_PART - 2 * MIB, 7 * each / STOOK_PART);
        for (uintptr_t at = start; at < start + each; at += MIB / 2)
                assert_true(stook_huge_is_advised(at));
        assert_sound();
}

static unsigned advised_at_all(void)
{
        unsigned n = 0;

        for (size_t at = 0; at < 512 * MIB; at += 2 * MIB)
                n += stook_huge_is_advised(stook_range.base + at);
        return n;
}

/* What was purged is taken again. Return: huge pages asked for again. */
static unsigned asked_again(size_t bytes, bool written)
{
        unsigned before, after;

        take_pieces(100 * MIB, true);
        give_all();
        stook_pages_purge(0);
        node->ledger.refault = 0;
        before = advised_at_all();
        take_pieces(bytes, written);
        after = advised_at_all();
        for (unsigned i = 0; i < taken; i++)    /* none was purged that had content */
                for (size_t at = 0; at < PIECE; at += 4096)
                        assert_int_equal(*(char *)(spans[i]->start + at), written ? 7 : 0);
        give_all();
        return after - before;
}

static void what_is_taken_again_is_huge(void **state)
{
        (void)state;
        assert_in_range(asked_again(90 * MIB, true), 8, 50);
}

static void a_little_taken_again_is_small(void **state)
{
        (void)state;
        assert_int_equal(asked_again(7 * MIB, true), 0);
}

/* Until some of it was looked at (policy/constants.h: STOOK_HUGE_FROM) it is as it was before. */
static void what_is_not_written_again_is_small(void **state)
{
        (void)state;
        assert_in_range(asked_again(90 * MIB, false), 0, 16);
        assert_int_equal(found(STOOK_DENSITY_SMALL), STOOK_SPARSE);
}

/* Spans that are taken several at once leave the beginning of a huge page to a take of one. */
static void several_at_once_do_not_begin_one(void **state)
{
        struct stook_span *span = huge_span(6 * MIB), *some[STOOK_SPAN_SOME], *one[64];
        uintptr_t again = span->start + 4 * MIB;
        unsigned got, n = 0;

        (void)state;
        give_part(span, 5 * MIB);
        stook_pages_purge(0);
        give_part(span, 4 * MIB - (64 << 10));
        stook_pages_purge(0);
        assert_false(stook_huge_is_advised(again));
        stook_pages_set_thp(STOOK_THP_ALWAYS);
        got = stook_span_take_some(0, 64 << 10, STOOK_SPAN_SOME, some);
        for (unsigned i = 0; i < got; i++)
                assert_false(some[i]->start >= again && some[i]->start < again + 2 * MIB);
        assert_false(stook_huge_is_advised(again));
        do {
                assert_true(n < 64);
                one[n] = take(64 << 10, true);
        } while (one[n++]->start != again);
        assert_true(stook_huge_is_advised(again));
        stook_pages_set_thp(STOOK_THP_AUTO);
        while (n)
                stook_span_give(one[--n]);
        while (got)
                stook_span_give(some[--got]);
        stook_span_give(span);
        assert_sound();
}

/* What slabs had is purged, and many megabytes of it lie free. */
static void free_what_slabs_filled(void)
{
        take_pieces(100 * MIB, true);
        for (unsigned i = taken / 2; i < taken; i++)
                stook_span_give(spans[i]);
        taken /= 2;
        stook_pages_purge(0);
        assert_true(node->bins[STOOK_SET_HUGE].bytes > 30 * MIB);
        node->ledger.density[STOOK_DENSITY_SMALL].found = STOOK_DENSE;
}

static void huge_pages_that_slabs_filled_are_for_slabs(void **state)
{
        struct stook_span *large, *slab;

        (void)state;
        free_what_slabs_filled();
        large = take(500 << 10, true);
        assert_false(stook_huge_is_for_slabs(large->start));
        assert_false(stook_huge_is_advised(large->start));
        slab = take(PIECE, true);
        assert_true(stook_huge_is_for_slabs(slab->start));
        stook_span_give(slab);
        stook_span_give(large);
        give_all();
}

static void they_serve_others_before_memory_is_lacking(void **state)
{
        struct stook_span *large;

        (void)state;
        free_what_slabs_filled();
        stook_inject.commit_fail_from = 1;
        while (!stook_huge_is_for_slabs((large = take(5 * MIB, true))->start))
                spans[taken++] = large;
        stook_inject.commit_fail_from = 0;
        stook_span_give(large);
        give_all();
}

/* No bit would say that it was asked for already. */
static void what_lies_beyond_the_map_is_not_asked_for(void **state)
{
        uintptr_t end = stook_range.base + ((uintptr_t)1 << 40);

        (void)state;
        stook_pages_set_thp(STOOK_THP_ALWAYS);
        assert_true(stook_huge_may_come_again(node, MIB, end - 2 * MIB, end));
        assert_false(stook_huge_may_come_again(node, MIB, end, end + 8 * MIB));
        stook_pages_set_thp(STOOK_THP_AUTO);
}

/* What a fault makes resident is purged, though it was never handed out. */
static void untouched_memory_goes_with_the_rest(void **state)
{
        struct stook_span *span = huge_span(5 * MIB);
        struct stook_span *rest = stook_pages_free_at(node, span->start + 5 * MIB);

        (void)state;
        assert_int_equal(span->state, STOOK_SPAN_ZERO);
        assert_non_null(rest);
        stook_pages_remove(node, rest);
        rest->state = STOOK_SPAN_ZERO;                  /* as beyond a request that is not large */
        stook_pages_insert(node, rest);
        stook_pages_set_decay_ms(3600000);
        give_part(span, 4 * MIB);
        assert_int_equal(stook_pages_purge(0), 2 * MIB);
        stook_pages_set_decay_ms(1000);
        stook_span_give(span);
        assert_sound();
}

static void own_mappings_are_looked_at(void **state)
{
        struct stook_span *span = take(40 * MIB, false);

        (void)state;
        assert_true(span->own_mapping);
        stook_span_give(span);
        assert_int_equal(found(STOOK_DENSITY_LARGE), STOOK_SPARSE);
        span = take(40 * MIB, true);
        stook_span_give(span);
        assert_int_equal(found(STOOK_DENSITY_LARGE), STOOK_DENSE);
}

/* After two looks in vain the next seven gives are not looked at, so what is written shows late. */
static void looks_in_vain_become_seldom(void **state)
{
        unsigned gives = 0;

        (void)state;
        node->ledger.density[STOOK_DENSITY_LARGE].found = STOOK_DENSITY_UNKNOWN;
        node->ledger.density[STOOK_DENSITY_LARGE].since = 0;
        for (int i = 0; i < 2; i++)
                stook_span_give(take(40 * MIB, false));
        assert_int_equal(found(STOOK_DENSITY_LARGE), STOOK_SPARSE);
        while (found(STOOK_DENSITY_LARGE) == STOOK_SPARSE && gives++ < 100)
                stook_span_give(take(40 * MIB, true));
        assert_int_equal(gives, 8);
        stook_span_give(take(40 * MIB, false));         /* at once, where it was not in vain */
        assert_int_equal(found(STOOK_DENSITY_LARGE), STOOK_SPARSE);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_small_process_asks_for_none),
                cmocka_unit_test(what_is_not_written_stays_small),
                cmocka_unit_test(what_is_written_becomes_huge),
                cmocka_unit_test(what_is_written_late_becomes_huge),
                cmocka_unit_test(what_was_purged_tells_nothing),
                cmocka_unit_test(large_objects_become_huge_sooner),
                cmocka_unit_test(all_of_a_large_object_counts),
                cmocka_unit_test(the_first_large_object_is_huge),
                cmocka_unit_test(so_is_its_end_if_little_is_left_of_that),
                cmocka_unit_test(its_end_is_not_if_much_is_left),
                cmocka_unit_test(a_first_one_that_is_less_large_is_not),
                cmocka_unit_test(own_mappings_are_looked_at),
                cmocka_unit_test(looks_in_vain_become_seldom),
                cmocka_unit_test(untouched_memory_goes_with_the_rest),
                cmocka_unit_test(a_purge_of_a_part_breaks_one),
                cmocka_unit_test(a_purge_beside_objects_breaks_none),
                cmocka_unit_test(what_is_taken_again_is_huge),
                cmocka_unit_test(a_little_taken_again_is_small),
                cmocka_unit_test(what_is_not_written_again_is_small),
                cmocka_unit_test(several_at_once_do_not_begin_one),
                cmocka_unit_test(huge_pages_that_slabs_filled_are_for_slabs),
                cmocka_unit_test(they_serve_others_before_memory_is_lacking),
                cmocka_unit_test(what_lies_beyond_the_map_is_not_asked_for),
        };
        int failed = 0;

        if (!has_huge_pages())
                return 77;
        for (unsigned i = 0; i < sizeof(tests) / sizeof(*tests); i++)
                failed |= alone(&tests[i]);
        return failed;
}
