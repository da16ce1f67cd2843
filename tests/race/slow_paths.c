/*
 * Purpose: see slow_paths.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "barn/barn_inside.h"
#include "base/inject.h"
#include "base/lock.h"
#include "cache/cache.h"
#include "gate/gate.h"
#include "inspect/validate.h"
#include "evacuate/evacuate.h"
#include "pages/pages_node.h"
#include "race/breakpoint.h"
#include "race/slow_paths.h"
#include "slot/slot.h"

#define SIZE      4096
#define CAPACITY  4
#define SLAB      16                    /* objects of a slab */

struct hands sheaved = { .name = "sheaved", .words = SIZE / 8 },
             bare = { .name = "bare", .words = SIZE / 8 };
struct hands parted = { .name = "parted", .words = 2 }, fours = { .name = "fours", .words = 2048 };
struct hands *const hands_all[HANDS] = { &sheaved, &bare, &parted, &fours };
unsigned slow_path_faults;
const char *slow_path_where = "";
unsigned slow_path_at;

static size_t malloc_live;              /* objects of malloc held by a prepared call */

void slow_path_fault(const char *what)
{
        if (slow_path_faults++ < 20)
                printf("fault: %s: %s, instruction %u\n", what, slow_path_where, slow_path_at);
}

/* ---- objects in our hands ---- */

bool keep(struct hands *h, uint64_t *o)
{
        if (!o)
                return false;
        for (unsigned i = 0; i < h->count; i++)
                if (h->held[i] == o)
                        slow_path_fault("an object was handed out twice");
        o[0] = (uintptr_t)o;
        o[h->words - 1] = ~(uintptr_t)o;
        if (h->count == HELD_MAX) {
                slow_path_fault("the table is too small");
                return true;
        }
        h->held[h->count++] = o;
        return true;
}

uint64_t *let_go(struct hands *h)
{
        uint64_t *o;

        if (!h->count)
                return NULL;
        o = h->held[--h->count];
        if (o[0] != (uintptr_t)o || o[h->words - 1] != ~(uintptr_t)o)
                slow_path_fault("a stamp was overwritten");
        o[0] = 0;
        return o;
}

bool take_one(struct hands *h) { return keep(h, IN_LIBRARY(stook_cache_alloc(h->cache))); }
bool take_one_nolock(struct hands *h)
{
        return keep(h, IN_LIBRARY(stook_cache_alloc_nolock(h->cache)));
}

bool give_one(struct hands *h)
{
        uint64_t *o = let_go(h);

        (void)IN_LIBRARY((stook_cache_free(h->cache, o), 0));
        return o;
}

bool give_one_nolock(struct hands *h)
{
        uint64_t *o = let_go(h);

        (void)IN_LIBRARY((stook_cache_free_nolock(h->cache, o), 0));
        return o;
}

void take(struct hands *h, unsigned n)
{
        while (n--)
                if (!take_one(h))
                        slow_path_fault("no memory");
}

void give(struct hands *h, unsigned n)
{
        while (n--)
                give_one(h);
}

void use_malloc(void)
{
        static const size_t sizes[] = { 48, 5000, 5000, 5000, 5000, 5000, 100000, 300000 };
        char *o[8];

        for (unsigned i = 0; i < 8; i++) {
                o[i] = i & 1 ? stook_malloc_nolock(sizes[i]) : stook_malloc(sizes[i]);
                if (o[i]) {
                        memset(o[i], (int)i + 1, 16);
                        o[i][sizes[i] - 1] = (char)(i + 1);
                }
        }
        for (unsigned i = 0; i < 8; i++) {
                if (o[i] && (o[i][0] != (char)(i + 1) || o[i][15] != (char)(i + 1) ||
                             o[i][sizes[i] - 1] != (char)(i + 1)))
                        slow_path_fault("an object of malloc was overwritten");
                if (i & 2)
                        stook_free_nolock(o[i]);
                else
                        stook_free(o[i]);
        }
}

/* ---- checks ---- */

void check_hands(struct hands *h)
{
        for (unsigned i = 0; i < h->count; i++) {
                const uint64_t *o = h->held[i];

                if (o[0] != (uintptr_t)o || o[h->words - 1] != ~(uintptr_t)o)
                        slow_path_fault("a stamp was overwritten");
                for (unsigned j = 0; j < i; j++)
                        if (h->held[j] == o)
                                slow_path_fault("an object is held twice");
        }
}

static size_t live(const struct stook_cache *cache)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        return stook_cache_get_stats(cache, &s) ? ~(size_t)0 : (size_t)s.objects_live;
}

static size_t mallocs(void)
{
        return live(stook_cache_find("malloc-48")) + live(stook_cache_find("malloc-5120"));
}

size_t objects_lost(void)
{
        size_t lost = mallocs() - malloc_live;

        for (unsigned i = 0; i < HANDS; i++)
                lost += live(hands_all[i]->cache) - hands_all[i]->count;
        return lost;
}

static void pages_fault(const char *what, const struct stook_span *span)
{
        (void)span;
        slow_path_fault(what);
}

void check_heap(void)
{
        bool agree = mallocs() == malloc_live;

        for (unsigned i = 0; i < HANDS; i++) {
                check_hands(hands_all[i]);
                if (stook_cache_validate(hands_all[i]->cache))
                        slow_path_fault("a cache is not valid");
                agree = agree && live(hands_all[i]->cache) == hands_all[i]->count;
        }
        if (stook_cache_validate(stook_cache_find("malloc-48")) ||
            stook_cache_validate(stook_cache_find("malloc-5120")))
                slow_path_fault("a cache is not valid");
        stook_pages_validate(pages_fault);
        if (!agree)
                slow_path_fault(objects_lost() <= ~(size_t)0 / 2 ? "an object is lost"
                                                                 : "more is free than there is");
        if (stook_self->locks_held)
                slow_path_fault("a lock is held");
}

/* ---- what is prepared ---- */

#define SPANS 65536
static struct stook_span *spans[SPANS];
static unsigned span_count;
static void *objects[SLAB * 2];         /* of a bulk call, or of malloc */
static void *big;
static struct stook_sheaf *lent;        /* a prefilled sheaf of the sheaved cache */

/*
 * Nothing free is left in the bins: the next span is fresh address space. What was there is not
 * counted as taken, or the layer would get more and more ahead of use.
 */
static void exhaust_pages(void)
{
        struct stook_pages_node *node = &stook_pages_nodes[0];

        for (unsigned set = STOOK_SET_DIRTY; set <= STOOK_SET_CLEAN; set++)
                for (struct stook_span *s;
                     (s = stook_bins_largest(&node->bins[set])) && span_count < SPANS;) {
                        size_t bytes = s->bytes < STOOK_SPAN_OWN_MAPPING ? s->bytes
                                                                         : STOOK_SPAN_OWN_MAPPING;

                        if (!(spans[span_count] = stook_span_take(0, bytes, 0)))
                                return;
                        __atomic_fetch_sub(&node->ledger.used, spans[span_count++]->bytes,
                                           __ATOMIC_RELAXED);
                }
}

void slow_paths_give_pages(void)
{
        while (span_count) {
                __atomic_fetch_add(&stook_pages_nodes[0].ledger.used, spans[--span_count]->bytes,
                                   __ATOMIC_RELAXED);
                stook_span_give(spans[span_count]);
        }
}

void slow_paths_hooks_off(void)
{
        stook_inject.lock_refuse_every = 0;
        stook_inject.sheaf_fail_every = 0;
        stook_inject.span_fail_from = 0;
        stook_pages_set_decay_ms(1000);
}

void slow_paths_clean(void)
{
        slow_paths_hooks_off();
        stook_sheaf_return(sheaved.cache, lent);
        lent = NULL;
        for (unsigned i = 0; i < HANDS; i++)
                give(hands_all[i], hands_all[i]->count);
        for (unsigned i = 0; i < SLAB * 2; i++) {
                stook_free(objects[i]);
                objects[i] = NULL;
        }
        stook_free(big);
        big = NULL;
        malloc_live = 0;
        for (unsigned i = 0; i < HANDS; i++)
                stook_cache_shrink(hands_all[i]->cache);
        stook_cache_shrink(stook_cache_find("malloc-5120"));
        stook_cache_shrink(stook_cache_find("malloc-48"));
}

static void nothing(void) { }

static void p_spare(void) { take(&sheaved, 8); give(&sheaved, 8); take(&sheaved, 4); }
static void p_barn(void) { take(&sheaved, 12); give(&sheaved, 12); take(&sheaved, 8); }

static void p_partial(void)
{
        take(&sheaved, SLAB + 10);
        give(&sheaved, 6);
        stook_evacuate_cache(&sheaved.cache->front);
        while (stook_barn_evict(&sheaved.cache->barns, 0))
                ;
}

static void p_partial_refused(void) { p_partial(); stook_inject.lock_refuse_every = 1; }
static void p_refused(void) { stook_inject.lock_refuse_every = 1; }
static void p_grow(void) { exhaust_pages(); }
static void p_grow_refused(void) { exhaust_pages(); stook_inject.lock_refuse_every = 1; }
static void p_no_sheaf(void) { stook_inject.sheaf_fail_every = 1; }
static void p_no_memory(void) { stook_inject.span_fail_from = 1; }

/* Slabs and spans wait on pending: their calls were refused the locks. */
static void p_pending(void)
{
        take(&bare, 3 * SLAB);
        stook_inject.lock_refuse_every = 1;
        give(&bare, 2 * SLAB + 3);
}

static void p_pending_free(void) { p_pending(); stook_inject.lock_refuse_every = 0; }

/* ---- free ---- */

static void p_free_first(void) { take(&sheaved, 8); stook_evacuate_cache(&sheaved.cache->front); }
static void p_free_full(void) { p_free_first(); give(&sheaved, CAPACITY); }
static void p_free_swap(void)
{
        take(&sheaved, 8);
        give(&sheaved, 8);
        take(&sheaved, 5);
        give(&sheaved, 1);
}
static void p_free_put(void) { take(&sheaved, 20); give(&sheaved, 8); }
static void p_free_flush(void) { take(&sheaved, 20); give(&sheaved, 12); }
static void p_free_flush_refused(void) { p_free_flush(); stook_inject.lock_refuse_every = 1; }
static void p_free_no_sheaf(void) { p_free_put(); stook_inject.sheaf_fail_every = 1; }
static void p_slab_full(void) { take(&bare, SLAB); }
static void p_slab_full_refused(void) { p_slab_full(); stook_inject.lock_refuse_every = 1; }

/* Four slabs are on the list, one object of each out: more empty ones than are kept. */
static void p_slab_surplus(void)
{
        uint64_t *kept[4];

        take(&bare, 4 * SLAB);
        for (unsigned i = 0; i < 4; i++)
                kept[i] = bare.held[i * SLAB];
        for (unsigned i = 4 * SLAB; i--;)
                if (i % SLAB) {
                        bare.held[i][0] = 0;
                        stook_cache_free(bare.cache, bare.held[i]);
                }
        memcpy(bare.held, kept, sizeof(kept));
        bare.count = 4;
}

static void p_slab_surplus_refused(void) { p_slab_surplus(); stook_inject.lock_refuse_every = 1; }

static void c_take(void) { take_one(&sheaved); }
static void c_give(void) { give_one(&sheaved); }
static void c_take_nolock(void) { take_one_nolock(&sheaved); }
static void c_give_nolock(void) { give_one_nolock(&sheaved); }
static void c_take_bare(void) { take_one(&bare); }
static void c_give_bare(void) { give_one(&bare); }
static void c_take_bare_nolock(void) { take_one_nolock(&bare); }
static void c_give_bare_nolock(void) { give_one_nolock(&bare); }

/* ---- bulk ---- */

static void c_take_bulk(void)
{
        void *got[SLAB + 5];

        if (IN_LIBRARY(stook_cache_alloc_bulk(sheaved.cache, 0, SLAB + 5, got))) {
                slow_path_fault("no memory");
                return;
        }
        for (unsigned i = 0; i < SLAB + 5; i++)
                keep(&sheaved, got[i]);
}

static void c_give_bulk(void)
{
        void *gone[SLAB + 5];
        unsigned n = 0;

        while (n < SLAB + 5 && (gone[n] = let_go(&sheaved)))
                n++;
        (void)IN_LIBRARY((stook_cache_free_bulk(n & 1 ? sheaved.cache : NULL, n, gone), 0));
}

static void p_bulk(void) { take(&sheaved, 3 * SLAB); }

/* ---- malloc ---- */

static void c_malloc(void)
{
        objects[0] = IN_LIBRARY(stook_malloc(5000));
        malloc_live = 1;
}

static void p_free_malloc(void)
{
        for (unsigned i = 0; i < 13; i++)
                objects[i] = stook_malloc(5000);
        for (unsigned i = 1; i < 13; i++) {
                stook_free(objects[i]);
                objects[i] = NULL;
        }
        malloc_live = 1;
}

static void c_free_malloc(void)
{
        void *o = objects[0];

        objects[0] = NULL;
        malloc_live = 0;
        (void)IN_LIBRARY((stook_free(o), 0));
}

static void c_large(void) { big = IN_LIBRARY(stook_malloc(300000)); }
static void c_larger(void) { big = IN_LIBRARY(stook_malloc((size_t)40 << 20)); }
static void c_calloc_large(void) { big = IN_LIBRARY(stook_calloc(1, 300000)); }
static void c_aligned(void) { big = IN_LIBRARY(stook_aligned_alloc(1 << 20, 300000)); }
static void p_large(void) { big = stook_malloc(300000); }
static void p_eight(void) { big = stook_malloc((size_t)8 << 20); }
static void p_larger(void) { big = stook_malloc((size_t)40 << 20); }

static void p_large_purged(void)
{
        p_large();
        use_malloc();
        stook_pages_set_decay_ms(0);
        __atomic_store_n(&stook_pages_nodes[0].next_step_ms, 0, __ATOMIC_RELAXED);
}


static void c_free_large(void)
{
        void *o = big;

        big = NULL;
        (void)IN_LIBRARY((stook_free(o), 0));
}

static void resize(size_t bytes)
{
        void *o = big;

        big = NULL;
        big = IN_LIBRARY(stook_realloc(o, bytes));
}

static void c_grow(void) { resize(700000); }
static void c_grow_much(void) { resize((size_t)45 << 20); }
static void c_shrink(void) { resize(150000); }

/* ---- prefilled sheaves ---- */

static void borrow(size_t n)
{
        lent = IN_LIBRARY(stook_sheaf_prefill(sheaved.cache, 0, n));
        if (lent && stook_sheaf_available(lent) < n)
                slow_path_fault("fewer objects than were promised");
}

static void c_take_lent(void)
{
        if (!keep(&sheaved, IN_LIBRARY(stook_sheaf_alloc(sheaved.cache, lent))))
                slow_path_fault("an allocation that cannot fail did");
}

static void c_borrow(void) { borrow(CAPACITY - 1); }
static void c_borrow_much(void) { borrow(CAPACITY * 5); }
static void p_borrow(void) { borrow(CAPACITY); }
static void p_borrow_much(void) { borrow(CAPACITY * 5); }
static void p_borrow_some(void) { borrow(CAPACITY); c_take_lent(); c_take_lent(); }

/* Neither full nor empty. */
static void p_borrow_spare_of_some(void)
{
        p_borrow_some();
        stook_sheaf_return(sheaved.cache, lent);
        lent = NULL;
}

static void p_borrow_barn(void)
{
        take(&sheaved, 12);
        give(&sheaved, 12);
        stook_evacuate_cache(&sheaved.cache->front);
}
static void p_return_barn(void) { p_borrow_some(); take(&sheaved, 8); give(&sheaved, 8); }
static void p_return_flush(void) { p_borrow_some(); p_free_flush(); }
static void p_return_flush_refused(void) { p_return_flush(); stook_inject.lock_refuse_every = 1; }

static void c_return(void)
{
        struct stook_sheaf *s = lent;

        lent = NULL;
        (void)IN_LIBRARY((stook_sheaf_return(sheaved.cache, s), 0));
}

static void refill(size_t n)
{
        struct stook_sheaf *s = lent;

        lent = NULL;
        if (!IN_LIBRARY(stook_sheaf_refill(sheaved.cache, 0, &s, n)) &&
            stook_sheaf_available(s) < n)
                slow_path_fault("fewer objects than were promised");
        lent = s;
}

static void c_refill(void) { refill(CAPACITY); }
static void c_refill_much(void) { refill(CAPACITY * 5); }

/* A thread's first call: it finds its registration. Its line is as a new thread's. */
static void p_first(void)
{
        stook_self->ready = 0;
        stook_self->rseq = NULL;
}

static void p_first_free(void) { take(&sheaved, 8); p_first(); }

const struct slow_path slow_paths[] = {
        { "alloc: spare", p_spare, c_take, false },
        { "alloc: barn", p_barn, c_take, false },
        { "alloc: partial slab", p_partial, c_take, false },
        { "alloc: partial slab, no lock", p_partial_refused, c_take, false },
        { "alloc: new slab", nothing, c_take, false },
        { "alloc: new slab, no lock", p_refused, c_take, false },
        { "alloc: fresh memory", p_grow, c_take, false },
        { "alloc: fresh memory, no lock", p_grow_refused, c_take, false },
        { "alloc: no sheaf", p_no_sheaf, c_take, false },
        { "alloc: no memory", p_no_memory, c_take, true },
        { "alloc: first call", p_first, c_take, false },
        { "alloc nolock: barn", p_barn, c_take_nolock, false },
        { "alloc nolock: partial slab", p_partial, c_take_nolock, false },
        { "alloc nolock: new slab", nothing, c_take_nolock, false },
        { "alloc bare: new slab", nothing, c_take_bare, false },
        { "alloc bare: pending", p_pending, c_take_bare, false },
        { "alloc bare: pending, lock free", p_pending_free, c_take_bare, false },
        { "alloc bare nolock: pending", p_pending, c_take_bare_nolock, false },
        { "alloc bulk", p_barn, c_take_bulk, false },
        { "free: first sheaf", p_free_first, c_give, false },
        { "free: second sheaf", p_free_full, c_give, false },
        { "free: swap", p_free_swap, c_give, false },
        { "free: barn", p_free_put, c_give, false },
        { "free: flush", p_free_flush, c_give, false },
        { "free: flush, no lock", p_free_flush_refused, c_give, false },
        { "free: no sheaf", p_free_no_sheaf, c_give, false },
        { "free: first call", p_first_free, c_give, false },
        { "free nolock: flush", p_free_flush, c_give_nolock, false },
        { "free bare: full slab", p_slab_full, c_give_bare, false },
        { "free bare: full slab, no lock", p_slab_full_refused, c_give_bare, false },
        { "free bare: surplus slab", p_slab_surplus, c_give_bare, false },
        { "free bare: surplus slab, no lock", p_slab_surplus_refused, c_give_bare, false },
        { "free bare nolock: surplus slab", p_slab_surplus, c_give_bare_nolock, false },
        { "free bulk", p_bulk, c_give_bulk, false },
        { "prefill: spare", p_spare, c_borrow, false },
        { "prefill: spare of some", p_borrow_spare_of_some, c_borrow, false },
        { "prefill: barn", p_borrow_barn, c_borrow, false },
        { "prefill: new sheaf", nothing, c_borrow, false },
        { "prefill: new sheaf, no lock", p_refused, c_borrow, false },
        { "prefill: no memory", p_no_memory, c_borrow, true },
        { "prefill: made to measure", nothing, c_borrow_much, false },
        { "prefill: made to measure, no memory", p_no_memory, c_borrow_much, true },
        { "alloc: prefilled sheaf", p_borrow, c_take_lent, false },
        { "refill", p_borrow_some, c_refill, false },
        { "refill: a larger sheaf", p_borrow_some, c_refill_much, false },
        { "return: spare", p_borrow_some, c_return, false },
        { "return: barn", p_return_barn, c_return, false },
        { "return: flush", p_return_flush, c_return, false },
        { "return: flush, no lock", p_return_flush_refused, c_return, false },
        { "return: made to measure", p_borrow_much, c_return, false },
        { "malloc: miss", nothing, c_malloc, false },
        { "free: malloc's", p_free_malloc, c_free_malloc, false },
        { "malloc: span", nothing, c_large, false },
        { "malloc: span, no lock", p_refused, c_large, false },
        { "malloc: fresh span", p_grow, c_large, false },
        { "malloc: own mapping", nothing, c_larger, false },
        { "malloc: own mapping, no lock", p_refused, c_larger, false },
        { "calloc: span", p_grow, c_calloc_large,
          false }, /* of zeros: a memset would be stepped through */
        { "aligned_alloc: span", nothing, c_aligned, false },
        { "free: span", p_large, c_free_large, false },
        { "free: span, purge by age", p_large_purged, c_free_large, false },
        { "free: span, purge of much", p_eight, c_free_large, false },
        { "free: own mapping", p_larger, c_free_large, false },
        { "realloc: span grows", p_large, c_grow, false },
        { "realloc: span moves", p_large, c_grow_much, false },
        { "realloc: own mapping grows", p_larger, c_grow_much, false },
        { "realloc: span shrinks", p_large, c_shrink, false },
};
const unsigned slow_path_count = sizeof(slow_paths) / sizeof(slow_paths[0]);

bool slow_paths_start(void)
{
        struct stook_cache_args with = { .args_size = sizeof(with),
                                         .barn_full = 1,
                                         .barn_empty = 1 };
        struct stook_cache_args without = { .args_size = sizeof(without),
                                            .flags = STOOK_CACHE_NO_SHEAVES };

        /* A class is there once an object was asked for. */
        stook_free(stook_malloc(48));
        stook_free(stook_malloc(5120));
        for (unsigned i = 0; i < HANDS; i++) {
                struct hands *h = hands_all[i];

                h->cache = stook_cache_create(h->name, h->words * 8,
                                              h == &sheaved ? &with : &without);
                if (!h->cache)
                        return false;
        }
        /* An empty slab goes at once. */
        parted.cache->slabs.min_partial = fours.cache->slabs.min_partial = 0;
        return sheaved.cache->front.barns->capacity == CAPACITY &&
               bare.cache->slabs.objects == SLAB && parted.cache->slabs.objects >= 512 &&
               fours.cache->slabs.objects == 4;
}
