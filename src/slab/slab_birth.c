/*
 * Purpose: a source of objects: its geometry; a slab's birth from a span, and its end.
 * Place: called by cache (init), fill (birth), partial lists (release); calls pages.
 *
 * Geometry: pages of a slab are touched only when their objects are handed out, so a larger slab costs address
 * space, not memory, and saves births: up to 64 KiB where fewer objects would fit than the maker of the source wants,
 * room for two objects always, and 32 KiB at least; 8 or 16 where few objects are wanted, so that slabs become empty
 * (a descriptor of 128 bytes is 1.6 % of 8 KiB, so tiny objects, of which many fit even there, get 16). From there upwards the smallest slab is taken that wastes at most
 * 1/16 at its end, else at most 1/8, and so on. When such a span cannot be had, the smallest that holds one object.
 *
 * Invariants:
 *  B1 the pagemap says "slab" only from before the first object is handed out until after the last came back.
 *  B2 an object's memory is not touched, not even read, before the object is handed out.
 */
#include <errno.h>
#include <stook/cache.h>
#include <stook/layout.h>

#include "base/thread.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "slab/slab_partial.h"

#define SLAB_BYTES_MAX ((size_t)STOOK_SLAB_MAP_PAGES_MAX << STOOK_MAP_SHIFT)
#define SLAB_BYTES_LOW  ((size_t)32 << 10)      /* see bench/micro: below it births weigh on fills of small objects */
#define SLAB_BYTES_FEW  ((size_t)8 << 10)       /* the same for who wants few objects */
#define TINY            64                      /* slots below this get twice that */
#define SLAB_BYTES_WANT ((size_t)64 << 10)
#define OBJECTS_LEAST 2
/* Bytes of empty slabs that a node keeps for a source: two slabs of the usual size. Arbitrary. */
#define EMPTY_BYTES_KEPT ((size_t)128 << 10)

static size_t round_up(size_t n, size_t to)
{
        return (n + to - 1) / to * to;
}

static size_t smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* ---- geometry ---- */

static size_t choose_bytes(size_t slot, size_t wanted, size_t page)
{
        size_t least = smaller(slot * wanted, SLAB_BYTES_WANT);
        size_t low = wanted > STOOK_SLAB_OBJECTS_FEW ? SLAB_BYTES_LOW : slot < TINY ? 2 * SLAB_BYTES_FEW : SLAB_BYTES_FEW;

        if (least < low)
                least = low;
        if (least < slot * OBJECTS_LEAST)
                least = slot * OBJECTS_LEAST;
        least = smaller(round_up(least, page), SLAB_BYTES_MAX);
        for (size_t part = 16; part > 1; part /= 2)
                for (size_t bytes = least; bytes <= smaller(2 * least, SLAB_BYTES_MAX); bytes += page)
                        if (bytes % slot <= bytes / part)
                                return bytes;
        return least;
}

static uint32_t log2_floor(size_t n)
{
        return 63 - (uint32_t)__builtin_clzll(n);
}

static void choose(struct stook_slabs *slabs, const struct stook_slabs_args *args)
{
        size_t payload = round_up(args->object_size, 8);
        size_t keep;

        if (args->ctor || args->link_behind) {
                slabs->link_offset = (uint32_t)payload;
                payload += 8;
        } else {
                slabs->link_offset = (uint32_t)(args->object_size / 2 & ~(size_t)7);
        }
        slabs->align = (uint32_t)args->align;
        slabs->object_size = (uint32_t)args->object_size;
        slabs->slot_size = (uint32_t)round_up(payload, args->align);
        slabs->magic = UINT64_MAX / slabs->slot_size + 1;
        slabs->slab_bytes = (uint32_t)choose_bytes(slabs->slot_size, args->slab_objects ? args->slab_objects : STOOK_SLAB_OBJECTS_FEW,
                                                   stook_os_page_bytes());
        slabs->objects = (uint32_t)smaller(slabs->slab_bytes / slabs->slot_size, STOOK_SLAB_OBJECTS_MAX);
        keep = log2_floor(args->object_size) / 2;
        keep = keep < 5 ? 5 : smaller(keep, 10);
        slabs->min_partial = args->keep_none ? 0 : (uint32_t)smaller(keep, EMPTY_BYTES_KEPT / slabs->slab_bytes);
        /* Only shrink and destroy give up slabs then: they may ask for a grace period, and frees in handlers may not. */
        if (args->give)
                slabs->min_partial = INT32_MAX;
}

/* ---- random order ---- */

/* Fisher-Yates; the second half of the memory holds each object's position. */
static bool make_sequence(struct stook_slabs *slabs)
{
        uint32_t n = slabs->objects;
        uint16_t *sequence = slabs->sequence_memory;

        if (slabs->sequence_room < n) {
                /* Doubling at least: a source made anew again and again leaves no more than it has. */
                uint32_t room = n < 2 * slabs->sequence_room ? 2 * slabs->sequence_room : n;

                sequence = stook_meta_bump((size_t)room * 2 * sizeof(*sequence), 0);
                if (!sequence)
                        return false;
                slabs->sequence_memory = sequence;
                slabs->sequence_room = room;
        }
        for (uint32_t i = 0; i < n; i++) {
                /* The high half times i + 1, as D. Lemire, "Fast random integer generation in an interval", 2019. */
                uint32_t at = (uint32_t)((stook_os_random() >> 32) * (i + 1) >> 32);

                sequence[i] = sequence[at];
                sequence[at] = (uint16_t)i;
        }
        for (uint32_t i = 0; i < n; i++)
                sequence[n + sequence[i]] = (uint16_t)i;
        slabs->sequence = sequence;
        return true;
}

/* ---- the source ---- */

static bool make_nodes(struct stook_slabs *slabs)
{
        unsigned nodes = stook_os_node_count();

        if (!slabs->node)
                slabs->node = stook_meta_bump(nodes * sizeof(*slabs->node), STOOK_CACHELINE);
        if (!slabs->node)
                return false;
        for (unsigned i = 0; i < nodes; i++) {
                stook_list_init(&slabs->node[i].list);
                slabs->node[i].partial = 0;
        }
        return true;
}

int stook_slabs_init(struct stook_slabs *slabs, const struct stook_slabs_args *args)
{
        if (!args->object_size || args->object_size > STOOK_OBJECT_MAX || args->align < 8 ||
            (args->align & (args->align - 1)) || args->align > stook_os_page_bytes() ||
            !args->cache_index || args->cache_index >= STOOK_CACHES_MAX)
                return -EINVAL;
        if (!make_nodes(slabs))
                return -ENOMEM;
        choose(slabs, args);
        slabs->cache_index = args->cache_index;
        slabs->reserved = 0;
        slabs->ctor = args->ctor;
        slabs->ctor_data = args->ctor_data;
        slabs->name = args->name;
        slabs->counters = args->counters;
        slabs->give = args->give;
        slabs->sequence = NULL;
        if (args->random_order && !make_sequence(slabs))
                return -ENOMEM;
        return 0;
}

/* ---- slabs ---- */

struct stook_slab *stook_slab_birth(struct stook_slabs *slabs, unsigned node)
{
        size_t least = round_up(slabs->slot_size, stook_os_page_bytes());
        struct stook_span *span = stook_span_take(node, slabs->slab_bytes, 0);
        struct stook_slab *slab;

        if (STOOK_UNLIKELY(!span)) {
                if (least < slabs->slab_bytes)
                        span = stook_span_take(node, least, 0);
                if (!span)
                        return NULL;
                stook_count(slabs->counters, STOOK_STAT_order_fallback, 1);
        }
        slab = stook_slab_of(span);
        slab->base = (char *)span->start;
        slab->key = stook_os_random();
        slab->objects = slabs->objects;
        if (STOOK_UNLIKELY(span->bytes < slabs->slab_bytes))
                slab->objects = (uint32_t)(span->bytes / slabs->slot_size);
        slab->start = slabs->sequence ? (uint32_t)(stook_os_random() % slab->objects) : 0;
        slab->slabs = slabs;
        slab->owner = stook_self;               /* before the descriptor says what it is: see slab_fork.c */
        __atomic_store_n(&slab->word, stook_word(STOOK_PLACE_NONE, 0, 0, STOOK_SLAB_DETACHED), __ATOMIC_RELAXED);
        stook_pagemap_set_slab(span, slabs->cache_index);               /* B1 */
        __atomic_store_n(&span->kind, STOOK_SPAN_SLAB, __ATOMIC_RELEASE);
        __atomic_fetch_add(&slabs->node[span->node].slabs, 1, __ATOMIC_RELAXED);
        stook_count(slabs->counters, STOOK_STAT_alloc_slab, 1);
        return slab;
}

void stook_slab_release(struct stook_slab *slab)
{
        struct stook_slabs *slabs = slab->slabs;
        struct stook_span *span = stook_slab_span(slab);

        __atomic_store_n(&span->kind, STOOK_SPAN_TAKEN, __ATOMIC_RELEASE);      /* first: see slab_fork.c */
        stook_count(slabs->counters, STOOK_STAT_free_slab, 1);
        __atomic_fetch_sub(&slabs->node[span->node].slabs, 1, __ATOMIC_RELAXED);
        stook_pagemap_clear_slab(span);                                 /* B1 */
        if (STOOK_UNLIKELY(slabs->give != NULL))
                slabs->give(slabs, span);
        else
                stook_span_give(span);
}

size_t stook_slabs_count(const struct stook_slabs *slabs)
{
        size_t sum = 0;

        for (unsigned i = 0; i < stook_os_node_count(); i++)
                sum += __atomic_load_n(&slabs->node[i].slabs, __ATOMIC_RELAXED);
        return sum;
}
