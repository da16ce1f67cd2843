/*
 * What this proves: barn I1-I3 and sheaf I1-I2 on fakes of the slab and metadata layers: trades conserve
 * sheaves and objects, limits hold, a refill that fails loses nothing (the kernel's leak of 464b1c115852),
 * counts survive a change of the sheaf's cache, the budget is lent to who trades; no sheaf begins where a slot's line
 * might, modulo 4096.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "barn/barn.h"
#include "os/os.h"
#include "pages/meta.h"
#include "report/report.h"

/* ---- fakes ---- */

#define OBJECTS 4096
static char   out[OBJECTS + 1];         /* [n]: object n is out of its slab; objects are the numbers 1.. */
static size_t can_fill;                 /* objects the next fills still give */

size_t stook_slab_fill(struct stook_slabs *slabs, unsigned node, size_t n, void **objects, unsigned flags)
{
        size_t got = 0;

        (void)slabs, (void)node;
        assert_true(flags & STOOK_FILL_FOR_SHEAF);
        for (uintptr_t o = 1; o <= OBJECTS && got < n && can_fill; o++)
                if (!out[o]) {
                        out[o] = 1;
                        objects[got++] = (void *)o;
                        can_fill--;
                }
        return got;
}

static unsigned steps;                  /* of the page layer's ageing, one for each refill and flush */

void stook_pages_step(void)
{
        steps++;
}

static size_t pages_taken = (size_t)1 << 30;    /* with users */

size_t stook_pages_taken(unsigned node)
{
        (void)node;
        return pages_taken;
}

static unsigned kept_given;             /* calls to give back slabs that are kept empty */

void stook_slabs_give_kept(struct stook_slabs *slabs, unsigned node)
{
        (void)slabs, (void)node;
        kept_given++;
}

void stook_slab_drain(struct stook_slabs *slabs, size_t n, void **objects)
{
        (void)slabs;
        for (size_t i = 0; i < n; i++) {
                uintptr_t o = (uintptr_t)objects[i];

                assert_in_range(o, 1, OBJECTS);
                assert_true(out[o]);
                out[o] = 0;
        }
}

void *stook_meta_bump(size_t bytes, size_t align)
{
        void *p = aligned_alloc(align > 64 ? align : 64, (bytes + 63) & ~(size_t)63);

        memset(p, 0, (bytes + 63) & ~(size_t)63);
        return p;
}

void (*stook_stats_page_hook)(void);
size_t stook_os_page_bytes(void) { return 4096; }
unsigned stook_os_node_count(void) { return 1; }
unsigned stook_os_node_home(unsigned node) { return node; }
bool stook_os_node_has_memory(unsigned node) { return node == 0; }
void stook_os_futex_wait(uint32_t *word, uint32_t value, uint64_t ns) { (void)word, (void)value, (void)ns; }
void stook_report_impossible(const char *label) { fail_msg("%s", label); abort(); }

/* ---- one cache's barns ---- */

struct fake_cache {
        struct stook_slabs slabs;
        struct stook_counters counters;
        struct stook_barns barns;
};

/* Never freed: barns are listed for ever, as the caches they are part of. */
static struct fake_cache *make(unsigned index, unsigned capacity, unsigned full, unsigned empty)
{
        struct fake_cache *c = stook_meta_bump(sizeof(*c), 64);

        c->slabs.cache_index = index;
        c->slabs.slot_size = 64;
        assert_int_equal(stook_barns_init(&c->barns, &c->slabs, &c->counters, capacity, full, empty), 0);
        return c;
}

static size_t objects_out(void)
{
        size_t n = 0;

        for (size_t o = 1; o <= OBJECTS; o++)
                n += out[o] != 0;
        return n;
}

static int setup(void **state)
{
        (void)state;
        memset(out, 0, sizeof(out));
        can_fill = OBJECTS;
        stook_barn_set_budget(STOOK_BARN_NODE_BYTES);
        stook_sheaf_fail_every = 0;
        return 0;
}

static void expect_nothing_left(struct fake_cache *c)
{
        struct stook_sheaf_sums sums;

        stook_barn_empty_all(&c->barns);
        stook_sheaf_sum(c->slabs.cache_index, &sums);
        assert_int_equal(sums.sheaves, 0);
        assert_int_equal(objects_out(), 0);
        assert_int_equal(stook_barn_booked_bytes(0), 0);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_sheaf_alloc),
                         stook_counted(&c->counters, STOOK_STAT_sheaf_free));
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_sheaf_refill),
                         stook_counted(&c->counters, STOOK_STAT_sheaf_flush));
}

/* ---- tests ---- */

static void capacities_fill_their_memory(void **state)
{
        static const unsigned wanted[][2] = {
                { 0, 4 }, { 4, 4 }, { 5, 12 }, { 12, 12 }, { 13, 28 }, { 26, 28 }, { 32, 60 }, { 60, 60 },
                { 61, 124 }, { 65533, 65534 }, { 65534, 65534 },
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

static void trades_conserve_sheaves(void **state)
{
        struct fake_cache *c = make(1, 12, 10, 10);
        struct stook_sheaf *a, *b, *got;

        (void)state;
        a = stook_sheaf_new(1, 12, 0, &c->counters);
        assert_null(stook_barn_trade_empty(&c->barns, 0, a));
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_barn_get_fail), 1);
        steps = 0;
        assert_ptr_equal(stook_barn_refill(&c->barns, 0, a, 0), a);
        assert_int_equal(steps, 1);
        assert_true(stook_sheaf_full(a));
        /* No empty one there to take in return: refused, a is still ours. */
        assert_null(stook_barn_trade_full(&c->barns, 0, a));
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_barn_put), 0);
        b = stook_sheaf_new(1, 12, 0, &c->counters);
        assert_true(stook_barn_put_empty(&c->barns, 0, b));
        assert_ptr_equal(stook_barn_trade_full(&c->barns, 0, a), b);
        assert_int_equal(stook_barn_booked_bytes(0), 12 * 64);
        got = stook_barn_trade_empty(&c->barns, 0, b);
        assert_ptr_equal(got, a);
        assert_int_equal(stook_sheaf_size(got), 12);
        assert_ptr_equal(stook_barn_get_empty(&c->barns, 0), b);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_barn_put), 1);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_barn_get), 1);
        stook_barn_dispose(&c->barns, 0, a);
        stook_barn_dispose(&c->barns, 0, b);
        expect_nothing_left(c);
}

static void barns_are_last_in_first_out(void **state)
{
        struct fake_cache *c = make(1, 4, 10, 10);
        struct stook_sheaf *s[3];

        (void)state;
        for (int i = 0; i < 3; i++) {
                s[i] = stook_barn_refill(&c->barns, 0, NULL, 0);
                assert_true(stook_barn_put_full(&c->barns, 0, s[i]));
        }
        for (int i = 2; i >= 0; i--) {
                assert_ptr_equal(stook_barn_trade_empty(&c->barns, 0, NULL), s[i]);
                stook_barn_flush(&c->barns, s[i]);
                stook_sheaf_delete(s[i], &c->counters);
        }
        expect_nothing_left(c);
}

static void limits_hold(void **state)
{
        struct fake_cache *c = make(1, 4, 3, 2);
        struct stook_sheaf *s;

        (void)state;
        for (int i = 0; i < 5; i++) {
                s = stook_barn_refill(&c->barns, 0, NULL, 0);
                assert_int_equal(stook_barn_put_full(&c->barns, 0, s), i < 3);
                if (i >= 3) {
                        stook_barn_flush(&c->barns, s);
                        assert_int_equal(stook_sheaf_size(s), 0);
                        stook_sheaf_delete(s, &c->counters);
                }
        }
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_barn_put_fail), 2);
        for (int i = 0; i < 4; i++) {
                s = stook_sheaf_new(1, 4, 0, &c->counters);
                assert_int_equal(stook_barn_put_empty(&c->barns, 0, s), i < 2);
                if (i >= 2)
                        stook_sheaf_delete(s, &c->counters);
        }
        /* A trade that would leave a third empty one keeps two. */
        s = stook_barn_trade_empty(&c->barns, 0, stook_sheaf_new(1, 4, 0, &c->counters));
        assert_non_null(s);
        assert_int_equal(stook_tagged_stack_count_racy(&c->barns.node[0].empty), 2);
        stook_barn_dispose(&c->barns, 0, s);
        expect_nothing_left(c);
}

static void a_barn_keeps_no_more_bytes_than_it_may(void **state)
{
        struct fake_cache *c = make(1, 1020, 10, 10);       /* 64 KiB a sheaf */

        (void)state;
        assert_int_equal(c->barns.full_limit, STOOK_BARN_CACHE_BYTES / (1020 * 64));
}

static void a_failed_refill_loses_nothing(void **state)
{
        struct fake_cache *c = make(1, 12, 10, 10);
        struct stook_sheaf *s;

        (void)state;
        for (size_t there = 0; there < 12; there++) {
                can_fill = there;
                assert_null(stook_barn_refill(&c->barns, 0, NULL, 0));
                assert_int_equal(objects_out(), 0);
                s = stook_sheaf_new(1, 12, 0, &c->counters);
                can_fill = there;
                assert_null(stook_barn_refill(&c->barns, 0, s, 0));
                assert_int_equal(stook_sheaf_size(s), 0);
                assert_int_equal(objects_out(), 0);
                stook_sheaf_delete(s, &c->counters);
        }
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_sheaf_refill), 0);
        stook_sheaf_fail_every = 1;
        can_fill = OBJECTS;
        assert_null(stook_barn_refill(&c->barns, 0, NULL, 0));
        expect_nothing_left(c);
}

static void a_partial_sheaf_is_flushed(void **state)
{
        struct fake_cache *c = make(1, 12, 10, 10);
        struct stook_sheaf *s = stook_barn_refill(&c->barns, 0, NULL, 0);

        (void)state;
        s->word += 5 * (uint64_t)STOOK_SHEAF_POP;       /* five pops */
        stook_barn_dispose(&c->barns, 0, s);
        assert_int_equal(objects_out(), 5);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_sheaf_flush), 7);
        assert_ptr_equal(stook_barn_get_empty(&c->barns, 0), s);
        memset(out, 0, sizeof(out));
        stook_sheaf_delete(s, &c->counters);
}

static void counts_go_with_the_memory(void **state)
{
        struct fake_cache *c = make(1, 12, 10, 10), *d = make(2, 12, 10, 10);
        struct stook_sheaf *s = stook_barn_refill(&c->barns, 0, NULL, 0), *t;
        struct stook_sheaf_sums sums, all[3];

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
        assert_ptr_equal(t, s);                         /* the memory serves another cache, from nought */
        stook_sheaf_sum_all(all, 3);
        assert_int_equal(all[1].sheaves, 0);
        assert_int_equal(all[2].sheaves, 1);
        assert_int_equal(all[2].pops + all[2].pushes, 0);
        stook_sheaf_delete(t, &d->counters);
        memset(out, 0, sizeof(out));
}

/* A cache that only sits on its sheaves loses them, one for a flush, to one that trades. */
static void the_budget_goes_to_who_trades(void **state)
{
        struct fake_cache *sitter = make(1, 12, 10, 10), *trader = make(2, 12, 10, 10);
        unsigned put = 0;

        (void)state;
        stook_barn_set_budget(4 * 12 * 64);
        for (int i = 0; i < 4; i++)
                assert_true(stook_barn_put_full(&sitter->barns, 0, stook_barn_refill(&sitter->barns, 0, NULL, 0)));
        for (int i = 0; i < 40 && put < 4; i++) {
                struct stook_sheaf *s = stook_barn_refill(&trader->barns, 0, NULL, 0);

                if (stook_barn_put_full(&trader->barns, 0, s)) {
                        put++;
                        continue;
                }
                stook_barn_flush(&trader->barns, s);
                stook_sheaf_delete(s, &trader->counters);
        }
        assert_int_equal(put, 4);
        assert_int_equal(stook_tagged_stack_count_racy(&sitter->barns.node[0].full), 0);
        assert_true(stook_barn_booked_bytes(0) <= 4 * 12 * 64);
        stook_barn_empty_all(&trader->barns);
        expect_nothing_left(sitter);
}

/* Whatever the limit: an eighth of the pages in use, or 1 MiB. */
static void a_small_process_keeps_little(void **state)
{
        const uint64_t mib = 1 << 20, limit = STOOK_BARN_NODE_BYTES;
        uint64_t before = stook_barn_booked_bytes(0);

        (void)state;
        pages_taken = 0;
        assert_true(stook_barn_book(0, mib - before));
        assert_false(stook_barn_book(0, 1));
        pages_taken = 16 * mib;
        assert_true(stook_barn_book(0, mib));
        assert_false(stook_barn_book(0, 1));
        pages_taken = 1024 * mib;
        assert_true(stook_barn_book(0, limit - 2 * mib));
        assert_false(stook_barn_book(0, 1));
        stook_barn_unbook(0, limit - before);
}

static void a_closed_barn_lends_nothing(void **state)
{
        struct fake_cache *sitter = make(1, 12, 10, 10), *trader = make(2, 12, 10, 10);

        (void)state;
        stook_barn_set_budget(12 * 64);
        assert_true(stook_barn_put_full(&sitter->barns, 0, stook_barn_refill(&sitter->barns, 0, NULL, 0)));
        assert_true(stook_barns_close(&sitter->barns));
        for (int i = 0; i < 10; i++) {
                struct stook_sheaf *s = stook_barn_refill(&trader->barns, 0, NULL, 0);

                assert_false(stook_barn_put_full(&trader->barns, 0, s));
                stook_barn_flush(&trader->barns, s);
                stook_sheaf_delete(s, &trader->counters);
        }
        assert_int_equal(stook_tagged_stack_count_racy(&sitter->barns.node[0].full), 1);
        stook_barns_open(&sitter->barns);
        /* A visitor that does not leave is not waited for for ever. */
        __atomic_add_fetch(&sitter->barns.visits, 1, __ATOMIC_RELAXED);
        assert_false(stook_barns_close(&sitter->barns));
        stook_barns_fork_child(&sitter->barns);
        assert_true(stook_barns_close(&sitter->barns));
        stook_barns_open(&sitter->barns);
        expect_nothing_left(sitter);
}

/* Sheaves that carry their number, traded by several threads: each stays in one place. */
#define TRADERS 3
#define ROUNDS 200000
static struct fake_cache *shared;
static uint32_t holder[64];             /* atomic: who has the sheaf of this number; 0: the barn */

static void *trade(void *arg)
{
        uint32_t me = (uint32_t)(uintptr_t)arg;

        for (int i = 0; i < ROUNDS; i++) {
                struct stook_sheaf *s = i & 1 ? stook_barn_get_full(&shared->barns, 0)
                                              : stook_barn_get_empty(&shared->barns, 0);

                if (!s)
                        continue;
                if (__atomic_exchange_n(&holder[stook_sheaf_node(s)], me, __ATOMIC_RELAXED))
                        return "a sheaf was handed out twice";
                __atomic_store_n(&holder[stook_sheaf_node(s)], 0, __ATOMIC_RELAXED);
                if (stook_sheaf_full(s) ? !stook_barn_put_full(&shared->barns, 0, s)
                                        : !stook_barn_put_empty(&shared->barns, 0, s))
                        return "a sheaf was refused";
        }
        return NULL;
}

static void threads_trade(void **state)
{
        pthread_t t[TRADERS];
        unsigned sheaves = 0;
        void *error;

        (void)state;
        shared = make(3, 4, 60, 60);
        for (unsigned i = 0; i < 20; i++) {
                struct stook_sheaf *s = stook_sheaf_new(3, 4, i, &shared->counters);

                if (i & 1) {
                        stook_sheaf_set_size(s, 4);
                        assert_true(stook_barn_put_full(&shared->barns, 0, s));
                } else {
                        assert_true(stook_barn_put_empty(&shared->barns, 0, s));
                }
        }
        for (uintptr_t i = 0; i < TRADERS; i++)
                assert_int_equal(pthread_create(&t[i], NULL, trade, (void *)(i + 1)), 0);
        for (int i = 0; i < TRADERS; i++) {
                pthread_join(t[i], &error);
                assert_null(error);
        }
        while (stook_barn_get_full(&shared->barns, 0) || stook_barn_get_empty(&shared->barns, 0))
                sheaves++;
        assert_int_equal(sheaves, 20);
        assert_int_equal(stook_barn_booked_bytes(0), 0);
}

/* Full sheaves that nobody needed since the last look go to the slabs, a bounded number in a step; too young a barn keeps all. */
static void what_nobody_needed_is_flushed(void **state)
{
        struct fake_cache *c = make(1, 4, 10, 10);
        struct stook_idle idle = { .now_ms = 1000, .after_ms = 100, .growths = 1, .work = 16 };
        struct stook_sheaf *full;

        (void)state;
        stook_barn_rest(&c->barns, 0, &idle);           /* the first look */
        for (int i = 0; i < 5; i++)
                assert_true(stook_barn_put_full(&c->barns, 0, stook_barn_refill(&c->barns, 0, NULL, 0)));
        idle.now_ms += 99;
        stook_barn_rest(&c->barns, 0, &idle);           /* too young */
        assert_int_equal(objects_out(), 20);
        idle.now_ms++;
        stook_barn_rest(&c->barns, 0, &idle);           /* they came since */
        assert_int_equal(objects_out(), 20);

        /* Two are taken and come back: the other three were not needed. */
        full = stook_barn_trade_empty(&c->barns, 0, NULL);
        assert_true(stook_barn_put_full(&c->barns, 0, stook_barn_trade_empty(&c->barns, 0, NULL)));
        assert_true(stook_barn_put_full(&c->barns, 0, full));
        kept_given = 0;
        idle.growths++;                                 /* memory is missed: time does not matter */
        idle.work = 2;
        stook_barn_rest(&c->barns, 0, &idle);           /* as much as one step may */
        assert_int_equal(objects_out(), 12);
        assert_int_equal(idle.work, 0);
        idle.work = 16;
        stook_barn_rest(&c->barns, 0, &idle);           /* and the next goes on */
        assert_int_equal(objects_out(), 8);
        assert_int_equal(kept_given, 0);                /* the cache is in use */

        /* Objects come, none is taken. */
        assert_true(stook_barn_put_full(&c->barns, 0, stook_barn_refill(&c->barns, 0, NULL, 0)));
        idle.growths++;
        stook_barn_rest(&c->barns, 0, &idle);
        assert_int_equal(objects_out(), 4);
        assert_int_equal(kept_given, 1);
        idle.growths++;
        stook_barn_rest(&c->barns, 0, &idle);
        assert_int_equal(objects_out(), 0);
        assert_int_equal(kept_given, 2);
        idle.growths++;
        stook_barn_rest(&c->barns, 0, &idle);           /* nothing left to do */
        assert_int_equal(kept_given, 2);
        expect_nothing_left(c);
}

/* What came out of an idle slot is empty afterwards, and its objects are in their slabs. */
static void a_slot_s_idle_sheaf_is_flushed(void **state)
{
        struct fake_cache *c = make(1, 4, 10, 1);
        struct stook_sheaf *full = stook_barn_refill(&c->barns, 0, NULL, 0), *second;

        (void)state;
        stook_barn_retire(&c->barns, 0, full);
        assert_int_equal(objects_out(), 0);
        second = stook_barn_refill(&c->barns, 0, NULL, 0);
        stook_barn_retire(&c->barns, 0, second);        /* one empty sheaf is kept: this one is deleted */
        assert_ptr_equal(stook_barn_get_empty(&c->barns, 0), full);
        assert_null(stook_barn_get_empty(&c->barns, 0));
        stook_sheaf_delete(full, c->barns.counters);
        expect_nothing_left(c);
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
                cmocka_unit_test_setup(trades_conserve_sheaves, setup),
                cmocka_unit_test_setup(barns_are_last_in_first_out, setup),
                cmocka_unit_test_setup(limits_hold, setup),
                cmocka_unit_test_setup(what_nobody_needed_is_flushed, setup),
                cmocka_unit_test_setup(a_slot_s_idle_sheaf_is_flushed, setup),
                cmocka_unit_test_setup(a_barn_keeps_no_more_bytes_than_it_may, setup),
                cmocka_unit_test_setup(a_failed_refill_loses_nothing, setup),
                cmocka_unit_test_setup(a_partial_sheaf_is_flushed, setup),
                cmocka_unit_test_setup(counts_go_with_the_memory, setup),
                cmocka_unit_test_setup(a_small_process_keeps_little, setup),
                cmocka_unit_test_setup(the_budget_goes_to_who_trades, setup),
                cmocka_unit_test_setup(a_closed_barn_lends_nothing, setup),
                cmocka_unit_test_setup(words_lie_between_the_starts_of_lines, setup),
                cmocka_unit_test_setup(threads_trade, setup),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
