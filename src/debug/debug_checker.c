/*
 * Purpose: tells a memory checker (Valgrind or ASan, process/checker.h) what becomes of the objects
 * of a cache with the mode V. Where there is a checker, all caches without another mode have it. So
 * the checker finds a use after free, an overrun and a leak, as with its own malloc.
 * Place: called by debug_object.c at each step of an object.
 *
 * Closed bytes are those that the checker reports an access to: the red zones, what the user did
 * not ask for, and a free object. The words of other layers and the tail are open, because the
 * library reads and writes them at any time. An object of a type-stable cache stays open for ever:
 * readers look at it when it is free.
 * Concurrency: as debug_modes.h I2. An object is closed while it has no user, and opened by the
 *  thread that hands it out.
 */
#include "debug/debug_inside.h"
#include "process/checker.h"

static bool tells(const struct stook_debug *debug)
{
        return STOOK_UNLIKELY(debug->flags & STOOK_DEBUG_V);
}

static void close_between(const void *object, size_t from, size_t to)
{
        stook_checker_close((const char *)object + from, to - from);
}

void stook_debug_open(const struct stook_debug *debug, void *object)
{
        if (stook_checker_is_on())
                stook_checker_open((char *)object - debug->left, debug->slabs->stride);
}

void stook_debug_close(const struct stook_debug *debug, void *object)
{
        if (!tells(debug))
                return;
        stook_checker_close((char *)object - debug->left, debug->left);
        if (debug->closes)
                close_between(object, 0, debug->words);
        close_between(object, debug->words_end, debug->tail);
        close_between(object, debug->tail + STOOK_TAIL_BYTES, debug->slabs->stride);
}

void stook_debug_close_large(const struct stook_debug *debug, void *object)
{
        if (tells(debug))
                close_between(object, 0, debug->tail);
}

/* Bytes that are open. The checkers want one at least, so malloc(0) has one. */
static size_t usable(size_t requested)
{
        return requested ? requested : 1;
}

static size_t usable_now(const struct stook_debug *debug, const void *object)
{
        return usable(stook_debug_bytes(debug, object));
}

void stook_debug_tell_alloc(const struct stook_debug *debug, void *object)
{
        if (tells(debug) && debug->closes)
                stook_checker_begin(object, usable_now(debug, object), debug->ctor);
}

void stook_debug_tell_resize(const struct stook_debug *debug, void *object, size_t to)
{
        if (tells(debug) && debug->closes)
                stook_checker_resize(object, usable_now(debug, object), usable(to));
}

void stook_debug_tell_free(const struct stook_debug *debug, void *object)
{
        if (tells(debug) && debug->closes)
                stook_checker_end(object, usable_now(debug, object));
}
