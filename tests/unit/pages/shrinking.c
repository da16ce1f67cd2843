/*
 * Proves what a purge leaves in a process that replaces what it has: all that may lie free, and not
 * less because a larger span was freed. That is as much as is in use where large objects are
 * written, else a STOOK_PART of it. Where few large objects are replaced in turn, the one that is
 * freed stays, and one that fits nowhere grows the free end of the heap by what it lacks. In a
 * process that shrinks the span goes whole, and next to nothing is left at the end, though no
 * further call comes.
 */
#include "pages_env.h"
#include "pages/pages_node.h"

#define PIECE ((size_t)64 << 10)
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

static size_t committed(void)
{
        return __atomic_load_n(&stook_pages_nodes[0].ledger.committed, __ATOMIC_RELAXED);
}

/* Runs first: two objects, of which one is freed, taken again, and freed for a larger one. */
static void what_is_replaced_stays(void **state)
{
        size_t before;

        (void)state;
        stook_pages_set_decay_ms(UINT32_MAX / 4);       /* nothing by age, nothing forgotten */
        take(0);
        take(1);
        stook_span_give(spans[1]);
        assert_int_equal(dirty(), EACH);
        take(1);
        assert_int_equal(dirty(), 0);
        stook_span_give(spans[1]);
        before = committed();
        spans[1] = stook_span_take(0, EACH + MIB, 0);
        assert_non_null(spans[1]);
        assert_in_range(committed() - before, MIB, 2 * MIB);
        assert_sound();
        stook_span_give(spans[1]);
        stook_span_give(spans[0]);                      /* the second in turn: no replacement */
        assert_int_equal(dirty(), 0);
        assert_sound();
}

static void what_is_written_stays_until_it_is_old(void **state)
{
        struct stook_density *large = &stook_pages_nodes[0].ledger.density[STOOK_DENSITY_LARGE];

        (void)state;
        stook_pages_set_decay_ms(UINT32_MAX / 4);       /* nothing by age, nothing forgotten */
        for (unsigned n = 0; n < SPANS; n++)
                take(n);
        assert_int_equal(stook_density_found(large), STOOK_DENSE);
        stook_pages_nodes[0].ledger.refault = 0;         /* as if nothing was missed */
        stook_span_give(spans[0]);
        assert_int_equal(dirty(), EACH);
        large->found = STOOK_SPARSE;
        assert_sound();
}

/* As of an object that had content before it was taken: it does not tell that it was written. */
static void give_untold(unsigned n)
{
        spans[n]->state = STOOK_SPAN_DIRTY;
        stook_span_give(spans[n]);
}

/* Runs after it: 56 MiB are in use, as of objects that are written in part. */
static void only_the_excess_goes(void **state)
{
        (void)state;
        give_untold(1);
        assert_int_equal(dirty(), 6 * EACH / STOOK_PART & ~(STOOK_HUGE_PAGE - 1));
        assert_sound();
}

/* Runs after it: 48 of 64 MiB are in use. Below two thirds the process shrinks. */
static void what_shrinks_goes(void **state)
{
        (void)state;
        for (unsigned n = 2; n < SPANS; n++) {
                give_untold(n);
                assert_in_range(dirty(), 0,
                                n < SPANS - 1 ? (SPANS - 1 - n) * EACH / STOOK_PART : 0);
        }
        assert_int_equal(stook_pages_taken(0), 0);
        assert_sound();
}

#define PIECES 1024
#define ROUND  8
#define STAY   96                       /* 6 MiB */

/*
 * Runs after it: nothing is in use. Small spans are freed, and a large one is replaced again and
 * again in between. They are not replaced, and do not stay.
 */
static void what_is_freed_between_replacements_goes(void **state)
{
        static struct stook_span *pieces[PIECES];

        (void)state;
        stook_pages_nodes[0].ledger.density[STOOK_DENSITY_LARGE].found = STOOK_DENSE;
        for (unsigned i = 0; i < PIECES; i++) {
                pieces[i] = stook_span_take(0, PIECE, 0);
                assert_non_null(pieces[i]);
                memset((void *)pieces[i]->start, 1, PIECE);
        }
        for (unsigned i = 0; i < PIECES - STAY; i++) {
                if (i % ROUND == 0) {
                        take(0);
                        stook_span_give(spans[0]);
                }
                stook_pages_nodes[0].ledger.refault = 0; /* as if nothing was missed */
                stook_span_give(pieces[i]);
        }
        /* With the last large one 16 MiB were in use, at most. */
        assert_in_range(dirty(), 0, 32 * MIB);
        for (unsigned i = PIECES - STAY; i < PIECES; i++)
                stook_span_give(pieces[i]);
        assert_sound();
}

#define PAGES 16384
#define STAYS 20                        /* one page of so many: what is between them is small */

/* Runs after it: nothing is in use. Without a call that comes later, pieces of any size go. */
static void the_end_of_a_spike_goes_in_pieces(void **state)
{
        static struct stook_span *pages[PAGES];
        size_t page = stook_os_page_bytes();

        (void)state;
        stook_pages_purge(0);
        for (unsigned n = 0; n < PAGES; n++)
                assert_non_null(pages[n] = stook_span_take(0, page, 0));
        stook_pages_nodes[0].ledger.refault = 0;         /* as if nothing was missed */
        for (unsigned n = 0; n < PAGES; n++)
                if (n % STAYS)
                        stook_span_give(pages[n]);
        assert_true(stook_pages_taken(0) < PAGES * page / STOOK_PART);
        assert_in_range(dirty(), 0, PAGES * page / 32);
        for (unsigned n = 0; n < PAGES; n += STAYS)
                stook_span_give(pages[n]);
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
                cmocka_unit_test(what_is_written_stays_until_it_is_old),
                cmocka_unit_test(only_the_excess_goes),
                cmocka_unit_test(what_shrinks_goes),
                cmocka_unit_test(what_is_freed_between_replacements_goes),
                cmocka_unit_test(the_end_of_a_spike_goes_in_pieces),
        };

        return cmocka_run_group_tests(tests, start, NULL);
}
