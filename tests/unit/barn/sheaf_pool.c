/*
 * What this proves: sheaf I2 and I3. Counts survive a change of the sheaf's cache. A sheaf serves
 * its node again; what waits for readers is summed apart. Capacities fill their memory. No sheaf's
 * word is at an address where a slot's line might be, modulo 4096.
 */
#include "unit/barn/fixture.h"

static void capacities_fill_their_memory(void **state)
{
        static const unsigned wanted[][2] = {
                { 0, 4 }, { 4, 4 }, { 5, 8 }, { 8, 8 }, { 12, 16 }, { 26, 32 }, { 32, 32 },
                { 33, 64 }, { 64, 64 }, { 65, 128 }, { 65533, 65534 }, { 65534, 65534 },
        };

        (void)state;
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(wanted); i++)
                assert_int_equal(stook_sheaf_round_capacity(wanted[i][0]), wanted[i][1]);
}

static void the_zero_sheaf_is_empty_and_full(void **state)
{
        (void)state;
        assert_int_equal(stook_sheaf_size(&stook_sheaf_zero), 0);
        assert_true(stook_sheaf_full(&stook_sheaf_zero));
}

static void of_cache(struct stook_sheaf *sheaf, unsigned index, void *all)
{
        assert_true(index < 3);
        stook_sheaf_sum_in(sheaf, (struct stook_sheaf_sums *)all + index);
}

static void counts_go_with_the_memory(void **state)
{
        struct fake_cache *c = make(1, 12, 10, 10), *d = make(2, 12, 10, 10);
        struct stook_sheaf *s = stook_barn_refill(&c->barns, 0, NULL, UINT_MAX), *t;
        struct stook_sheaf_sums sums, all[3] = { 0 };

        (void)state;
        s->word += 7 * (uint64_t)STOOK_SHEAF_POP;
        s->word += 3;                                   /* three pushes */
        stook_sheaf_sum(1, &sums);
        assert_int_equal(sums.pops, 7);
        assert_int_equal(sums.pushes, 3);
        assert_int_equal(sums.objects, 8);
        assert_int_equal(sums.sheaves, 1);
        stook_barn_flush(&c->barns, s);
        stook_sheaf_sum(1, &sums);
        assert_int_equal(sums.pops, 7);
        assert_int_equal(sums.pushes, 3);
        assert_int_equal(sums.objects, 0);
        stook_sheaf_delete(s, &c->counters);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_alloc_fastpath), 7);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_free_fastpath), 3);
        t = stook_sheaf_new(2, 12, 0, &d->counters);
        assert_ptr_equal(t, s);                         /* another cache, counts from 0 */
        stook_sheaf_walk(of_cache, all);
        assert_int_equal(all[1].sheaves, 0);
        assert_int_equal(all[2].sheaves, 1);
        assert_int_equal(all[2].pops + all[2].pushes, 0);
        stook_sheaf_delete(t, &d->counters);
        memset(out, 0, sizeof(out));
}

/* A sheaf of a node has memory that this node touched first. */
static void sheaves_serve_again_on_their_node(void **state)
{
        struct fake_cache *c = make(1, 12, 10, 10);
        struct stook_sheaf *of[3];

        (void)state;
        nodes = 3;
        for (unsigned node = 0; node < 3; node++) {
                of[node] = stook_sheaf_new(1, 12, node, &c->counters);
                assert_non_null(of[node]);
                assert_int_equal(stook_sheaf_node(of[node]), node);
        }
        for (unsigned node = 0; node < 3; node++)
                stook_sheaf_delete(of[node], &c->counters);
        for (unsigned node = 0; node < 3; node++) {
                struct stook_sheaf *again = stook_sheaf_new(1, 12, node, &c->counters);

                assert_ptr_equal(again, of[node]);
                stook_sheaf_delete(again, &c->counters);
        }
        nodes = 1;
}

/* What waits for readers was not pushed, nor is it allocated from. */
static void what_waits_is_summed_apart(void **state)
{
        struct fake_cache *c = make(1, 12, 10, 10);
        struct stook_sheaf *s = stook_barn_refill(&c->barns, 0, NULL, UINT_MAX);
        struct stook_sheaf_sums sums;
        unsigned size;

        (void)state;
        s->word += 5 * (uint64_t)STOOK_SHEAF_POP;
        size = stook_sheaf_size(s);
        stook_sheaf_begin_rcu(s, &c->counters);
        s->word += size;
        stook_sheaf_sum(1, &sums);
        assert_int_equal(sums.rcu, size);
        assert_int_equal(sums.pops, 0);
        assert_int_equal(sums.pushes, 0);
        assert_int_equal(sums.objects, size);
        stook_sheaf_end_rcu(s, &c->counters);
        stook_sheaf_sum(1, &sums);
        assert_int_equal(sums.rcu, 0);
        assert_int_equal(sums.objects, size);
        stook_barn_flush(&c->barns, s);
        stook_sheaf_delete(s, &c->counters);
        memset(out, 0, sizeof(out));
}

static void words_lie_between_the_starts_of_lines(void **state)
{
        struct fake_cache *c = make(4, 124, 2, 2);
        struct stook_sheaf *held[200];
        unsigned n = 0;

        (void)state;
        for (unsigned capacity = 4; capacity <= 252; capacity = 2 * capacity + 4)
                for (unsigned i = 0; i < 30; i++) {
                        held[n] = stook_sheaf_new(4, capacity, 0, &c->counters);
                        assert_non_null(held[n]);
                        assert_int_not_equal((uintptr_t)held[n] % STOOK_CACHELINE, 0);
                        n++;
                }
        assert_int_equal(n, 6 * 30);
        while (n)
                stook_sheaf_delete(held[--n], &c->counters);
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test_setup(capacities_fill_their_memory, setup),
                cmocka_unit_test_setup(the_zero_sheaf_is_empty_and_full, setup),
                cmocka_unit_test_setup(counts_go_with_the_memory, setup),
                cmocka_unit_test_setup(sheaves_serve_again_on_their_node, setup),
                cmocka_unit_test_setup(what_waits_is_summed_apart, setup),
                cmocka_unit_test_setup(words_lie_between_the_starts_of_lines, setup),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
