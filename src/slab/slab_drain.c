/*
 * Purpose: objects from an array back into their slabs.
 * Place: called by barn (puts, flushes, single objects), cache (bulk), slot (objects of one node)
 * and rcu (chains).
 *
 * A drain goes through the array in runs. It looks up where each object of a run lies, and
 * prefetches the part's descriptor. So the misses of a run overlap. Then it goes through the run
 * again. Objects that follow each other and lie in one part are a bundle, which is put into its
 * part by one compare-and-swap. This is one of the bits alone if the part has free objects before,
 * and some objects out afterwards.
 *
 * Invariants:
 *  D1 A bit is set only if the pagemap and the slab's geometry say that an object of this cache
 *     begins there, and the bit is clear in the slab and in the bundle.
 *  D2 Claims of a run are gathered and settled together, after the bundles: one hold of the lock
 *     for them.
 * Failure: none. What is no object is reported and left out.
 */
#include <string.h>

#include "os/os.h"
#include "pages/pagemap.h"
#include "pages/policy.h"
#include "report/report.h"
#include "slab/slab_inside.h"

/* Objects that are looked up together: more than a CPU has misses under way. */
#define RUN 32

/*
 * In slabs of so many objects, every fourth free or more claims its part. Arbitrary. Then the first
 * line of the descriptor is wanted, too.
 */
#define FEW 8

/*
 * Where an object lies, in one word: index in its slab << 48 | address of the span's descriptor. 0:
 * it is no object of the cache.
 */
typedef uint64_t place;
#define PLACE_INDEX_SHIFT 48
#define PLACE_BIT_MASK    ((uint64_t)(STOOK_PART_OBJECTS - 1) << PLACE_INDEX_SHIFT)
_Static_assert(STOOK_ENTRY_SPAN_MASK >> PLACE_INDEX_SHIFT == 0 &&
               STOOK_SLAB_OBJECTS_MAX <= 1 << (64 - PLACE_INDEX_SHIFT),
               "an index fits above a descriptor's address");

struct drain {
        struct stook_slabs *slabs;
        struct stook_slabs_node *claimed_node;
        uint64_t entry;                         /* the cache's part of the pagemap entries */
        unsigned claims;
        bool     near;                          /* slabs have their parts in their descriptors */
        bool     few;                           /* slabs have few objects */
        union {
                place place;                    /* by object */
                stook_part_key claim;           /* by claim, over places that are done with */
        } at[RUN];
};

/* ---- misuse ---- */

static STOOK_COLD void refuse(const struct stook_slabs *slabs, enum stook_fault fault,
                              const void *object, const struct stook_slab *slab, const char *detail)
{
        const char *base = slab ? stook_slab_base(slab) : NULL;
        size_t offset = slab ? (size_t)((const char *)object - base) : 0;

        stook_report_fault(fault, object, slabs->name, base, offset, detail);
}

/* The pagemap says that @object is in no slab of ours. */
static STOOK_COLD void refuse_stranger(const struct stook_slabs *slabs, const void *object,
                                       uint64_t entry)
{
        if (stook_entry_cache(entry))
                refuse(slabs, STOOK_FAULT_WRONG_CACHE, object,
                       stook_slab_of(stook_entry_span(entry)), NULL);
        else if (stook_pagemap_ours((uintptr_t)object))
                refuse(slabs, STOOK_FAULT_NOT_LIVE, object, NULL, NULL);
        else
                refuse(slabs, STOOK_FAULT_FOREIGN, object, NULL, NULL);
}

#define BEHIND "it is behind the slab's last object"

/*
 * The objects of part @p that @bits stand for: free already, or, in a slab smaller than its kind,
 * not there (S8).
 */
static STOOK_COLD void refuse_twice(const struct stook_slabs *slabs, const struct stook_slab *slab,
                                    unsigned p, uint64_t bits)
{
        uint64_t objects = stook_part_objects(slab, p);

        for (; bits; bits &= bits - 1) {
                size_t index = p * STOOK_PART_OBJECTS + (unsigned)__builtin_ctzll(bits);
                const char *object = stook_slab_base(slab) + index * slabs->stride;

                if (bits & -bits & objects)
                        refuse(slabs, STOOK_FAULT_DOUBLE_FREE, object, slab,
                               "it is free in its slab already, or was never handed out");
                else
                        refuse(slabs, STOOK_FAULT_INTERIOR, object, slab, BEHIND);
        }
}

/* ---- claims ---- */

static void settle_claims(struct drain *d)
{
        _Static_assert(sizeof(d->at[0]) == sizeof(stook_part_key), "claims lie side by side");

        if (d->claims)
                stook_slab_settle_keys(d->slabs, d->claimed_node, &d->at[0].claim, d->claims);
        d->claims = 0;
}

static void gather_claim(struct drain *d, stook_part_key key)
{
        struct stook_slab *slab = stook_key_slab(key);
        struct stook_slabs_node *node = &d->slabs->node[slab->node];

        if (d->claimed_node != node)
                settle_claims(d);
        d->claimed_node = node;
        d->at[d->claims++].claim = key;
        __builtin_prefetch(stook_slab_span(slab), 1);   /* the list's links, for the settling */
}

/* ---- bundles ---- */

static STOOK_COLD void refuse_interior(struct drain *d, const void *object,
                                       const struct stook_slab *slab, const char *detail)
{
        refuse(d->slabs, STOOK_FAULT_INTERIOR, object, slab, detail);
}

/* Return: the bits that may be tried again. */
static STOOK_COLD uint64_t refuse_bundle(struct drain *d, stook_part_key key, const void *object,
                                         enum stook_free_answer answer, uint64_t bits,
                                         uint64_t refused)
{
        if (answer == STOOK_FREE_TWICE) {
                refuse_twice(d->slabs, stook_key_slab(key), stook_key_part(key), refused);
                return bits & ~refused;
        }
        if (answer == STOOK_FREE_BEHIND)
                refuse_interior(d, object, stook_key_slab(key), BEHIND);
        else
                refuse(d->slabs, STOOK_FAULT_NOT_LIVE, object, NULL, "its slab is gone");
        return 0;
}

/*
 * From any state of the part. Not inline: its stack is free again when the calls that need much
 * stack come.
 */
static STOOK_NOINLINE enum stook_free_answer free_any(const struct drain *d, stook_part_key key,
                                                      uint64_t *mask, const void *object)
{
        return stook_part_free(d->slabs, stook_key_slab(key), stook_key_part(key), mask, object);
}

/* Not from the most frequent state. @object: one of the bundle's. */
static STOOK_NOINLINE void put_any(struct drain *d, stook_part_key key, uint64_t bits,
                                   const void *object)
{
        while (bits) {
                uint64_t mask = bits;
                enum stook_free_answer answer = free_any(d, key, &mask, object);

                if (STOOK_LIKELY(answer == STOOK_FREED))
                        return;
                if (answer == STOOK_FREED_CLAIMED) {
                        gather_claim(d, key);
                        return;
                }
                bits = refuse_bundle(d, key, object, answer, bits, mask);
        }
}

STOOK_INLINE void put(struct drain *d, place place, uint64_t bits, const void *object)
{
        uintptr_t span = place & STOOK_ENTRY_SPAN_MASK;
        unsigned p = (unsigned)(place >> PLACE_INDEX_SHIFT) / STOOK_PART_OBJECTS;

        if (STOOK_UNLIKELY(!d->near ||
                           !stook_part_free_some(stook_slab_of((struct stook_span *)span), p, bits,
                                                 object, d->entry | span)))
                put_any(d, span | p, bits, object);
}

/* ---- runs ---- */

/* If no object of the cache begins at @object, that is reported. */
STOOK_INLINE place look_up(struct drain *d, const void *object)
{
        const struct stook_slabs *slabs = d->slabs;
        uintptr_t addr = (uintptr_t)object;
        uint64_t entry = stook_pagemap_get(addr) ^ d->entry;
        struct stook_span *span = stook_entry_span(entry);
        uint32_t index;
        bool interior;

        if (STOOK_UNLIKELY(stook_entry_cache(entry) != 0)) {
                refuse_stranger(slabs, object, entry ^ d->entry);
                return 0;
        }
        index = stook_slabs_index(slabs, stook_entry_offset(entry, addr), &interior);
        if (STOOK_UNLIKELY(interior || index >= slabs->objects)) {
                refuse_interior(d, object, stook_slab_of(span), interior ? NULL : BEHIND);
                return 0;
        }
        __builtin_prefetch(&stook_slab_of(span)->parts, 1);
        if (d->few)
                __builtin_prefetch(span, 1);
        return (uint64_t)index << PLACE_INDEX_SHIFT | (uintptr_t)span;
}

static STOOK_COLD void refuse_again(struct drain *d, place place, uint64_t bit)
{
        refuse_twice(d->slabs, stook_slab_of((struct stook_span *)(place & STOOK_ENTRY_SPAN_MASK)),
                     (unsigned)(place >> PLACE_INDEX_SHIFT) / STOOK_PART_OBJECTS, bit);
}

STOOK_INLINE uint64_t bit_of(place place)
{
        return UINT64_C(1) << (place >> PLACE_INDEX_SHIFT) % STOOK_PART_OBJECTS;
}

/* Objects of one part that follow each other: their @bits. Return: the first object behind them. */
STOOK_INLINE size_t bundle(struct drain *d, size_t i, size_t n, uint64_t *bits)
{
        place first = d->at[i].place, next;

        *bits = bit_of(first);
        while (++i < n && !(((next = d->at[i].place) ^ first) & ~PLACE_BIT_MASK)) {
                if (STOOK_UNLIKELY(*bits & bit_of(next)))
                        refuse_again(d, next, bit_of(next));
                *bits |= bit_of(next);
        }
        return i;
}

static void drain_run(struct drain *d, size_t n, void *const *objects)
{
        for (size_t i = 0; i < n; i++)
                d->at[i].place = look_up(d, objects[i]);
        for (size_t i = 0, next; i < n; i = next) {
                place place = d->at[i].place;
                uint64_t bits;

                next = bundle(d, i, n, &bits);
                if (STOOK_LIKELY(place))
                        put(d, place, bits, objects[i]);
        }
        settle_claims(d);
}

void stook_slab_drain(struct stook_slabs *slabs, size_t n, void *const *objects)
{
        struct drain d;

        d.slabs = slabs;
        d.claimed_node = NULL;
        d.claims = 0;
        d.entry = (uint64_t)slabs->cache_index << STOOK_ENTRY_CACHE_SHIFT;
        d.few = slabs->objects <= FEW;
        d.near = stook_slabs_parts_are_near(slabs);
        /* slab_partial.c P4. A free that finds a lock taken uses pending, so it need not wait. */
        stook_lock_forbid_waits();
        for (; n > RUN; n -= RUN, objects += RUN)
                drain_run(&d, RUN, objects);
        drain_run(&d, n, objects);
        stook_lock_allow_waits();
        stook_pages_purge_excess();
}
