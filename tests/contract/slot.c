/*
 * Proves on either backend (STOOK_SLOTS), with real barns over a fake slab layer:
 *  - each operation of the contract in slot/slot.h, at every size of a sheaf, with exact counts in
 *    the sheaf's word;
 *  - each failure row: exchanges refused, no full sheaf, no memory for objects or sheaves, aborts
 *    for ever;
 *  - that no object is lost or handed out twice in any of it.
 * landings.c has the landing states of slot_replace.c's table.
 * With the argument `unprotected` the sections run on a made-up rseq area and a slot of the locked
 * backend. No kernel protects them, and one thread needs no protection. So an emulator can test
 * their instructions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "barn/barn_inside.h"
#include "base/inject.h"
#include "fake_slab.h"
#include "evacuate/evacuate.h"
#include "os/os.h"
#include "pages/meta.h"
#include "slot/slot_hot.h"
#include "slot/slot_regions.h"

#define CAPACITY 8
#define OBJECTS  400
#define INDEX    3
#define ZERO     ((struct stook_sheaf *)&stook_sheaf_zero)

static struct stook_slabs    slabs = { .cache_index = INDEX, .stride = 64, .object_size = 64 };
static struct stook_counters counters;
static struct stook_barns    barns;
static struct stook_front    front = { .offset = INDEX << STOOK_LINE_SHIFT, .below = &barns };
static const struct stook_section_ops *ops;
static unsigned doubles;
static size_t filled_here;              /* objects that sheaf_of put into sheaves */

static void on_double(struct stook_front *f, void *object)
{
        (void)f, (void)object;
        doubles++;
}

static struct stook_sheaf *main_now(void)
{
        return (struct stook_sheaf *)ops->look(front.offset).lo;
}
static struct stook_sheaf *spare_now(void)
{
        return (struct stook_sheaf *)ops->look(front.offset).hi;
}

static struct stook_sheaf *sheaf_of(unsigned size)
{
        struct stook_sheaf *s = stook_sheaf_new(INDEX, CAPACITY, 0, &counters);

        assert_non_null(s);
        assert_int_equal(stook_slab_fill(&slabs, 0, size, s->objects, 0), size);
        stook_sheaf_set_size(s, size);
        filled_here += size;
        return s;
}

static void throw_away(struct stook_sheaf *s)
{
        if (!s || s == ZERO)
                return;
        stook_barn_flush(&barns, s);
        stook_sheaf_delete(s, &counters);
}

/*
 * A test may be preempted inside a section: the operations below say so by a miss, and are
 * repeated.
 */
static bool exchange(struct stook_pair from, struct stook_sheaf *main, struct stook_sheaf *spare,
                     unsigned size)
{
        struct stook_pair to = { (uintptr_t)main, (uintptr_t)spare };

        for (int i = 0; i < 100; i++)
                if (ops->exchange(front.offset, from, to, size, NULL, 0))
                        return true;
        return false;
}

/* Makes the slot {main, spare}; what was there is thrown away. */
static void set(struct stook_sheaf *main, struct stook_sheaf *spare)
{
        struct stook_pair was = ops->look(front.offset);

        assert_true(exchange(was, main, spare, stook_sheaf_size((void *)was.lo)));
        throw_away((void *)was.lo);
        throw_away((void *)was.hi);
}

static void *pop(void)
{
        void *o = NULL;

        for (int i = 0; i < 100 && !o; i++)
                o = ops->pop(front.offset);
        return o;
}

static enum stook_push push(void *object)
{
        enum stook_push answer = STOOK_PUSH_MISS;

        for (int i = 0; i < 100 && answer == STOOK_PUSH_MISS; i++)
                answer = ops->push(front.offset, object);
        return answer;
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

/*
 * Everything back, then all objects must be inside, and pops and pushes of the cache must balance.
 */
static void check_nothing_lost(void)
{
        struct stook_sheaf_sums sums;
        uint64_t pops, pushes;

        memset(&stook_inject, 0, sizeof(stook_inject));
        fake_slab_fail_after = -1;
        stook_inject.sheaf_fail_every = 0;
        front.config = 0;
        assert_true(stook_evacuate_cache(&front));
        assert_int_equal(stook_slot_objects(&front), 0);
        stook_barn_empty_all(&barns);
        assert_int_equal(fake_slab_out(), 0);
        assert_int_equal(fake_slab_faults, 0);
        stook_sheaf_sum(INDEX, &sums);
        assert_int_equal(sums.sheaves, 0);
        assert_int_equal(sums.objects, 0);
        pops = stook_counted(&counters, STOOK_STAT_alloc_fastpath);
        pushes = stook_counted(&counters, STOOK_STAT_free_fastpath);
        assert_int_equal(pops + stook_counted(&counters, STOOK_STAT_sheaf_flush),
                         pushes + stook_counted(&counters, STOOK_STAT_sheaf_refill) + filled_here);
        assert_int_equal(stook_counted(&counters, STOOK_STAT_sheaf_alloc),
                         stook_counted(&counters, STOOK_STAT_sheaf_free));
}

static int start(void **state)
{
        (void)state;
        fake_slab_start(OBJECTS);
        memset(&counters, 0, sizeof(counters));
        assert_int_equal(stook_barns_init(&barns, &slabs, &counters, CAPACITY, 3, 3), 0);
        doubles = 0;
        filled_here = 0;
        ops = stook_slot_ops();
        return 0;
}

/* ---- the operations ---- */

static void test_the_zero_sheaf_is_empty_and_full(void **state)
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

static void test_push_and_pop_at_every_size(void **state)
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

static void test_batches_at_every_size(void **state)
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

static void test_pop_if_takes_only_what_was_seen(void **state)
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

static void test_exchange_proves_pair_size_and_configuration(void **state)
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
        throw_away(c);
        check_nothing_lost();
}

/*
 * The inlined path sees the same slot as the table of operations; only enrolled threads get there.
 */
static void test_the_inlined_path(void **state)
{
        struct stook_sheaf *s = sheaf_of(1);
        void *o = NULL;

        (void)state;
        set(s, NULL);
        if (ops == &stook_section_locked) {
                assert_int_equal(stook_self->ready, 0);
                assert_null(stook_slot_pop(front.offset));
                assert_false(stook_slot_push(front.offset, &o));
        } else {
                for (int i = 0; i < 100 && !o; i++)
                        o = stook_slot_pop(front.offset);
                assert_ptr_equal(o, s->objects[0]);
                while (!stook_slot_push(front.offset, o))
                        ;
                assert_false(stook_slot_push(front.offset, o));
                assert_int_equal(s->word, 1 | 1 << 16);
        }
        check_nothing_lost();
}

/* ---- misses ---- */

static void test_a_first_allocation_refills(void **state)
{
        void *o;

        (void)state;
        o = stook_slot_alloc_miss(&front);
        assert_non_null(o);
        assert_int_equal(stook_sheaf_size(main_now()), CAPACITY - 1);
        assert_int_equal(stook_counted(&counters, STOOK_STAT_sheaf_refill), CAPACITY);
        assert_int_equal(stook_counted(&counters, STOOK_STAT_alloc_slowpath), 0);
        stook_slot_free_miss(&front, o, on_double);
        assert_int_equal(stook_sheaf_size(main_now()), CAPACITY);
        assert_int_equal(stook_counted(&counters, STOOK_STAT_free_slowpath), 0);
        stook_slot_free_miss(&front, o,
                             on_double); /* a full main refuses, but its top is looked at */
        assert_int_equal(doubles, 1);
        assert_int_equal(stook_sheaf_size(main_now()), CAPACITY);
        check_nothing_lost();
}

static void test_a_spare_is_swapped_in_before_anything_else(void **state)
{
        struct stook_sheaf *a = sheaf_of(0), *b = sheaf_of(2);
        void *o;

        (void)state;
        set(a, b);
        o = stook_slot_alloc_miss(&front);
        assert_ptr_equal(main_now(), b);
        assert_ptr_equal(spare_now(), a);
        assert_int_equal(stook_counted(&counters, STOOK_STAT_sheaf_refill), 0);
        assert_int_equal(push(o), STOOK_PUSH_DONE);

        set(sheaf_of(CAPACITY), a = sheaf_of(1));
        assert_int_equal(stook_slab_fill(&slabs, 0, 1, &o, 0), 1);
        stook_slot_free_miss(&front, o, on_double);
        assert_ptr_equal(main_now(), a);
        assert_int_equal(stook_sheaf_size(a), 2);
        check_nothing_lost();
}

/*
 * Runs that the barn takes part in, and such that it takes none of, for nothing is asked of it for
 * long.
 */
static void test_long_runs_move_whole_sheaves(void **state)
{
        void *out[OBJECTS];

        (void)state;
        for (int round = 0; round < 6; round++) {
                unsigned n = round & 1 ? 5 * CAPACITY : OBJECTS;

                for (unsigned i = 0; i < n; i++) {
                        out[i] = stook_slot_pop(front.offset);
                        if (!out[i])
                                out[i] = stook_slot_alloc_miss(&front);
                        assert_non_null(out[i]);
                        assert_int_equal((*fake_slab_stamp(out[i]))++, 0);
                }
                if (n == OBJECTS)
                        assert_null(stook_slot_alloc_miss(&front));
                for (unsigned i = 0; i < n; i++) {
                        assert_int_equal(--*fake_slab_stamp(out[i]), 0);
                        if (!stook_slot_push(front.offset, out[i]))
                                stook_slot_free_miss(&front, out[i], on_double);
                }
        }
        assert_true(stook_counted(&counters, STOOK_STAT_barn_get) > 0);
        assert_true(stook_counted(&counters, STOOK_STAT_barn_put) > 0);
        assert_true(stook_counted(&counters, STOOK_STAT_sheaf_flush) > 0);
        assert_int_equal(doubles, 0);
        check_nothing_lost();
}

/*
 * Every n-th of each step refused, n from 1: calls succeed all the same as long as the slabs have
 * objects.
 */
static void test_refusals_go_down_and_lose_nothing(void **state)
{
        uint32_t *hooks[] = { &stook_inject.miss_pop, &stook_inject.miss_push,
                              &stook_inject.exchange_fail, &stook_inject.get_fail,
                              &stook_inject.refill_fail, &stook_inject.abort_storm,
                              &stook_inject.sheaf_fail_every };

        (void)state;
        for (unsigned h = 0; h < sizeof(hooks) / sizeof(hooks[0]); h++)
                for (uint32_t n = 1; n <= 5; n++) {
                        void *out[100];

                        start(NULL);
                        *hooks[h] = n;
                        for (int round = 0; round < 3; round++) {
                                for (unsigned i = 0; i < 100; i++) {
                                        out[i] = stook_slot_alloc_miss(&front);
                                        assert_non_null(out[i]);
                                        assert_int_equal((*fake_slab_stamp(out[i]))++, 0);
                                }
                                for (unsigned i = 0; i < 100; i++) {
                                        --*fake_slab_stamp(out[i]);
                                        stook_slot_free_miss(&front, out[i], on_double);
                                }
                        }
                        if (n == 1 && hooks[h] != &stook_inject.sheaf_fail_every && h != 1 &&
                            h != 3)
                                assert_true(stook_counted(&counters, STOOK_STAT_alloc_slowpath) >
                                            0);
                        assert_int_equal(doubles, 0);
                        check_nothing_lost();
                }
}

static void test_no_memory_is_null_and_loses_nothing(void **state)
{
        (void)state;
        for (long n = 0; n < 3 * CAPACITY; n++) {
                void *out[3 * CAPACITY];
                long got = 0;

                start(NULL);
                fake_slab_fail_after = n;
                while ((out[got] = stook_slot_alloc_miss(&front)))
                        got++;
                /*
                 * A refill that falls short gives back what it got; the fake counts that against
                 * the limit.
                 */
                assert_true(got <= n);
                while (got)
                        stook_slot_free_miss(&front, out[--got], on_double);
                check_nothing_lost();
        }
}

static void test_a_double_free_is_told(void **state)
{
        void *o;

        (void)state;
        set(sheaf_of(2), NULL);
        o = main_now()->objects[1];
        stook_slot_free_miss(&front, o, on_double);
        assert_int_equal(doubles, 1);
        assert_int_equal(stook_sheaf_size(main_now()), 2);
        check_nothing_lost();
}

static void test_an_odd_configuration_installs_nothing(void **state)
{
        void *o;

        (void)state;
        front.config = 1;
        o = stook_slot_alloc_miss(&front);
        assert_non_null(o);
        stook_slot_free_miss(&front, o, on_double);
        assert_ptr_equal(main_now(), ZERO);
        assert_int_equal(stook_counted(&counters, STOOK_STAT_alloc_slowpath), 1);
        assert_int_equal(stook_counted(&counters, STOOK_STAT_free_slowpath), 1);
        check_nothing_lost();
}

static void test_bulk_takes_what_slot_and_barn_have(void **state)
{
        void *out[OBJECTS];

        (void)state;
        for (size_t n = 1; n < 9 * CAPACITY; n++) {
                size_t got, put;

                start(NULL);
                set(sheaf_of(3), sheaf_of(CAPACITY));
                for (int i = 0; i < 3; i++)
                        assert_true(stook_barn_push_full(&barns, 0, sheaf_of(CAPACITY)));
                got = stook_slot_alloc_bulk(&front, n, out);
                assert_int_equal(got, n < 3 + 4 * CAPACITY ? n : 3 + 4 * CAPACITY);
                for (size_t i = 0; i < got; i++)
                        assert_int_equal((*fake_slab_stamp(out[i]))++, 0);
                for (size_t i = 0; i < got; i++)
                        --*fake_slab_stamp(out[i]);
                put = stook_slot_free_bulk(&front, got, out);
                assert_true(put <= got);
                assert_int_equal(stook_counted(&counters, STOOK_STAT_sheaf_flush), 0);
                stook_slab_drain(&slabs, got - put, out + put);
                check_nothing_lost();
        }
}

static void test_a_cache_without_sheaves_goes_to_the_slabs(void **state)
{
        void *o;

        (void)state;
        barns.capacity = 0;
        o = stook_slot_alloc_miss(&front);
        assert_non_null(o);
        assert_int_equal(stook_slot_alloc_bulk(&front, 1, &o), 0);
        assert_int_equal(stook_slot_free_bulk(&front, 1, &o), 0);
        stook_slot_free_miss(&front, o, on_double);
        assert_int_equal(fake_slab_out(), 0);
        assert_int_equal(stook_counted(&counters, STOOK_STAT_alloc_slowpath), 1);
        assert_int_equal(stook_counted(&counters, STOOK_STAT_free_slowpath), 1);
}

/* ---- regions ---- */

static void test_lines_of_new_caches(void **state)
{
        static const unsigned indices[] = { 1, 63, 64, 200, STOOK_CACHES_MAX - 1 };

        (void)state;
        for (unsigned i = 0; i < sizeof(indices) / sizeof(indices[0]); i++) {
                unsigned seen = 0;

                assert_true(stook_slots_add_cache(indices[i]));
                for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                        struct stook_line *line = stook_slots_line(slot, indices[i]);

                        if (!line)
                                continue;
                        seen++;
                        assert_ptr_equal((void *)line->pair.lo, ZERO);
                        assert_int_equal(line->pair.hi, 0);
                }
                assert_int_equal(seen, stook_slots_ready());
                assert_true(seen > 0);
        }
        check_nothing_lost();
}

/*
 * A holder that never returns costs what its slot has. Evacuations of other slots go on. There are
 * more evacuations than would fit into this test's time if each waited for the holder. An
 * evacuation waits for two such slots no longer than for one.
 */
static void test_a_holder_that_never_returns_costs_its_slot_only(void **state)
{
        struct stook_slot_head *slot = stook_regions_locked(
                1); /* 0 is the thread's own where sections are unprotected */
        struct stook_line *line = (struct stook_line *)slot + INDEX;
        uint64_t *busy = &slot->holder;
        uint64_t *second = &stook_regions_locked(2)->holder;
        uint32_t slept = stook_inject.evacuate_sleeps;
        struct stook_sheaf *sheaf;
        struct stook_pair pair;
        void *object;

        (void)state;
        assert_non_null(slot);
        assert_true(stook_evacuate_cache(&front));
        sheaf = stook_sheaf_new(INDEX, front.below->capacity, 0, front.below->counters);
        assert_non_null(sheaf);
        assert_int_equal(stook_slab_fill(&slabs, 0, 2, sheaf->objects, 0), 2);
        stook_sheaf_set_size(sheaf, 2);
        stook_count(front.below->counters, STOOK_STAT_sheaf_refill, 2);
        pair = stook_pair_read(&line->pair);
        assert_true(
                stook_pair_cas(&line->pair, &pair, (struct stook_pair){ .lo = (uintptr_t)sheaf }));
        __atomic_store_n(busy, 64, __ATOMIC_RELAXED);
        __atomic_store_n(second, 128, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < 1000; i++) {
                assert_int_equal(stook_slab_fill(&slabs, 0, 1, &object, 0), 1);
                stook_slot_free_miss(&front, object, on_double);
                assert_false(stook_evacuate_cache(&front));
                assert_int_equal(fake_slab_out(), 2);
        }
        assert_ptr_equal((void *)line->pair.lo, sheaf);
        assert_in_range(stook_inject.evacuate_sleeps - slept, 1, 1000);
        __atomic_store_n(busy, 0, __ATOMIC_RELEASE);
        __atomic_store_n(second, 0, __ATOMIC_RELEASE);
        assert_true(stook_evacuate_cache(&front));
        check_nothing_lost();
}

static bool unprotected;

static int start_slots(void **state)
{
        static char area[32] __attribute__((aligned(32)));

        (void)state;
        if (!stook_meta_start() || !stook_slots_start())
                return -1;
        if (unprotected) {
                if (!stook_regions_locked(0))
                        return -1;
                stook_sections.index = (uintptr_t)area + STOOK_RSEQ_MM_CID - (uintptr_t)stook_self;
                stook_sections.area = (intptr_t)area - (intptr_t)stook_self;
                stook_self->rseq = area;
                stook_self->ready = 1;
        }
        return stook_slots_add_cache(INDEX) ? 0 : -1;
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_the_zero_sheaf_is_empty_and_full, start),
                cmocka_unit_test_setup(test_push_and_pop_at_every_size, start),
                cmocka_unit_test_setup(test_batches_at_every_size, start),
                cmocka_unit_test_setup(test_pop_if_takes_only_what_was_seen, start),
                cmocka_unit_test_setup(test_exchange_proves_pair_size_and_configuration, start),
                cmocka_unit_test_setup(test_the_inlined_path, start),
                cmocka_unit_test_setup(test_a_first_allocation_refills, start),
                cmocka_unit_test_setup(test_a_spare_is_swapped_in_before_anything_else, start),
                cmocka_unit_test_setup(test_long_runs_move_whole_sheaves, start),
                cmocka_unit_test_setup(test_refusals_go_down_and_lose_nothing, start),
                cmocka_unit_test_setup(test_no_memory_is_null_and_loses_nothing, start),
                cmocka_unit_test_setup(test_a_double_free_is_told, start),
                cmocka_unit_test_setup(test_an_odd_configuration_installs_nothing, start),
                cmocka_unit_test_setup(test_bulk_takes_what_slot_and_barn_have, start),
                cmocka_unit_test_setup(test_a_cache_without_sheaves_goes_to_the_slabs, start),
                cmocka_unit_test_setup(test_lines_of_new_caches, start),
                cmocka_unit_test_setup(test_a_holder_that_never_returns_costs_its_slot_only, start),
        };

        unprotected = argc > 1 && !strcmp(argv[1], "unprotected");
        return cmocka_run_group_tests(tests, start_slots, NULL);
}
