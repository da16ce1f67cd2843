/*
 * Purpose: look at all slabs of a cache: which objects are out, which were constructed.
 * Place: called by cache (destroy, misuse), malloc, watch, debug, walk and inspect. Full slabs are
 * on no list, so the walks go over all descriptors there are.
 * Concurrency: quiescent, but for stook_slab_object_out and stook_slab_object_made.
 */
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
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
        void (*each)(struct stook_slab *slab, void *data);
        void  *data;
};

static void visit_span(struct stook_span *span, void *data)
{
        const struct visit *visit = data;

        /* Acquire: slabs of other caches come and go meanwhile. */
        if (__atomic_load_n(&span->kind, __ATOMIC_ACQUIRE) == STOOK_SPAN_SLAB &&
            __atomic_load_n(&stook_slab_of(span)->slabs, __ATOMIC_RELAXED) == visit->slabs)
                visit->each(stook_slab_of(span), visit->data);
}

void stook_slabs_for_each(struct stook_slabs *slabs,
                          void (*each)(struct stook_slab *slab, void *data), void *data)
{
        struct visit visit = { slabs, each, data };

        if (stook_slabs_count(slabs))
                stook_meta_span_for_each(visit_span, &visit);
}

static void add_out(struct stook_slab *slab, void *data)
{
        *(size_t *)data += slab->objects - slab->kept_first - stook_slab_free_objects(slab);
}

size_t stook_slabs_objects_out(struct stook_slabs *slabs)
{
        size_t objects = 0;

        stook_slabs_for_each(slabs, add_out, &objects);
        return objects;
}

/* What is called for objects: the one or the other. */
struct names {
        void (*out)(void *object, void *slab, void *data);
        void (*made)(void *object, void *slab, bool out, void *data);
        void  *data;
};

static void name_objects(struct stook_slab *slab, void *data)
{
        const struct names *names = data;
        const uint64_t *made = stook_slab_made(slab);
        uint32_t stride = slab->slabs->stride;

        for (unsigned p = 0; p < slab->part_count; p++) {
                uint64_t out = stook_part_objects(slab, p) & ~stook_part_bits(slab, p), left = out;

                if (names->made)
                        left = made ? __atomic_load_n(&made[p], __ATOMIC_RELAXED) : 0;
                for (; left; left &= left - 1) {
                        void *object = stook_slab_object(slab, stride, p,
                                                         (unsigned)__builtin_ctzll(left));

                        if (names->made)
                                names->made(object, stook_slab_base(slab), left & -left & out,
                                            names->data);
                        else
                                names->out(object, stook_slab_base(slab), names->data);
                }
        }
}

void stook_slabs_for_each_out(struct stook_slabs *slabs,
                              void (*each)(void *object, void *slab, void *data), void *data)
{
        stook_slabs_for_each(slabs, name_objects, &(struct names){ .out = each, .data = data });
}

void stook_slabs_for_each_made(struct stook_slabs *slabs,
                               void (*each)(void *object, void *slab, bool out, void *data),
                               void *data)
{
        stook_slabs_for_each(slabs, name_objects, &(struct names){ .made = each, .data = data });
}
