/*
 * What this proves, of the operations of section/section.h on either backend: each at every size of
 * a sheaf, with exact counts in the sheaf's word; a precharge at its bounds.
 */
#include <string.h>
#include "unit/slot/checks.h"

static void *pop(void)
{
        void *o = NULL;

        for (int i = 0; i < 100 && !o; i++)
                o = ops->pop(front.offset);
        return o;
}

static size_t pop_n(size_t n, void **objects)
{
        size_t k = 0;

        for (int i = 0; i < 100 && !k; i++)
                k = ops->pop_n(front.offset, n, objects);
        return k;
}

static size_t push_n(size_t n, void **objects)
{
        size_t k = 0;

        for (int i = 0; i < 100 && !k; i++)
                k = ops->push_n(front.offset, n, objects);
        return k;
}

static void the_zero_sheaf_is_empty_and_full(void **state)
{
        void *o = &o, *array[2] = { &o, &o };

        (void)state;
        assert_ptr_equal(main_now(), ZERO);
        assert_null(spare_now());
        assert_null(pop());
        assert_int_equal(push(o), STOOK_PUSH_MISS);
        assert_int_equal(pop_n(2, array), 0);
        assert_int_equal(push_n(2, array), 0);
        assert_null(ops->peek(front.offset));
        assert_null(ops->pop_if(front.offset, o));
        check_nothing_lost();
}

static void push_and_pop_at_every_size(void **state)
{
        void *out[CAPACITY + 1];
        struct stook_sheaf *s = sheaf_of(0);

        (void)state;
        set(s, NULL);
        for (unsigned i = 0; i < CAPACITY; i++) {
                out[i] = fake_slab_stamp(out);  /* any address */
                assert_int_equal(stook_slab_fill(&slabs, 0, 1, &out[i], 0), 1);
                assert_int_equal(push(out[i]), STOOK_PUSH_DONE);
                assert_int_equal(s->word, i + 1);
                assert_int_equal(push(out[i]),
                                 i + 1 < CAPACITY ? STOOK_PUSH_DOUBLE : STOOK_PUSH_MISS);
                assert_int_equal(s->word, i + 1);
                assert_ptr_equal(ops->peek(front.offset), out[i]);
        }
        assert_int_equal(push(&out[CAPACITY]), STOOK_PUSH_MISS);
        for (unsigned i = CAPACITY; i-- > 0;) {
                assert_ptr_equal(pop(), out[i]);
                assert_int_equal(s->word, i | (uint64_t)(CAPACITY - i) << 16);
        }
        assert_null(pop());
        for (unsigned i = 0; i < CAPACITY; i++)
                assert_int_equal(push(out[i]), STOOK_PUSH_DONE);
        check_nothing_lost();
}

static void batches_at_every_size(void **state)
{
        (void)state;
        for (unsigned size = 0; size <= CAPACITY; size++)
                for (size_t n = 0; n <= CAPACITY + 2; n++) {
                        struct stook_sheaf *s = sheaf_of(size);
                        void *was[CAPACITY], *got[CAPACITY + 2];
                        size_t k;

                        memcpy(was, s->objects, sizeof(was));
                        set(s, NULL);
                        k = pop_n(n, got);
                        assert_int_equal(k, n < size ? n : size);
                        assert_int_equal(s->word, (size - k) | (uint64_t)k << 16);
                        for (size_t i = 0; i < k; i++)
                                assert_ptr_equal(got[i], was[size - 1 - i]);
                        if (k) {
                                assert_int_equal(push_n(k, got), k);
                                assert_int_equal(s->word, size | (uint64_t)k << 16);
                                for (size_t i = 0; i < k; i++)
                                        assert_ptr_equal(s->objects[size - k + i], got[i]);
                        }
                        k = CAPACITY + 2 - size;        /* two more than there is room for */
                        assert_int_equal(stook_slab_fill(&slabs, 0, k, got, 0), k);
                        assert_int_equal(push_n(k, got), k - 2);
                        assert_int_equal(stook_sheaf_size(s), CAPACITY);
                        stook_slab_drain(&slabs, 2, got + k - 2);
                }
        check_nothing_lost();
}

static void pop_if_takes_only_what_was_seen(void **state)
{
        struct stook_sheaf *s = sheaf_of(3);
        void *top = s->objects[2];

        (void)state;
        set(s, NULL);
        assert_null(ops->pop_if(front.offset, s->objects[1]));
        assert_int_equal(s->word, 3);
        while (!ops->pop_if(front.offset, top))
                ;
        assert_int_equal(s->word, 2 | 1 << 16);
        assert_int_equal(push(top), STOOK_PUSH_DONE);
        check_nothing_lost();
}

static void exchange_proves_pair_size_and_configuration(void **state)
{
        struct stook_sheaf *a = sheaf_of(2), *b = sheaf_of(0), *c = sheaf_of(1);
        struct stook_pair ab = { (uintptr_t)a, (uintptr_t)b }, ba = { (uintptr_t)b, (uintptr_t)a };
        struct stook_pair ac = { (uintptr_t)a, (uintptr_t)c }, cb = { (uintptr_t)c, (uintptr_t)b };
        uint32_t config = 6;

        (void)state;
        set(a, b);
        for (int i = 0; i < 100; i++) {
                assert_false(ops->exchange(front.offset, ac, ba, 2, NULL, 0));
                assert_false(ops->exchange(front.offset, cb, ba, 1, NULL, 0));
                assert_false(ops->exchange(front.offset, ab, ba, 1, NULL, 0));
                assert_false(ops->exchange(front.offset, ab, ba, 0, NULL, 0));
                assert_false(ops->exchange(front.offset, ab, ba, 2, &config, 4));
        }
        assert_ptr_equal(main_now(), a);
        assert_ptr_equal(spare_now(), b);
        while (!ops->exchange(front.offset, ab, ba, 2, &config, 6))
                ;
        assert_ptr_equal(main_now(), b);
        assert_ptr_equal(spare_now(), a);
        set(c, NULL);
        check_nothing_lost();
}

/* Group 5's place is group 1's, too. */
#define PRECHARGE_AT (uint32_t)((STOOK_PRECHARGE_LINE << STOOK_LINE_SHIFT) + \
                                offsetof(struct stook_precharge_line, word[1]))
#define GROUP(id) ((uint64_t)(id) << 32)

static void set_precharge(uint64_t to)
{
        bool done = false;

        for (int i = 0; i < 100 && !done; i++)
                done = ops->precharge_set(PRECHARGE_AT, ops->precharge_look(PRECHARGE_AT), to);
        assert_true(done);
}

/* @from: the word before. True: it is @from + @delta now; false: as it was. */
static bool charges(uint64_t from, uint64_t tag, int64_t delta)
{
        bool done = false;

        set_precharge(from);
        for (int i = 0; i < 100 && !done; i++)
                done = ops->precharge_add(PRECHARGE_AT, tag, delta);
        assert_int_equal(ops->precharge_look(PRECHARGE_AT), done ? from + (uint64_t)delta : from);
        return done;
}

static void a_precharge_keeps_its_group_and_its_bounds(void **state)
{
        const uint64_t most = STOOK_PRECHARGE_MAX, frozen = STOOK_PRECHARGE_FROZEN;
        const int64_t far = 3 * (int64_t)most;

        (void)state;
        assert_true(charges(GROUP(5), GROUP(5), 1));
        assert_true(charges(GROUP(5) | 1, GROUP(5), -1));
        assert_true(charges(GROUP(5), GROUP(5), (int64_t)most));
        assert_true(charges(GROUP(5) | most, GROUP(5), -(int64_t)most));
        assert_true(charges(GROUP(UINT16_MAX) | 7, GROUP(UINT16_MAX), -7));

        assert_false(charges(GROUP(5), GROUP(5), -1));
        assert_false(charges(GROUP(5) | most, GROUP(5), 1));
        assert_false(charges(GROUP(5) | 100, GROUP(5), -far));
        assert_false(charges(GROUP(5) | 100, GROUP(5), far));
        assert_false(charges(GROUP(1) | 100, GROUP(5), 1));
        assert_false(charges(GROUP(4) | most, GROUP(5), 1));
        assert_false(charges(GROUP(5), GROUP(4), -1));
        assert_false(charges(GROUP(6), GROUP(5), -far));
        assert_false(charges(0, GROUP(5), 1));
        assert_false(charges(0, GROUP(1), -1));
        assert_false(charges(frozen | GROUP(5) | 100, GROUP(5), 1));
        assert_false(charges(frozen | GROUP(5) | most, GROUP(5), 1));
        set_precharge(0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(the_zero_sheaf_is_empty_and_full, start),
                cmocka_unit_test_setup(push_and_pop_at_every_size, start),
                cmocka_unit_test_setup(batches_at_every_size, start),
                cmocka_unit_test_setup(pop_if_takes_only_what_was_seen, start),
                cmocka_unit_test_setup(exchange_proves_pair_size_and_configuration, start),
                cmocka_unit_test_setup(a_precharge_keeps_its_group_and_its_bounds, start),
        };

        return cmocka_run_group_tests(tests, start_slots, NULL);
}
