/*
 * Purpose: objects from an array back into their slabs.
 * Place: called by barn (puts, flushes, single objects), cache (bulk), home (objects of other
 * nodes), rcu (chains), debug (objects that leave the quarantine), prefill and limit.
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
 *  D2 Claims of a run are gathered and settled together: one hold of the lock for those that
 *     follow each other and are of one node.
 * Failure: none. What is no object is reported and left out.
 */
#include <string.h>

#include "os/os.h"
#include "pages/pagemap.h"
#include "pages/purge.h"
#include "report/report.h"
#include "slab/slab_inside.h"

/* Objects that are looked up together: more than a CPU has misses under way. */
#define RUN 32

/*
 * Where an object lies, in one word: index in its slab << 48 | address of the span's descriptor.
 * Odd: it is no object of the cache, and this place is equal to no other of the run.
 */
typedef uint64_t place;
#define PLACE_INDEX_SHIFT 48
#define PLACE_BIT_MASK    ((uint64_t)(STOOK_PART_OBJECTS - 1) << PLACE_INDEX_SHIFT)
#define NO_PLACE(i)       ((place)(2 * (i) + 1))
_Static_assert(NO_PLACE(RUN) < _Alignof(struct stook_span), "no place has a descriptor's address");
_Static_assert(STOOK_ENTRY_SPAN_MASK >> PLACE_INDEX_SHIFT == 0 &&
               STOOK_SLAB_OBJECTS_MAX <= 1 << (64 - PLACE_INDEX_SHIFT),
               "an index fits above a descriptor's address");

struct drain {
        struct stook_slabs *slabs;
        struct stook_slabs_node *claimed_node;
        uint64_t entry;                         /* the cache's part of the pagemap entries */
        unsigned claims;
        bool     near;                          /* slabs have their parts in their descriptors */
        /* Near, in a slab of full size: bits that stand for objects, of each part. */
        uint64_t objects[STOOK_SPAN_PAIRS];
        union {
                place place;                    /* by object; one behind the last */
                stook_part_key claim;           /* by claim, over places that are done with */
        } at[RUN + 1];
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
                refuse(slabs, STOOK_FAULT_FOREIGN, object, NULL, "no memory of this library");
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

/* The slab may be released. Then its span is merged with free ones before and behind it. */
static void fetch_beside(const struct drain *d, const struct stook_slab *slab)
{
        uintptr_t start = (uintptr_t)(slab->key - d->entry);

        stook_pagemap_fetch(start - 1);
        stook_pagemap_fetch(start + d->slabs->slab_bytes);
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
        if (d->slabs->slab_bytes > STOOK_MAP_PAGE &&
            !~__atomic_load_n(&stook_slab_part(slab, stook_key_part(key))->hi, __ATOMIC_RELAXED))
                fetch_beside(d, slab);
}

/* ---- bundles ---- */

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
                refuse(d->slabs, STOOK_FAULT_INTERIOR, object, stook_key_slab(key), BEHIND);
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

/* ---- runs ---- */

/* What is looked up is no object of the cache: @entry is the pagemap's. */
static STOOK_COLD void refuse_lookup(struct drain *d, const void *object, uint64_t entry)
{
        bool interior;

        if (stook_entry_cache(entry ^ d->entry)) {
                refuse_stranger(d->slabs, object, entry);
                return;
        }
        stook_slabs_index(d->slabs, stook_entry_offset(entry, (uintptr_t)object), &interior);
        refuse(d->slabs, STOOK_FAULT_INTERIOR, object, stook_slab_of(stook_entry_span(entry)),
               interior ? NULL : BEHIND);
}

/* Pass one: where the objects of a run lie. */
static STOOK_NOINLINE void look_up(struct drain *d, size_t n, void *const *objects)
{
        /* Copies stay in registers. */
        const struct stook_range range = stook_pagemap_range();
        const uint64_t ours = d->entry, magic = d->slabs->magic;
        const uint32_t count = d->slabs->objects;

        for (size_t i = 0; i < n; i++) {
                uintptr_t addr = (uintptr_t)objects[i];
                uint64_t entry = stook_pagemap_get_in(&range, addr) ^ ours;
                struct stook_span *span = stook_entry_span(entry);
                bool interior;
                uint32_t index = stook_index_by_magic(magic, stook_entry_offset(entry, addr),
                                                      &interior);

                if (STOOK_UNLIKELY(stook_entry_cache(entry)) || STOOK_UNLIKELY(interior) ||
                    STOOK_UNLIKELY(index >= count)) {
                        refuse_lookup(d, objects[i], entry ^ ours);
                        d->at[i].place = NO_PLACE(i);
                        continue;
                }
                __builtin_prefetch(&stook_slab_of(span)->parts, 1);
                d->at[i].place = (uint64_t)index << PLACE_INDEX_SHIFT | (uintptr_t)span;
        }
        d->at[n].place = NO_PLACE(n);
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
STOOK_INLINE size_t bundle(struct drain *d, struct stook_free_some *by, size_t i, uint64_t *bits)
{
        place first = d->at[i].place, next;

        *bits = bit_of(first);
        while (!(((next = d->at[++i].place) ^ first) & ~PLACE_BIT_MASK)) {
                if (STOOK_UNLIKELY(*bits & bit_of(next))) {
                        refuse_again(d, next, bit_of(next));
                        by->alone = stook_is_alone();   /* a report may call foreign code */
                }
                *bits |= bit_of(next);
        }
        return i;
}

/*
 * By the bits alone, if the state of the part allows it. @near: the part lies in the descriptor,
 * and no load is needed to find it.
 */
STOOK_INLINE bool put_some(const struct drain *d, const struct stook_free_some *by, bool near,
                           struct stook_span *span, unsigned p, uint64_t bits, const void *object)
{
        const struct stook_slab *slab = stook_slab_of(span);
        uintptr_t parts;

        if (STOOK_LIKELY(near))
                return stook_part_free_some(by, slab, &span->pair[p], d->objects[p], bits, object);
        parts = __atomic_load_n(&slab->parts, __ATOMIC_ACQUIRE);
        return STOOK_LIKELY(stook_parts_have_room(parts, p)) &&
               stook_part_free_some(by, slab, stook_parts_at(parts) + p,
                                    stook_objects_of_part(d->slabs->objects,
                                                          d->slabs->kept_first, p),
                                    bits, object);
}

/* Pass two. Inline: a frame less. */
STOOK_INLINE void put(struct drain *d, size_t n, void *const *objects)
{
        struct stook_free_some by = { d->entry, d->slabs->slab_bytes, stook_is_alone() };
        const bool near = d->near;

        for (size_t i = 0, next; i < n; i = next) {
                place place = d->at[i].place;
                uintptr_t span = place & STOOK_ENTRY_SPAN_MASK;
                unsigned p = (unsigned)(place >> PLACE_INDEX_SHIFT) / STOOK_PART_OBJECTS;
                uint64_t bits;

                next = bundle(d, &by, i, &bits);
                if (STOOK_UNLIKELY(place & 1))
                        continue;
                if (STOOK_LIKELY(put_some(d, &by, near, (struct stook_span *)span, p, bits,
                                          objects[i])))
                        continue;
                put_any(d, span | p, bits, objects[i]);
                by.alone = stook_is_alone();            /* likewise */
        }
}

/* Not inline: its stack is free again when pages are given back. */
static STOOK_NOINLINE void drain(struct stook_slabs *slabs, size_t n, void *const *objects)
{
        struct drain d;

        d.slabs = slabs;
        d.claimed_node = NULL;
        d.claims = 0;
        d.entry = (uint64_t)slabs->cache_index << STOOK_ENTRY_CACHE_SHIFT;
        d.near = stook_slabs_parts_are_near(slabs);
        for (unsigned p = 0; p < STOOK_SPAN_PAIRS; p++)
                d.objects[p] = stook_objects_of_part(slabs->objects, slabs->kept_first, p);
        for (size_t run; n; n -= run, objects += run) {
                run = n < RUN ? n : RUN;
                look_up(&d, run, objects);
                put(&d, run, objects);
                settle_claims(&d);
        }
}

void stook_slab_drain(struct stook_slabs *slabs, size_t n, void *const *objects)
{
        /* slab_partial.c P4. A free that finds a lock taken uses pending, so it need not wait. */
        stook_lock_forbid_waits();
        drain(slabs, n, objects);
        stook_lock_allow_waits();
        stook_pages_purge_excess();
}
