/*
 * Purpose: the slabs of a cache: their geometry; a slab's birth from a span, and its end; the
 * memory of its parts.
 * Place: called by cache (init) and special (runs); by slab_fill.c and slab_shrink.c (births) and
 * slab_partial.c (releases); calls pages.
 *
 * Geometry: malloc's classes, and all that say nothing else, want few objects in a slab
 * (STOOK_SLAB_OBJECTS_FEW), so that slabs become empty: room for four objects, and at least 16 KiB.
 * Caches that a program makes want many (STOOK_SLAB_OBJECTS_MANY): 32 KiB, and up to 64 KiB where
 * their objects need it. Pages of a slab are touched only when their objects are handed out. So a
 * larger slab costs address space, not memory, and saves births and descriptors. All have room for
 * two objects.
 * From there upwards it is the smallest slab that wastes at most 1/16 at its end, else at most 1/8,
 * and so on. For objects of half a page or more the first share is 1/128: their slabs have many
 * pages anyway, and the page at the end is resident. When such a span cannot be had, a slab is the
 * smallest span that holds one object; for small objects that is the usual one.
 *
 * Parts: where a slab has more of them than fit into its descriptor, or bits of constructed
 * objects, they lie in a block. Blocks come in a few sizes and two kinds: with or without room for
 * those bits. A free block waits on a stack of its size and kind, and serves as that again.
 *
 * Invariants:
 *  A1 A cell that once was a part's pair is never anything else. While the block is free, a pair
 *     keeps the generation of its last life and the flag RELEASED (slab_state.h S7), and its bits
 *     stay set (S9). Only the first pair's low word has another use then: the stack's link. Its
 *     generation, which is never less than the second pair's, waits in the second pair.
 *  B1 The pagemap says "slab" from before the first object is handed out until after the last came
 *     back.
 *  B2 An object's memory is not touched, not even read, before the object is handed out.
 * Concurrency: the stacks of blocks are lock-free; any thread, any instruction.
 */
#include <errno.h>
#include <string.h>
#include <stook/cache.h>
#include <stook/layout.h>

#include "base/probe.h"
#include "base/thread.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "policy/constants.h"
#include "slab/slab_inside.h"

/*
 * The least bytes of a slab. In a smaller one a birth, the same for any size, is a large part of
 * what a fill of small objects costs.
 */
#define SLAB_BYTES_LOW  ((size_t)32 << 10)
/* Where few are wanted. Half: twice as many descriptors. Twice: small programs are larger. */
#define SLAB_BYTES_FEW  ((size_t)16 << 10)
_Static_assert(STOOK_SLAB_BIRTHS <= STOOK_SPAN_SOME, "births");
/*
 * A size that wastes little is looked for up to there, or up to twice the least (for objects above
 * a page three times: 12 of 4,416 bytes fill 13 pages), but not where no empty slab would be kept
 * any more (STOOK_SLAB_KEPT_BYTES).
 */
#define SLAB_BYTES_TRIED ((size_t)32 << 10)
#define SLAB_BYTES_WANT ((size_t)64 << 10)
/*
 * Parts of a slab, one of which may be wasted. With 16 throughout, sqlite3's peak is 5.7 % higher:
 * slabs of five objects of 4,608 bytes instead of eight. With 64 it is 1.6 % higher.
 */
#define WASTE_PARTS     16
#define WASTE_PARTS_BIG 128
#define OBJECTS_LEAST 2
/* Larger slabs are made one by one: the lock is a small part of their cost. */
#define BIRTHS_BYTES ((size_t)32 << 10)

/* Parts of a block. */
#define LEAST_LOG2 2                    /* 4 parts are one cache line */
#define SIZES      5                    /* 4, 8, 16, 32, 64 parts */
#define NEAR_LOG2  1
_Static_assert(1 << (LEAST_LOG2 + SIZES - 1) == STOOK_SLAB_PARTS,
               "the largest block has all parts of a slab");
_Static_assert(1 << NEAR_LOG2 == STOOK_SPAN_PAIRS, "the room in a descriptor");

static size_t round_up(size_t n, size_t to)
{
        return (n + to - 1) / to * to;
}

static size_t smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* ---- geometry ---- */

static size_t choose_bytes(size_t stride, size_t wanted, size_t objects)
{
        size_t page = stook_os_page_bytes();
        size_t waste_parts = stride < page / 2 ? WASTE_PARTS : WASTE_PARTS_BIG;
        size_t least = smaller(stride * wanted, SLAB_BYTES_WANT);
        size_t most, low = wanted > STOOK_SLAB_OBJECTS_FEW ? SLAB_BYTES_LOW : SLAB_BYTES_FEW;

        if (least < low)
                least = low;
        if (least < stride * objects)
                least = stride * objects;
        least = smaller(round_up(least, page), STOOK_SLAB_BYTES_MAX);
        most = stride > page ? 3 * least : 2 * least;
        most = most > SLAB_BYTES_TRIED ? most : SLAB_BYTES_TRIED;
        most = smaller(most, least > STOOK_SLAB_KEPT_BYTES ? STOOK_SLAB_BYTES_MAX
                                                           : STOOK_SLAB_KEPT_BYTES);
        for (size_t share = waste_parts; share > 1; share /= 2)
                for (size_t bytes = least; bytes <= most; bytes += page)
                        if (bytes % stride <= bytes / share)
                                return bytes;
        return least;
}

static uint32_t log2_floor(size_t n)
{
        return 63 - (uint32_t)__builtin_clzll(n);
}

uint32_t stook_slabs_stride(const struct stook_slabs_args *args)
{
        return (uint32_t)round_up(round_up(args->object_size, 8) + args->tail_bytes, args->align);
}

static void choose(struct stook_slabs *slabs, const struct stook_slabs_args *args)
{
        size_t keep, wanted = args->slab_objects ? args->slab_objects : STOOK_SLAB_OBJECTS_FEW;
        size_t least = OBJECTS_LEAST + args->keep_first;

        slabs->object_size = (uint32_t)args->object_size;
        slabs->kept_first = args->keep_first;
        slabs->stride = stook_slabs_stride(args);
        slabs->magic = stook_magic_of(slabs->stride);
        slabs->slab_bytes = args->run_slabs
                ? args->slab_bytes : (uint32_t)choose_bytes(slabs->stride, wanted, least);
        slabs->run_slabs = (uint16_t)args->run_slabs;
        slabs->run_asks = args->run_asks;
        slabs->of_heap = args->of_heap;
        slabs->objects = (uint32_t)smaller(slabs->slab_bytes / slabs->stride,
                                           STOOK_SLAB_OBJECTS_MAX);
        /* As the kernel's min_partial: half of the size's logarithm, 5 to 10. */
        keep = log2_floor(args->object_size) / 2;
        keep = keep < 5 ? 5 : smaller(keep, 10);
        keep = smaller(keep, STOOK_SLAB_KEPT_BYTES / slabs->slab_bytes);
        slabs->min_partial = args->keep_none ? 0 : (uint32_t)keep;
        /* No list is that long: only shrink and destroy release slabs (slab.h). */
        if (args->give_later || args->special)
                slabs->min_partial = INT32_MAX;
}

/* ---- random order ---- */

/*
 * R. Durstenfeld, "Algorithm 235: Random permutation", 1964, on the indices of a part: all parts of
 * a slab have as many objects, but the last one. It is stored twice: a walk that begins anywhere
 * in the first copy meets each index without a test for the end.
 */
static bool make_random(struct stook_slabs *slabs)
{
        uint8_t *random = slabs->random;
        unsigned objects = (unsigned)smaller(slabs->objects, STOOK_PART_OBJECTS);

        if (!random)
                random = slabs->random = stook_meta_bump(2 * STOOK_PART_OBJECTS, 0);
        if (!random)
                return false;
        for (unsigned i = 0; i < objects; i++) {
                /*
                 * The high half times i + 1, as D. Lemire, "Fast random integer generation in an
                 * interval", 2019.
                 */
                unsigned at = (unsigned)((stook_os_random() >> 32) * (i + 1) >> 32);

                random[i] = random[at];
                random[at] = (uint8_t)i;
        }
        memcpy(random + objects, random, objects);
        slabs->in_random_order = true;
        return true;
}

/* ---- the slabs of a cache ---- */

static bool make_nodes(struct stook_slabs *slabs)
{
        unsigned nodes = stook_os_node_count();

        if (!slabs->node)
                slabs->node = stook_meta_bump(nodes * sizeof(*slabs->node), STOOK_CACHELINE);
        if (!slabs->node)
                return false;
        for (unsigned i = 0; i < nodes; i++) {
                stook_list_init(&slabs->node[i].list);
                stook_lock_set_rank(&slabs->node[i].lock, STOOK_RANK_PARTIAL_LIST);
                slabs->node[i].partial = 0;
        }
        return true;
}

int stook_slabs_init(struct stook_slabs *slabs, const struct stook_slabs_args *args)
{
        if (!args->object_size || args->object_size > STOOK_OBJECT_MAX || args->align < 8 ||
            (args->align & (args->align - 1)) || args->align > stook_os_page_bytes() ||
            !args->cache_index || args->cache_index >= STOOK_CACHES_MAX)
                return -ERANGE;
        if (!make_nodes(slabs))
                return -ENOMEM;
        choose(slabs, args);
        slabs->cache_index = (uint16_t)args->cache_index;
        slabs->reserved = 0;
        slabs->ctor = args->ctor;
        slabs->ctor_data = args->ctor_data;
        slabs->dtor = args->dtor;
        slabs->is_special = args->special;
        slabs->special = args->special ? args->special : slabs->special;
        slabs->name = args->name;
        slabs->counters = args->counters;
        slabs->give_later = args->give_later;
        slabs->in_random_order = false;
        slabs->slabs_peak = slabs->objects_peak = 0;
        return args->random_order && !make_random(slabs) ? -ENOMEM : 0;
}

/* ---- the memory of parts ---- */

static struct stook_tagged_stack blocks[2][SIZES];

static unsigned size_of(unsigned parts)
{
        return parts <= 1 << LEAST_LOG2 ? 0 :
               32 - (unsigned)__builtin_clz(parts - 1) - LEAST_LOG2;
}

/* Atomic: a thread that is late in popping this block may still read its link. */
static void keep_generation(struct stook_pair *to, const struct stook_pair *from)
{
        __atomic_store_n(&to->lo, from->lo, __ATOMIC_RELEASE);
}

/* NULL: no memory. */
static struct stook_pair *new_block(unsigned size, bool made)
{
        size_t bytes = sizeof(struct stook_pair) + (made ? sizeof(uint64_t) : 0);
        struct stook_link *link = stook_tagged_stack_pop(&blocks[made][size]);
        struct stook_pair *block;

        if (!link)
                return stook_meta_bump(bytes << (LEAST_LOG2 + size), 0);
        block = stook_container_of((uint64_t *)link, struct stook_pair, lo);
        keep_generation(&block[0], &block[1]);
        return block;
}

/* Sets @slab->parts and @slab->made_at by its part_count. False: no memory. */
static bool parts_new(struct stook_slab *slab, bool made)
{
        struct stook_pair *parts = stook_slab_span(slab)->pair;
        unsigned room = NEAR_LOG2;

        slab->made_at = 0;
        if (slab->part_count > STOOK_SPAN_PAIRS || made) {
                room = LEAST_LOG2 + size_of(slab->part_count);
                parts = new_block(room - LEAST_LOG2, made);
                if (!parts)
                        return false;
                slab->made_at = made ? (uint8_t)(1 << room) : 0;
        }
        /* Atomic: a late free reads it (slab_state.h S9). */
        __atomic_store_n(&slab->parts, (uintptr_t)parts | room, __ATOMIC_RELEASE);
        return true;
}

static void parts_free(struct stook_slab *slab)
{
        struct stook_pair *parts = stook_slab_parts(slab);

        /* Atomic: a late free reads it (slab_state.h S9). */
        __atomic_store_n(&slab->parts, 0, __ATOMIC_RELEASE);
        if (parts == stook_slab_span(slab)->pair)
                return;
        keep_generation(&parts[1], &parts[0]);
        stook_tagged_stack_push(&blocks[slab->made_at != 0][size_of(slab->part_count)],
                                (struct stook_link *)&parts->lo);
}

/* ---- slabs ---- */

struct stook_slab *stook_slab_make(struct stook_slabs *slabs, struct stook_span *span)
{
        struct stook_slab *slab = stook_slab_of(span);
        uint16_t objects = (uint16_t)slabs->objects;

        /* Atomic, as all that slab_fork.c reads of descriptors that others may be changing. */
        __atomic_store_n(&slab->listed, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&slab->slabs, slabs, __ATOMIC_RELEASE);        /* slab_fork.c M1 */
        slab->pending = 0;
        slab->kept_first = slabs->kept_first;
        if (STOOK_UNLIKELY(span->bytes < slabs->slab_bytes))
                objects = (uint16_t)(span->bytes / slabs->stride);
        slab->objects = objects;
        /* Atomic: a late free of what was here before may look at it (slab_state.h S9). */
        __atomic_store_n(&slab->key, stook_slab_key(slabs->cache_index, span->start,
                                                    span->bytes < slabs->slab_bytes),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&slab->part_count,
                         (uint8_t)((objects + STOOK_PART_OBJECTS - 1) / STOOK_PART_OBJECTS),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&slab->node, span->node, __ATOMIC_RELEASE);    /* slab_fork.c M1 */
        if (!parts_new(slab, slabs->ctor != NULL))
                return NULL;
        for (unsigned p = 0; p < slab->part_count; p++) {
                struct stook_pair *part = stook_slab_part(slab, p);

                /*
                 * Atomic: a thread that is late in popping this block may still read its link.
                 * Release: what reads these bits sees the key.
                 */
                __atomic_store_n(&part->hi, ~UINT64_C(0), __ATOMIC_RELEASE);
                /*
                 * S7: a thread that reads this life's generation sees that the last life's pagemap
                 * entry is gone.
                 */
                __atomic_store_n(&part->lo, (((part->lo & ~STOOK_PART_FLAGS) +
                                              STOOK_PART_GENERATION) | STOOK_PART_CLAIM),
                                 __ATOMIC_RELEASE);
                if (slab->made_at)
                        stook_slab_made(slab)[p] = 0;
        }
        stook_pagemap_set_slab(span, slabs->cache_index);               /* B1 */
        STOOK_PROBE3(slab_new, slabs->cache_index, span->start, span->bytes);
        return slab;
}

/* A span for a slab of full size, else the smallest that holds one object. NULL: no memory. */
static struct stook_span *take_span(struct stook_slabs *slabs, unsigned node)
{
        size_t least = round_up(slabs->stride * (1 + slabs->kept_first), stook_os_page_bytes());
        struct stook_span *span = stook_span_take(node, slabs->slab_bytes, 0);

        if (STOOK_LIKELY(span != NULL) || least == slabs->slab_bytes)
                return span;
        span = stook_span_take(node, least, 0);
        if (span)
                stook_count(slabs->counters, STOOK_STAT_order_fallback, 1);
        return span;
}

static void raise(uint64_t *peak, uint64_t now)
{
        uint64_t before = __atomic_load_n(peak, __ATOMIC_RELAXED);

        /* Counters that were read while another thread counted may seem to be below zero. */
        while (before < now && (int64_t)now > 0 &&
               !__atomic_compare_exchange_n(peak, &before, now, true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED))
                ;
}

void stook_slabs_note_peaks(struct stook_slabs *slabs)
{
        const struct stook_counters *c = slabs->counters;

        raise(&slabs->slabs_peak, stook_counted(c, STOOK_STAT_alloc_slab) -
                                  stook_counted(c, STOOK_STAT_free_slab));
        raise(&slabs->objects_peak, stook_counted(c, STOOK_STAT_alloc_slowpath) +
                                    stook_counted(c, STOOK_STAT_sheaf_refill) -
                                    stook_counted(c, STOOK_STAT_free_slowpath) -
                                    stook_counted(c, STOOK_STAT_sheaf_flush));
}

static STOOK_NOINLINE unsigned births(struct stook_slabs *slabs, unsigned node, size_t n,
                                      struct stook_slab *born[STOOK_SLAB_BIRTHS])
{
        struct stook_span *spans[STOOK_SLAB_BIRTHS];
        unsigned count = 0, made = 0;

        if (n > 1 && slabs->slab_bytes < BIRTHS_BYTES)
                count = stook_span_take_some(node, slabs->slab_bytes, (unsigned)n, spans);
        if (!count) {
                spans[0] = take_span(slabs, node);
                count = spans[0] != NULL;
        }
        for (unsigned i = 0; i < count; i++) {
                born[made] = STOOK_UNLIKELY(slabs->of_heap)
                                     ? stook_heap_duties.make_slab(slabs, spans[i])
                                     : stook_slab_make(slabs, spans[i]);
                if (STOOK_LIKELY(born[made] != NULL))
                        made++;
                else
                        stook_span_give(spans[i]);
        }
        stook_count(slabs->counters, STOOK_STAT_alloc_slab, made);
        stook_slabs_note_peaks(slabs);
        return made;
}

/* Without a frame of its own: for the depth of the stack. */
unsigned stook_slab_births(struct stook_slabs *slabs, unsigned node, size_t want, bool may_ask,
                           struct stook_slab *born[STOOK_SLAB_BIRTHS])
{
        size_t n = smaller((want + slabs->objects - 1) / slabs->objects, STOOK_SLAB_BIRTHS);

        if (STOOK_LIKELY(!slabs->run_slabs))
                return births(slabs, node, n, born);
        return slabs->run_asks && !may_ask ? 0 : slabs->special->births(slabs, node, n, born);
}

/* From here on a walk over descriptors, also in the child of a fork, sees a slab. */
static void show(struct stook_slabs *slabs, struct stook_slab *slab)
{
        __atomic_fetch_add(&slabs->node[slab->node].slabs, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&stook_slab_span(slab)->kind, STOOK_SPAN_SLAB, __ATOMIC_RELEASE);
}

void stook_slab_publish(struct stook_slabs *slabs, struct stook_slab *slab, bool head, bool try)
{
        uint64_t claims = stook_slab_parts_with(slab, STOOK_PART_CLAIM);
        struct stook_slab_hold hold;

        if (!claims) {
                show(slabs, slab);
                return;
        }
        if (!stook_slab_hold(&hold, slabs, stook_slab_node(slab), try)) {
                stook_lock_forbid_waits();                      /* slab_partial.c P4 */
                show(slabs, slab);
                stook_slab_settle_parts(slabs, slab, claims, true);
                stook_lock_allow_waits();
                return;
        }
        for (uint64_t left = claims; left; left &= left - 1) {
                uint64_t *lo = &stook_slab_part(slab, __builtin_ctzll(left))->lo;

                __atomic_store_n(lo, *lo ^ (STOOK_PART_CLAIM | STOOK_PART_LISTED),
                                 __ATOMIC_RELAXED);
        }
        show(slabs, slab);
        stook_slab_add(&hold, slab, claims, head);
        stook_slab_unhold(&hold);
}

void stook_slab_unmake(struct stook_slab *slab)
{
        struct stook_span *span = stook_slab_span(slab);

        /* First: see slab_fork.c. */
        __atomic_store_n(&span->kind, STOOK_SPAN_TAKEN, __ATOMIC_RELEASE);
        stook_pagemap_clear_slab(span);                                 /* B1 */
        STOOK_PROBE3(slab_free, slab->slabs->cache_index, span->start, span->bytes);
        parts_free(slab);
}

void stook_slab_release(struct stook_link *first)
{
        struct stook_slabs *slabs;
        unsigned node, n = 0;

        if (!first)
                return;
        slabs = stook_slab_of(stook_container_of(first, struct stook_span, link))->slabs;
        node = stook_container_of(first, struct stook_span, link)->node;
        for (struct stook_link *at = first; at; at = at->next, n++) {
                struct stook_span *span = stook_container_of(at, struct stook_span, link);

                stook_slab_unmake(stook_slab_of(span));
                if (STOOK_UNLIKELY(slabs->of_heap))
                        stook_heap_duties.slab_left(slabs, span);
        }
        stook_count(slabs->counters, STOOK_STAT_free_slab, n);
        __atomic_fetch_sub(&slabs->node[node].slabs, n, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&slabs->node[node].going, n, __ATOMIC_RELEASE);  /* slab_shrink.c M1 */
        if (STOOK_LIKELY(!slabs->give_later)) {
                stook_span_give_chain(first);
                return;
        }
        while (first) {
                struct stook_span *span = stook_container_of(first, struct stook_span, link);

                first = first->next;
                slabs->give_later(slabs, span);
        }
}

size_t stook_slabs_count(const struct stook_slabs *slabs)
{
        size_t sum = 0;

        for (unsigned i = 0; i < stook_os_node_count(); i++)
                sum += __atomic_load_n(&slabs->node[i].slabs, __ATOMIC_RELAXED);
        return sum;
}
