/*
 * Purpose: look at all slabs of a cache: which objects are out, and whether all states are sound.
 * Place: called by cache (destroy, misuse) and inspect (validation). Full slabs are on no list, so
 * the walks go over all descriptors there are.
 * Concurrency: quiescent, but for stook_slab_object_out and stook_slab_object_made.
 * Checks:
 *  C1 Bits without an object are set.
 *  C2 A part with free objects is listed, or claimed and entered in `pending`. A part without is
 *     neither listed nor claimed.
 *  C3 `listed` has the parts that say LISTED; a slab is on the list exactly if there is such a
 *     part.
 *  C4 A list has as many slabs as its count says, and those that know that they are on it.
 */
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "report/report.h"
#include "slab/slab_inside.h"

/* Where an object lies in its slab: the part, and the bit there. */
struct place {
        struct stook_slab *slab;
        unsigned part, bit;
};

/* False: no object of these slabs starts there. */
static bool find_place(const struct stook_slabs *slabs, const void *object, struct place *place)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        uint32_t index;
        bool interior;

        if (!stook_entry_cache(entry) || stook_entry_cache(entry) != slabs->cache_index)
                return false;
        place->slab = stook_slab_of(stook_entry_span(entry));
        index = stook_slabs_index(slabs, stook_entry_offset(entry, (uintptr_t)object), &interior);
        place->part = index / STOOK_PART_OBJECTS;
        place->bit = index % STOOK_PART_OBJECTS;
        return !interior && index < place->slab->objects;
}

bool stook_slab_object_out(struct stook_slabs *slabs, const void *object)
{
        struct place at;
        uintptr_t parts;

        if (!find_place(slabs, object, &at))
                return false;
        /* The slab may be released meanwhile: then it has no parts. */
        parts = __atomic_load_n(&at.slab->parts, __ATOMIC_ACQUIRE);
        return stook_parts_have_room(parts, at.part) &&
               (stook_part_objects(at.slab, at.part) &
                ~__atomic_load_n(&stook_parts_at(parts)[at.part].hi, __ATOMIC_ACQUIRE)) >> at.bit &
                       1;
}

bool stook_slab_object_made(const struct stook_slabs *slabs, const void *object)
{
        struct place at;
        unsigned made_at;
        uintptr_t parts;

        if (!find_place(slabs, object, &at))
                return false;
        /* As above. The bits lie behind as many pairs as there is room for. */
        parts = __atomic_load_n(&at.slab->parts, __ATOMIC_ACQUIRE);
        made_at = at.slab->made_at;
        if (made_at != 1u << (parts & STOOK_PARTS_ROOM) || !stook_parts_have_room(parts, at.part))
                return false;
        return __atomic_load_n((const uint64_t *)(stook_parts_at(parts) + made_at) + at.part,
                               __ATOMIC_RELAXED) >> at.bit & 1;
}

/* ---- all slabs of a cache ---- */

struct visit {
        struct stook_slabs *slabs;
        void (*slab)(struct visit *visit, struct stook_slab *slab);
        size_t objects;                 /* objects_out */
        void (*each)(void *object, void *slab, void *data);
        void (*each_made)(void *object, void *slab, bool out, void *data);
        void  *data;
        int    faults;                  /* validate */
        uint32_t listed[STOOK_NODES_MAX]; /* likewise: slabs that know that they are listed */
};

static void visit_span(struct stook_span *span, void *data)
{
        struct visit *visit = data;

        /* Acquire: slabs of other caches come and go meanwhile. */
        if (__atomic_load_n(&span->kind, __ATOMIC_ACQUIRE) == STOOK_SPAN_SLAB &&
            __atomic_load_n(&stook_slab_of(span)->slabs, __ATOMIC_RELAXED) == visit->slabs)
                visit->slab(visit, stook_slab_of(span));
}

static void visit_all(struct visit *visit)
{
        if (stook_slabs_count(visit->slabs))
                stook_meta_span_for_each(visit_span, visit);
}

static void add_out(struct visit *visit, struct stook_slab *slab)
{
        visit->objects += slab->objects - slab->kept_first - stook_slab_free_objects(slab);
}

size_t stook_slabs_objects_out(struct stook_slabs *slabs)
{
        struct visit visit = { .slabs = slabs, .slab = add_out };

        visit_all(&visit);
        return visit.objects;
}

static void name_out(struct visit *visit, struct stook_slab *slab)
{
        size_t stride = slab->slabs->stride;
        char *base = stook_slab_base(slab);

        for (unsigned p = 0; p < slab->part_count; p++) {
                uint64_t out = stook_part_objects(slab, p) & ~stook_part_bits(slab, p);
                char *part = base + p * STOOK_PART_OBJECTS * stride;

                for (; out; out &= out - 1)
                        visit->each(part + (unsigned)__builtin_ctzll(out) * stride, base,
                                    visit->data);
        }
}

void stook_slabs_for_each_out(struct stook_slabs *slabs,
                              void (*each)(void *object, void *slab, void *data), void *data)
{
        struct visit visit = { .slabs = slabs, .slab = name_out, .each = each, .data = data };

        visit_all(&visit);
}

static void name_made(struct visit *visit, struct stook_slab *slab)
{
        size_t stride = slab->slabs->stride;
        char *base = stook_slab_base(slab);

        for (unsigned p = 0; stook_slab_made(slab) && p < slab->part_count; p++) {
                uint64_t made = __atomic_load_n(&stook_slab_made(slab)[p], __ATOMIC_RELAXED);
                uint64_t free = stook_part_bits(slab, p);
                char *part = base + p * STOOK_PART_OBJECTS * stride;

                for (; made; made &= made - 1)
                        visit->each_made(part + (unsigned)__builtin_ctzll(made) * stride, base,
                                         !(made & -made & free), visit->data);
        }
}

void stook_slabs_for_each_made(struct stook_slabs *slabs,
                               void (*each)(void *object, void *slab, bool out, void *data),
                               void *data)
{
        struct visit visit = { .slabs = slabs, .slab = name_made, .each_made = each,
                               .data = data };

        visit_all(&visit);
}

/* ---- validation ---- */

static void fault(struct visit *visit, const struct stook_slab *slab, const char *detail)
{
        const void *base = slab ? stook_slab_base(slab) : NULL;

        visit->faults++;
        stook_report_found(STOOK_FAULT_CORRUPT, base, visit->slabs->name, base, 0, detail);
}

static void check_part(struct visit *visit, struct stook_slab *slab, unsigned p)
{
        struct stook_pair part = stook_pair_read(stook_slab_part(slab, p));
        uint64_t flags = stook_part_flags(part);
        bool pending = slab->pending >> p & 1;

        uint64_t objects = stook_part_objects(slab, p);

        if (~part.hi & ~objects)
                fault(visit, slab, "C1: a bit without an object was cleared");
        if ((flags & STOOK_PART_RELEASED) || (flags & STOOK_PART_CLAIM ? !pending : pending))
                fault(visit, slab, "C2: a claim without an owner, or released and not given back");
        else if (part.hi & objects ? !flags : flags & STOOK_PART_LISTED)
                fault(visit, slab, "C2: free objects and no list, or the other way round");
        if ((flags & STOOK_PART_LISTED) != (slab->listed >> p & 1))
                fault(visit, slab, "C3: a part's flag LISTED and its bit in `listed` differ");
}

static void check_slab(struct visit *visit, struct stook_slab *slab)
{
        for (unsigned p = 0; p < slab->part_count; p++)
                check_part(visit, slab, p);
        if (!slab->listed != !stook_list_linked(&stook_slab_span(slab)->list))
                fault(visit, slab, "C3: `listed` and the slab's place in the list differ");
        if (slab->listed)
                visit->listed[slab->node]++;
}

static void check_list(struct visit *visit, unsigned n_node)
{
        const struct stook_slabs_node *node = &visit->slabs->node[n_node];
        uint32_t on_list = 0, listed = visit->listed[n_node];

        stook_list_for_each(e, &node->list) {
                struct stook_slab *slab = stook_slab_listed_at(e);

                if (on_list++ > listed || e->next->prev != e)
                        break;
                if (slab->slabs != visit->slabs || !slab->listed || stook_slab_node(slab) != node)
                        fault(visit, slab, "C4: on the list, but does not know");
        }
        if (on_list != listed || on_list != node->partial)
                fault(visit, NULL, "C4: the list and its count differ");
}

int stook_slabs_validate(struct stook_slabs *slabs)
{
        struct visit visit = { .slabs = slabs, .slab = check_slab };

        visit_all(&visit);
        for (unsigned n = 0; n < stook_os_node_count(); n++)
                check_list(&visit, n);
        return visit.faults;
}
