/*
 * Purpose: the objects of caches with debug modes: are their red zones, their poison and their
 * states as src/debug left them? See heap_check.h.
 * A copy of each slab is looked at by the library's own rules (src/debug/debug_bytes.c). They read
 * what struct stook_debug says, so that is checked first: it comes from the process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "cli/heap/heap_inside.h"
#include "debug/debug_inside.h"

/* Does all that the rules read of an object lie in its stride, or in the one before it? */
static bool is_sound(const struct stook_debug *debug, const struct stook_slabs *slabs)
{
        return debug->object_bytes && debug->object_bytes <= debug->words &&
               debug->words <= debug->words_end && debug->words_end <= debug->zone_end &&
               (!debug->hidden ||
                (debug->hidden >= debug->words && debug->hidden <= debug->zone_end)) &&
               debug->zone_end < slabs->stride &&
               debug->tail == (ptrdiff_t)debug->zone_end - (ptrdiff_t)slabs->stride &&
               debug->left + STOOK_TAIL_BYTES <= slabs->stride - debug->zone_end &&
               !(debug->words % 8) && !(debug->zone_end % 8) && !(slabs->stride % 8) &&
               (!debug->accounted || debug->words_end - debug->words >= sizeof(uint64_t)) &&
               debug->slabs;
}

static const char *name_of(enum stook_fault fault)
{
        switch (fault) {
        case STOOK_FAULT_OVERRUN:
                return "overrun";
        case STOOK_FAULT_UNDERRUN:
                return "underrun";
        case STOOK_FAULT_WRITE_AFTER_FREE:
                return "write after free";
        default:
                return STOOK_OVERWRITTEN;
        }
}

/*
 * One that a report isolated, or that a call has in its hands at this moment. The red zone before
 * it tells whether it was free.
 */
static bool isolated_is_whole(const struct stook_debug *debug, const unsigned char *object,
                              struct stook_wrong *wrong)
{
        if (!debug->left)
                return true;
        return object[-1] == STOOK_BYTE_FREE ? stook_debug_free_is_whole(debug, object, wrong)
                                             : stook_debug_live_is_whole(debug, object, true,
                                                                         wrong);
}

/*
 * @copy: of the slab. Whether the object is out of it was read at another moment, so an object of a
 * process that runs may have any state.
 */
static bool check_object(struct heap *h, const struct stook_debug *debug, const struct heap_slab *s,
                         const unsigned char *copy, size_t offset)
{
        const unsigned char *object = copy + offset;
        struct stook_wrong wrong;

        if (stook_debug_is_whole(debug, object, true, &wrong) &&
            (stook_debug_state(debug, object) != STOOK_STATE_ISOLATED ||
             isolated_is_whole(debug, object, &wrong)))
                return true;
        if (!heap_note(h, name_of(wrong.fault), s->start + offset, s->cache))
                return false;
        if (wrong.at)
                snprintf(h->oddities[h->oddity_count - 1].detail, sizeof h->oddities->detail,
                         "byte %td: expected %02x, found %02x", wrong.at - object, wrong.expected,
                         *wrong.at);
        return true;
}

/* The marks of objects that were made; all others are of no state yet. False: not to be had. */
static bool read_made(struct heap *h, const struct heap_slab *s, uint64_t made[STOOK_SLAB_PARTS])
{
        struct stook_span span;
        const struct stook_slab *slab = stook_slab_of(&span);

        return !memory_read(h->memory, s->descriptor, &span, sizeof span) && slab->made_at &&
               !heap_copy(h, stook_slab_parts(slab) + slab->made_at, made,
                          s->parts * sizeof *made);
}

/* What a core lacks was never written: zeros. */
static void copy_slab(struct heap *h, const struct heap_slab *s, unsigned char *copy)
{
        size_t page = h->library->root.page_bytes;

        if (memory_read(h->memory, s->start, copy, s->bytes))
                for (size_t at = 0; at < s->bytes; at += page)
                        memory_read(h->memory, s->start + at, copy + at,
                                    s->bytes - at < page ? s->bytes - at : page);
}

static bool check_slab(struct heap *h, const struct stook_debug *debug, const struct heap_slab *s)
{
        size_t stride = heap_cache_of(h, s->cache)->cache.slabs.stride;
        uint64_t made[STOOK_SLAB_PARTS];
        unsigned char *copy = calloc(1, s->bytes);
        bool room = copy;

        if (room && read_made(h, s, made)) {
                copy_slab(h, s, copy);
                /* The first object is kept back: the tail of each lies in the one before it. */
                for (unsigned i = 1; i < s->objects && room; i++)
                        if (made[i / STOOK_PART_OBJECTS] >> i % STOOK_PART_OBJECTS & 1)
                                room = check_object(h, debug, s, copy, i * stride);
        }
        free(copy);
        return room;
}

bool heap_check_debug(struct heap *h)
{
        bool room = true;

        for (size_t i = 0; i < h->slab_count && room; i++) {
                const struct heap_slab *s = &h->slabs[i];
                const struct heap_cache *c = heap_cache_of(h, s->cache);
                struct stook_debug debug;

                if (c->cache.debug_modes && c->seldom.debug &&
                    !heap_copy(h, c->seldom.debug, &debug, sizeof debug))
                        room = is_sound(&debug, &c->cache.slabs)
                                       ? check_slab(h, &debug, s)
                                       : heap_note(h, "the debug modes of a cache make no sense",
                                                   c->address, s->cache);
        }
        return room;
}
