/*
 * Purpose: where the parts of a debugged object lie (debug_modes.h).
 * Place: called by cache when a cache is made.
 */
#include "debug/debug_inside.h"
#include "os/os.h"

#define ZONE_MOST  32                   /* of the left one, where the stride has room */

static size_t round_up(size_t n, size_t to)
{
        return (n + to - 1) & ~(to - 1);
}

static size_t pages_of(size_t bytes, size_t align)
{
        return round_up(round_up(bytes, align), stook_os_page_bytes());
}

/* Those of V have no content: they are closed. */
static bool has_zones(uint64_t flags)
{
        return flags & (STOOK_CACHE_RED_ZONE | STOOK_DEBUG_V);
}

/* Bytes of zones and the tail, without the room that alignment leaves. */
static size_t behind(uint64_t flags)
{
        return (has_zones(flags) ? 2 * stook_debug_zone_bytes() : 0) + stook_tail_bytes(flags);
}

/* O: as the kernel's letter, which drops the modes that need room. */
static uint64_t without_more_pages(uint64_t flags, size_t words_end, size_t align)
{
        if (!(flags & STOOK_DEBUG_O) ||
            pages_of(words_end + behind(flags), align) == pages_of(words_end, align))
                return flags;
        return flags & ~(uint64_t)(STOOK_CACHE_RED_ZONE | STOOK_CACHE_STORE_USER |
                                   STOOK_CACHE_POISON);
}

size_t stook_debug_init(struct stook_debug *debug, const struct stook_debug_args *args)
{
        size_t words_end = round_up(args->words_end, 8), before, room, most;
        uint64_t flags = without_more_pages(args->flags, words_end, args->align);
        bool zones = has_zones(flags);

        if (flags)
                stook_debug_note_process();
        *debug = (struct stook_debug){
                .flags = flags, .slabs = args->slabs, .name = args->name,
                .object_bytes = args->object_bytes, .words = args->words,
                .words_end = words_end, .hidden = args->hidden,
                .zone_end = words_end + (zones ? stook_debug_zone_bytes() : 0),
                .accounted = args->accounted,
                .poisons = (flags & STOOK_CACHE_POISON) && !args->stable && !args->ctor,
                .closes = (flags & STOOK_DEBUG_V) && !args->stable,
                .ctor = args->ctor, .ctor_data = args->ctor_data, .dtor = args->dtor,
        };
        before = round_up(words_end + behind(flags), args->align) - debug->zone_end;
        debug->tail = -(ptrdiff_t)before;
        room = before - stook_tail_bytes(flags);
        most = stook_debug_zone_bytes() > ZONE_MOST ? stook_debug_zone_bytes() : ZONE_MOST;
        debug->left = (uint32_t)(!zones ? 0 : room < most ? room : most);
        return behind(flags);
}

size_t stook_debug_large_room(uint64_t flags)
{
        return flags ? stook_debug_zone_bytes() + stook_tail_bytes(flags) : 0;
}

void stook_debug_init_large(struct stook_debug *debug, uint64_t flags, const void *made,
                            size_t requested, size_t bytes, size_t lead)
{
        size_t end = lead ? bytes - lead : bytes - stook_tail_bytes(flags);

        *debug = (struct stook_debug){
                .flags = flags, .name = STOOK_DEBUG_LARGE, .words = end, .words_end = end,
                .zone_end = end, .tail = lead ? -(ptrdiff_t)lead : (ptrdiff_t)end,
                .left = lead ? (uint32_t)(lead - stook_tail_bytes(flags)) : 0,
                .poisons = flags & STOOK_CACHE_POISON,
                .closes = flags & STOOK_DEBUG_V,
        };
        if (made)
                requested = stook_debug_is_state(stook_debug_state(debug, made))
                                    ? stook_debug_bytes(debug, made) : end;
        debug->object_bytes = !requested ? 1 : requested < end ? requested : end;
}
