/*
 * What this proves, of a sheaf whose count has come to the mark: no pop passes it; each way of
 * allocating gives main a new count and goes on; a refused one costs an object of the slabs, and
 * loses nothing. Pops and pushes agree with a plain count over new counts, folds and the wrap.
 */
#include "unit/slot/checks.h"
#include "base/inject.h"
#include "slot/slot_trip.h"

/* A sheaf that is marked after @pops more. */
static struct stook_sheaf *marked_after(struct stook_sheaf *s, unsigned pops)
{
        s->word = stook_word_rearmed(s->word, pops ? pops : 1);
        if (!pops)                              /* one pop more in count, one less in base */
                s->word += ((UINT64_C(1) << STOOK_WORD_COUNT_SHIFT) -
                            (UINT64_C(1) << STOOK_WORD_BASE_SHIFT));
        assert_int_equal(stook_word_to_mark(s->word), pops);
        return s;
}

static void sections_stop_at_the_mark(void **state)
{
        struct stook_sheaf *s = marked_after(sheaf_of(CAPACITY), 3);
        void *out[CAPACITY];
        size_t n = 0;

        (void)state;
        set(s, NULL);
        for (int i = 0; i < 100 && !n; i++)
                n = ops->pop_n(front.offset, CAPACITY, out);
        assert_int_equal(n, 3);
        assert_true(stook_word_is_marked(s->word));
        for (int i = 0; i < 100; i++) {
                assert_int_equal(ops->pop_n(front.offset, 1, out + 3), 0);
                assert_null(ops->pop(front.offset));
                assert_null(stook_section_pop_v1(front.line));
        }
        assert_int_equal(stook_sheaf_size(s), CAPACITY - 3);
        for (size_t i = 0; i < n; i++)          /* pushes do not look at it */
                assert_int_equal(push(out[i]), STOOK_PUSH_DONE);
        assert_true(stook_word_is_marked(s->word));
        check_nothing_lost();
}

static void rearm_compares_main_and_word(void **state)
{
        struct stook_sheaf *s = marked_after(sheaf_of(3), 0), *other = sheaf_of(3);
        uint64_t word = s->word, to = stook_word_rearmed(word, 7);
        bool done = false;

        (void)state;
        set(s, other);
        assert_false(ops->rearm(front.offset, other, other->word, to));
        assert_false(ops->rearm(front.offset, s, word + 1, to));
        assert_int_equal(s->word, word);
        for (int i = 0; i < 100 && !done; i++)
                done = ops->rearm(front.offset, s, word, to);
        assert_true(done);
        assert_int_equal(stook_word_to_mark(s->word), 7);
        assert_int_equal(stook_word_pops(s->word), stook_word_pops(word));
        assert_false(ops->rearm(front.offset, s, word, to));
        check_nothing_lost();
}

static void an_allocation_at_the_mark(void **state)
{
        struct stook_sheaf *s = marked_after(sheaf_of(3), 0), *empty;

        (void)state;
        set(s, NULL);
        stook_slot_put(&front, stook_slot_get(&front, true), on_double);
        assert_ptr_equal(main_now(), s);
        assert_int_equal(stook_word_to_mark(s->word), STOOK_WORD_COUNTS - 1);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 0);
        check_nothing_lost();

        begin(3);                               /* a marked spare is swapped in */
        empty = sheaf_of(0);
        s = marked_after(sheaf_of(3), 0);
        set(empty, s);
        stook_slot_put(&front, stook_slot_get(&front, true), on_double);
        assert_ptr_equal(main_now(), s);
        assert_int_equal(stook_word_to_mark(s->word), STOOK_WORD_COUNTS - 1);
        check_nothing_lost();

        begin(3);                               /* a marked sheaf of the barn comes whole */
        s = marked_after(sheaf_of(CAPACITY), 0);
        assert_true(stook_barn_push_full(&barns, 0, s));
        stook_slot_put(&front, stook_slot_get(&front, true), on_double);
        assert_ptr_equal(main_now(), s);
        assert_int_equal(stook_word_to_mark(s->word), STOOK_WORD_COUNTS - 1);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 0);
        check_nothing_lost();
}

static void a_refused_new_count(void **state)
{
        struct stook_sheaf *s = marked_after(sheaf_of(3), 0);
        void *out[2];

        (void)state;
        set(s, NULL);
        stook_inject.rearm_fail = 1;
        assert_int_equal(stook_slot_trip(&front, false), STOOK_TRIP_NONE);
        out[0] = stook_slot_get(&front, true);
        assert_non_null(out[0]);
        assert_int_equal(counted(STOOK_STAT_alloc_slowpath), 1);
        assert_int_equal(stook_slot_alloc_bulk(&front, 1, out + 1), 0);
        assert_int_equal(stook_sheaf_size(s), 3);
        assert_true(stook_word_is_marked(s->word));
        stook_inject.rearm_fail = 0;
        stook_slot_put(&front, out[0], on_double);
        check_nothing_lost();
}

static void bulk_calls_pass_marks_by_new_counts(void **state)
{
        void *out[OBJECTS];

        (void)state;
        for (unsigned left = 0; left <= CAPACITY; left++) {
                size_t n;

                start(NULL);
                set(marked_after(sheaf_of(CAPACITY), left), marked_after(sheaf_of(CAPACITY), left));
                assert_true(stook_barn_push_full(&barns, 0,
                                                 marked_after(sheaf_of(CAPACITY), left)));
                n = stook_slot_alloc_bulk(&front, 3 * CAPACITY, out);
                assert_int_equal(n, 3 * CAPACITY);
                n -= stook_slot_free_bulk(&front, n, out);
                stook_slab_drain(&slabs, n, out + 3 * CAPACITY - n);
                check_nothing_lost();
        }
}

/* As the sole owner, beside a plain count: what sheaf and counters say together. */
static void counts_agree_over_folds_and_wraps(void **state)
{
        uint64_t pops = 0, pushes = 0, random = 1;
        struct stook_sheaf *s = sheaf_of(0);
        struct stook_sheaf_sums sums;

        (void)state;
        for (unsigned i = 0; i < 40000; i++) {
                unsigned n = STOOK_WORD_COUNTS;

                random = random * UINT64_C(6364136223846793005) + 1;
                if (random >> 62)               /* pushes and pops up to the mark, or not */
                        n = (unsigned)(random >> 40) % STOOK_WORD_COUNTS;
                if (n > stook_word_to_mark(s->word))
                        n = stook_word_to_mark(s->word);
                s->word += n * (uint64_t)(STOOK_SHEAF_POP + 1);
                pops += n;
                pushes += n;
                if (stook_word_is_marked(s->word))
                        assert_false(stook_sheaf_trip(&front, s));
                stook_sheaf_sum(INDEX, &sums);
                assert_int_equal(sums.pops + counted(STOOK_STAT_alloc_fastpath), pops);
                assert_int_equal(sums.pushes + counted(STOOK_STAT_free_fastpath), pushes);
                assert_int_equal(stook_sheaf_size(s), 0);
        }
        assert_true(counted(STOOK_STAT_alloc_fastpath) >= 4 * STOOK_WORD_FOLD);
        stook_sheaf_delete(s, &counters);
        assert_int_equal(counted(STOOK_STAT_alloc_fastpath), pops);
        assert_int_equal(counted(STOOK_STAT_free_fastpath), pushes);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(sections_stop_at_the_mark, start),
                cmocka_unit_test_setup(rearm_compares_main_and_word, start),
                cmocka_unit_test_setup(an_allocation_at_the_mark, start),
                cmocka_unit_test_setup(a_refused_new_count, start),
                cmocka_unit_test_setup(bulk_calls_pass_marks_by_new_counts, start),
                cmocka_unit_test_setup(counts_agree_over_folds_and_wraps, start),
        };

        return cmocka_run_group_tests(tests, start_slots, NULL);
}
