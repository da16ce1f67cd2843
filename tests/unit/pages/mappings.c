/*
 * Proves that guards and parted huge pages share one bound of mappings (pages/advice.h): each
 * takes from what the other leaves, what is refused serves without, and all comes back.
 */
#include "harden/harden.h"
#include "huge_env.h"
#include "pages_env.h"
#include "pages/advice.h"
#include "pages/pages_node.h"

#define MIB ((size_t)1 << 20)

/* All but so many are taken. */
static void leave(unsigned mappings)
{
        assert_true(stook_mappings_book(STOOK_MAPPINGS_MOST - mappings));
}

/* As many as were taken by leave(); then none is booked. */
static void end_of_leave(unsigned mappings)
{
        stook_guards_open_all();
        stook_mappings_unbook(STOOK_MAPPINGS_MOST - mappings);
        assert_true(stook_mappings_book(STOOK_MAPPINGS_MOST));
        assert_false(stook_mappings_book(1));
        stook_mappings_unbook(STOOK_MAPPINGS_MOST);
}

static struct stook_span *guarded(void)
{
        struct stook_span *span = stook_span_take_guarded(0, 256 << 10, 0);

        assert_non_null(span);
        span->kind = STOOK_SPAN_LARGE;
        return span;
}

/* In huge pages, which are parted or not as it is purged. */
static struct stook_span *huge(size_t bytes)
{
        struct stook_span *span;

        stook_pages_set_thp(STOOK_THP_ALWAYS);
        span = stook_span_take(0, bytes, 0);
        stook_pages_set_thp(STOOK_THP_AUTO);
        assert_non_null(span);
        span->kind = STOOK_SPAN_LARGE;
        assert_true(stook_huge_is_advised(span->start));
        return span;
}

/* True: the huge page at the end of @span, of which half a MiB is purged, was parted. */
static bool part_end(struct stook_span *span)
{
        uintptr_t last = span->start + span->bytes - 2 * MIB;

        stook_pages_purge(0);
        assert_true(stook_huge_is_advised(last));
        assert_true(stook_span_resize(span, span->bytes - (512 << 10)));
        assert_int_equal(stook_pages_purge(0), 512 << 10);
        return !stook_huge_is_advised(last);
}

static void guards_take_what_is_left(void **state)
{
        uint64_t before = stook_guards_refused();
        struct stook_span *one, *other;

        (void)state;
        leave(STOOK_MAPPINGS_GUARDED + STOOK_MAPPINGS_BREAK);
        one = guarded();
        assert_true(one->use.guarded);
        assert_int_equal(stook_guards_refused(), before);
        other = guarded();
        assert_false(other->use.guarded);
        assert_int_equal(stook_guards_refused(), before + 1);
        stook_span_give_guarded(one);
        one = guarded();
        assert_true(one->use.guarded);
        stook_span_give_guarded(one);
        stook_span_give_guarded(other);
        end_of_leave(STOOK_MAPPINGS_GUARDED + STOOK_MAPPINGS_BREAK);
        assert_sound();
}

static void parted_huge_pages_leave_less_to_guards(void **state)
{
        struct stook_span *first = huge(8 * MIB), *second = huge(8 * MIB), *span;

        (void)state;
        leave(STOOK_MAPPINGS_GUARDED);
        assert_true(part_end(first));
        span = guarded();
        assert_false(span->use.guarded);
        stook_span_give_guarded(span);
        assert_true(part_end(second));
        stook_span_give(first);
        stook_span_give(second);
        assert_sound();
}

static void guards_leave_less_to_huge_pages(void **state)
{
        struct stook_span *used = huge(30 * MIB), *more = huge(10 * MIB);
        struct stook_span *span = huge(8 * MIB), *behind = huge(2 * MIB), *one;
        uintptr_t start = span->start;

        (void)state;
        leave(STOOK_MAPPINGS_GUARDED);
        one = guarded();
        assert_true(one->use.guarded);
        assert_false(part_end(span));
        stook_span_give_guarded(one);
        stook_guards_open_all();        /* those that wait keep theirs */
        assert_true(stook_span_resize(span, span->bytes - (64 << 10)));
        stook_pages_purge(0);
        assert_false(stook_huge_is_advised(start + 6 * MIB));
        /* What is whole again gives its mappings back. */
        stook_span_give(span);
        stook_pages_purge(0);
        span = huge(8 * MIB);
        assert_int_equal(span->start, start);
        assert_true(stook_huge_is_advised(start + 6 * MIB));
        end_of_leave(STOOK_MAPPINGS_GUARDED);
        stook_span_give(span);
        stook_span_give(behind);
        stook_span_give(more);
        stook_span_give(used);
        assert_sound();
}

/* One that was broken is as those around it again; one that was small parts a mapping. */
static void what_is_asked_for_again_is_booked(void **state)
{
        struct stook_span *span = huge(8 * MIB), *behind = huge(2 * MIB);
        uintptr_t last = span->start + 6 * MIB;

        (void)state;
        leave(STOOK_MAPPINGS_BREAK);
        assert_true(part_end(span));
        assert_false(stook_mappings_book(1));
        assert_true(stook_span_resize(span, 4 * MIB));
        stook_pages_purge(0);
        stook_span_give(span);
        span = huge(7 * MIB);
        assert_true(stook_huge_is_advised(last));
        end_of_leave(STOOK_MAPPINGS_BREAK);
        stook_span_give(behind);
        stook_span_give(span);
        assert_sound();
}

static struct stook_span *small(size_t bytes)
{
        struct stook_span *span = stook_span_take(0, bytes, 0);

        assert_non_null(span);
        span->kind = STOOK_SPAN_LARGE;
        return span;
}

/*
 * Small pages around it: it parts a mapping, also when it comes back a second time. The one beside
 * it does not, and needs nothing.
 */
static void what_is_huge_among_small_ones_stays_booked(void **state)
{
        struct stook_span *span = small(10 * MIB), *one, *other;
        uintptr_t start = (span->start + 4 * MIB) & ~(2 * MIB - 1);

        (void)state;
        assert_true(stook_span_resize(span, start - span->start));
        stook_pages_purge(0);
        leave(STOOK_MAPPINGS_BREAK);
        one = huge(64 << 10);
        assert_int_equal(one->start, start);
        assert_false(stook_mappings_book(1));
        other = small(64 << 10);
        assert_int_equal(other->start, start + (64 << 10));
        stook_span_give(other);
        stook_pages_purge(0);
        assert_false(stook_huge_is_advised(start));
        assert_false(stook_mappings_book(1));
        stook_span_give(one);
        stook_pages_purge(0);
        one = huge(64 << 10);
        assert_int_equal(one->start, start);
        assert_false(stook_mappings_book(1));
        stook_pages_set_thp(STOOK_THP_ALWAYS);
        other = small(2 * MIB);
        stook_pages_set_thp(STOOK_THP_AUTO);
        assert_true(stook_huge_is_advised(start + 2 * MIB));
        assert_false(stook_mappings_book(1));
        stook_span_give(other);
        stook_span_give(one);
        stook_span_give(span);
        assert_sound();
}

/* Huge pages asked for at once, in the midst of small ones, part one mapping in three. */
static void several_at_once_are_booked_once(void **state)
{
        struct stook_span *span = small(20 * MIB);
        uintptr_t start = (span->start + 4 * MIB) & ~(2 * MIB - 1), last = start + 4 * MIB;

        (void)state;
        leave(1);
        stook_huge_ask(start, 4 * MIB);
        assert_false(stook_huge_is_advised(start));
        end_of_leave(1);
        leave(STOOK_MAPPINGS_BREAK);
        stook_huge_ask(start, 4 * MIB);
        assert_true(stook_huge_is_advised(start));
        assert_true(stook_huge_is_advised(start + 2 * MIB));
        assert_false(stook_mappings_book(1));
        /* Around them, and once more, it needs nothing; what was booked stays booked. */
        stook_huge_ask(start - 2 * MIB, 8 * MIB);
        stook_huge_ask(last, 4 * MIB);
        assert_true(stook_huge_is_advised(start - 2 * MIB));
        assert_true(stook_huge_is_advised(last + 2 * MIB));
        assert_false(stook_mappings_book(1));
        stook_span_give(span);
        assert_sound();
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(guards_take_what_is_left),
                /* Of these the system needs huge pages. */
                cmocka_unit_test(guards_leave_less_to_huge_pages),
                cmocka_unit_test(parted_huge_pages_leave_less_to_guards),
                cmocka_unit_test(what_is_asked_for_again_is_booked),
                cmocka_unit_test(what_is_huge_among_small_ones_stays_booked),
                cmocka_unit_test(several_at_once_are_booked_once),
        };
        unsigned last = has_huge_pages() ? sizeof(tests) / sizeof(*tests) : 1;
        int failed = 0;

        for (unsigned i = 0; i < last; i++)
                failed |= alone(&tests[i]);
        return failed;
}
