/*
 * Purpose: objects from an array back into their slabs.
 * Place: called by barn (puts, flushes, single objects), cache (bulk), slot (objects of one node)
 * and rcu (chains).
 *
 * A drain goes through the array in runs. It prefetches the pagemap entries of all objects of a
 * run. Then it bundles the objects by the part they lie in, and prefetches a part's descriptor with
 * the first object of its bundle. So the misses of a run overlap. At the end it puts each bundle
 * into its part by one compare-and-swap. This is one of the bits alone if the part has free objects
 * before, and some objects out afterwards.
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

/*
 * Objects that are looked up together. The stack has room for so many (tools/check-stack); with 32
 * frees in random order cost the same.
 */
#define RUN    20
#define TABLE  32                       /* power of two */

struct drain {
        struct stook_slabs *slabs;
        void *const *objects;                           /* of this run */
        struct stook_slabs_node *claimed_node;
        uint64_t entry;                         /* the cache's part of the pagemap entries */
        unsigned bundles, claims;
        bool     near;                          /* slabs have their parts in their descriptors */
        stook_part_key key[RUN];                        /* by bundle: its part */
        union {
                uint64_t bits;                          /* by bundle: its objects */
                stook_part_key claim;                   /* by claim: at most one for each bundle */
        } at[RUN];
        uint8_t  first[RUN];                            /* by bundle: one of its objects */
        uint8_t  table[TABLE];                          /* by hash of the part: the latest bundle */
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

static STOOK_COLD void refuse_bundle(struct drain *d, unsigned bundle,
                                     enum stook_free_answer answer, uint64_t mask)
{
        const void *object = d->objects[d->first[bundle]];
        struct stook_slab *slab = stook_key_slab(d->key[bundle]);

        if (answer == STOOK_FREE_TWICE) {
                refuse_twice(d->slabs, slab, stook_key_part(d->key[bundle]), mask);
                d->at[bundle].bits &= ~mask;
                return;
        }
        if (answer == STOOK_FREE_BEHIND)
                refuse_interior(d, object, slab, BEHIND);
        else
                refuse(d->slabs, STOOK_FAULT_NOT_LIVE, object, NULL, "its slab is gone");
        d->at[bundle].bits = 0;
}

/*
 * From any state of the part. Not inline: its stack is free again when the calls that need much
 * stack come.
 */
static STOOK_NOINLINE enum stook_free_answer free_any(struct drain *d, unsigned bundle,
                                                      uint64_t *mask)
{
        stook_part_key key = d->key[bundle];

        return stook_part_free(d->slabs, stook_key_slab(key), stook_key_part(key), mask,
                               d->objects[d->first[bundle]]);
}

STOOK_INLINE bool free_some(struct drain *d, unsigned bundle)
{
        stook_part_key key = d->key[bundle];

        return d->near && stook_part_free_some(stook_key_slab(key), stook_key_part(key),
                                               d->at[bundle].bits, d->objects[d->first[bundle]],
                                               d->entry | stook_key_span(key));
}

STOOK_INLINE void put(struct drain *d, unsigned bundle)
{
        if (STOOK_LIKELY(free_some(d, bundle)))
                return;
        while (d->at[bundle].bits) {
                uint64_t mask = d->at[bundle].bits;
                enum stook_free_answer answer = free_any(d, bundle, &mask);

                if (STOOK_LIKELY(answer == STOOK_FREED))
                        return;
                if (answer == STOOK_FREED_CLAIMED) {
                        gather_claim(d, d->key[bundle]);
                        return;
                }
                refuse_bundle(d, bundle, answer, mask);
        }
}

/*
 * The bundle of part @key; object @i is its first one if the bundle is new. Only the latest bundle
 * at a place of the table is found again. So a part may have two bundles in a run. Then it costs
 * one more compare-and-swap, and the second bundle finds the bits that the first one set.
 */
STOOK_INLINE unsigned bundle_of(struct drain *d, size_t i, stook_part_key key)
{
        uint8_t *place = &d->table[(key / sizeof(struct stook_span) + key) % TABLE];
        unsigned bundle = *place;

        if (bundle < d->bundles && d->key[bundle] == key)
                return bundle;
        bundle = d->bundles++;
        *place = (uint8_t)bundle;
        d->key[bundle] = key;
        d->at[bundle].bits = 0;
        d->first[bundle] = (uint8_t)i;
        __builtin_prefetch(&stook_key_slab(key)->parts, 1);
        return bundle;
}

/* ---- runs ---- */

/*
 * Puts object @i into its bundle, if an object of the cache begins there. *@last: the bundle that
 * the previous object went to; objects that lie together are often freed together.
 */
STOOK_INLINE void look_up(struct drain *d, size_t i, unsigned *last)
{
        struct stook_slabs *slabs = d->slabs;
        uintptr_t addr = (uintptr_t)d->objects[i];
        uint64_t entry = stook_pagemap_get(addr);
        stook_part_key key;
        uint64_t bit;
        uint32_t index;
        bool interior;

        if (STOOK_UNLIKELY(stook_entry_cache(entry) != slabs->cache_index)) {
                refuse_stranger(slabs, d->objects[i], entry);
                return;
        }
        index = stook_slabs_index(slabs, stook_entry_offset(entry, addr), &interior);
        if (STOOK_UNLIKELY(interior || index >= slabs->objects)) {
                refuse_interior(d, d->objects[i], stook_slab_of(stook_entry_span(entry)),
                                interior ? NULL : BEHIND);
                return;
        }
        key = (uintptr_t)stook_entry_span(entry) | index / STOOK_PART_OBJECTS;
        bit = UINT64_C(1) << index % STOOK_PART_OBJECTS;
        if (d->key[*last] != key)
                *last = bundle_of(d, i, key);
        if (STOOK_UNLIKELY(d->at[*last].bits & bit))
                refuse_twice(d->slabs, stook_key_slab(key), stook_key_part(key), bit);
        d->at[*last].bits |= bit;
}

static void drain_run(struct drain *d, size_t n)
{
        unsigned last = 0;

        d->bundles = 0;
        d->key[0] = 0;                                  /* no bundle yet */
        memset(d->table, 0, sizeof(d->table));
        for (size_t i = 0; i < n; i++)
                stook_pagemap_prefetch((uintptr_t)d->objects[i]);
        for (size_t i = 0; i < n; i++)
                look_up(d, i, &last);
        for (unsigned bundle = 0; bundle < d->bundles; bundle++)
                put(d, bundle);
        settle_claims(d);
}

void stook_slab_drain(struct stook_slabs *slabs, size_t n, void *const *objects)
{
        struct drain d;

        d.slabs = slabs;
        d.objects = objects;
        d.claimed_node = NULL;
        d.claims = 0;
        d.entry = (uint64_t)slabs->cache_index << STOOK_ENTRY_CACHE_SHIFT;
        d.near = stook_slabs_parts_are_near(slabs);
        /* slab_partial.c P4. A free that finds a lock taken uses pending, so it need not wait. */
        stook_lock_forbid_waits();
        for (; n > RUN; n -= RUN, d.objects += RUN)
                drain_run(&d, RUN);
        drain_run(&d, n);
        stook_lock_allow_waits();
        stook_pages_purge_excess();
}
