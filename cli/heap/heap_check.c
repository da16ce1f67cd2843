/*
 * Purpose: see heap_check.h.
 */
#include <errno.h>
#include <stdlib.h>
#include "cli/heap/heap_check.h"
#include "cli/heap/heap_inside.h"

/* ---- slabs ---- */

static bool check_part(struct heap *h, const struct heap_slab *s, unsigned p)
{
        const struct heap_part *part = &h->parts[s->first + p];
        uint64_t objects = part->objects, free = part->bits & objects;
        const char *what = NULL;

        if (~part->bits & ~objects)
                what = "C1: a bit without an object was cleared";
        else if (part->flags & STOOK_PART_RELEASED)
                what = "C2: a part is released, and its slab lives";
        else if (free && !(part->flags & (STOOK_PART_LISTED | STOOK_PART_CLAIM)))
                what = "C2: free objects of a part are on no list";
        else if (!free && (part->flags & STOOK_PART_LISTED))
                what = "C2: a part without free objects is listed";
        return !what || heap_note(h, what, s->start, s->cache);
}

static bool check_slabs(struct heap *h)
{
        bool room = true;

        for (size_t i = 0; i < h->slab_count && room; i++) {
                const struct heap_slab *s = &h->slabs[i];

                for (unsigned p = 0; p < s->parts && room; p++)
                        room = check_part(h, s, p);
                if (i + 1 < h->slab_count && s->start + s->bytes > h->slabs[i + 1].start)
                        room = room && heap_note(h, "C5: two slabs overlap", s->start, s->cache);
        }
        for (size_t i = 0; i < h->cache_count && room; i++)
                if (h->caches[i].slabs_seen != h->caches[i].stats.slabs)
                        room = heap_note(h, "V7: the count of slabs is not that of descriptors",
                                         h->caches[i].address, h->caches[i].cache.index);
        return room;
}

/* ---- sheaves ---- */

/* NULL: it is an object of the cache, out of its slab. */
static const char *fault_of(const struct heap *h, const struct heap_sheaf *sheaf, uint64_t object)
{
        const struct heap_slab *s = heap_slab_at(h, object);
        const struct heap_cache *c = heap_cache_of(h, sheaf->cache);
        uint64_t offset, index;

        if (!s)
                return "V2: what a sheaf has lies in no slab";
        if (s->cache != sheaf->cache || !c)
                return "V2: a sheaf has an object of another cache";
        offset = object - s->start;
        index = offset / c->cache.slabs.stride;
        if (offset % c->cache.slabs.stride || index >= s->objects)
                return "V2: a sheaf has the inside of an object";
        if (h->parts[s->first + index / STOOK_PART_OBJECTS].bits >> index % STOOK_PART_OBJECTS & 1)
                return "V2: an object in a sheaf is free in its slab, too";
        return NULL;
}

static bool check_sheaf(struct heap *h, const struct heap_sheaf *s)
{
        bool room = true;

        if (!heap_cache_of(h, s->cache))
                return true;            /* of a cache that is being made or destroyed */
        if ((s->word & 0xffff) > s->capacity)
                room = heap_note(h, "V1: a sheaf over its capacity", s->address, s->cache);
        if (s->place == HEAP_BARN && s->size && s->size != s->capacity)
                room = room && heap_note(h, "V4: neither full nor empty, and in a barn",
                                         s->address, s->cache);
        for (unsigned i = 0; i < s->size && room; i++) {
                uint64_t object = h->objects[s->first + i];
                const char *what = fault_of(h, s, object);

                room = !what || heap_note(h, what, object, s->cache);
        }
        return room;
}

/* An object of a sheaf, and the cache of that. */
struct kept {
        uint64_t object;
        uint16_t cache;
};

static int by_object(const void *a, const void *b)
{
        const struct kept *x = a, *y = b;

        return x->object < y->object ? -1 : x->object > y->object;
}

static bool check_twice(struct heap *h)
{
        struct kept *all = malloc((h->object_count + 1) * sizeof *all);
        bool room = all;
        size_t n = 0;

        if (!all)
                return false;
        for (size_t i = 0; i < h->sheaf_count; i++)
                for (unsigned k = 0; k < h->sheaves[i].size; k++)
                        all[n++] = (struct kept){ h->objects[h->sheaves[i].first + k],
                                                  h->sheaves[i].cache };
        qsort(all, n, sizeof *all, by_object);
        for (size_t i = 1; i < n && room; i++)
                if (all[i].object == all[i - 1].object)
                        room = heap_note(h, "V2: a free object is in sheaves twice", all[i].object,
                                         all[i].cache);
        free(all);
        return room;
}

int heap_check(struct heap *h)
{
        bool room = check_slabs(h);

        for (size_t i = 0; i < h->sheaf_count && room; i++)
                room = check_sheaf(h, &h->sheaves[i]);
        return room && check_twice(h) && heap_check_debug(h) ? 0 : -ENOMEM;
}
