/*
 * Purpose: what a report says of a debugged object that is at fault, and a check of all objects.
 * Place: called by debug_object.c for single objects; by cache and inspect for all objects of a
 *  cache, and for what is known of one.
 * Concurrency: all objects: quiescent.
 */
#include "debug/debug_inside.h"
#include "pages/pagemap.h"
#include "pages/span.h"

/* ---- reports ---- */

/* Is there a thread in it? Tracks begin as zeros. */
static const struct stook_report_track *or_null(const struct stook_report_track *track)
{
        return track->thread ? track : NULL;
}

void stook_debug_add_tracks(const struct stook_debug *debug, const void *object,
                            struct stook_report_about *about)
{
        const struct stook_debug_tail *tail = stook_tail(debug, object);

        about->object_bytes = debug->object_bytes;
        if (!stook_debug_is_state(stook_debug_state(debug, object)))
                return;
        if (stook_debug_bytes(debug, object) <= debug->object_bytes)
                about->requested_bytes = stook_debug_bytes(debug, object);
        if (!(debug->flags & STOOK_CACHE_STORE_USER))
                return;
        about->allocated = or_null(&tail->tracks[0]);
        /* A free by RCU that was undone has left its track. */
        if (stook_debug_state(debug, object) != STOOK_STATE_LIVE)
                about->freed = or_null(&tail->tracks[1]);
}

static const void *slab_of(const void *object, size_t *offset)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)object);
        uintptr_t start = stook_entry_span(entry)->start;

        *offset = (uintptr_t)object - start;
        return (const void *)start;
}

/* An overrun wrote all bytes up to the state. Anything else may have written the state alone. */
static const char *tell_lost(const struct stook_debug *debug, const void *object,
                             const struct stook_wrong *wrong, char *text, size_t bytes)
{
        size_t first = wrong->fault == STOOK_FAULT_OVERRUN
                               ? (size_t)(wrong->at - (const uint8_t *)object) : debug->tail;

        stook_report_format(text, bytes, STOOK_OVERWRITTEN ", bytes %u to %u", (uint64_t)first,
                            (uint64_t)(debug->tail + sizeof(uint32_t) - 1));
        return text;
}

STOOK_COLD void stook_debug_report(const struct stook_debug *debug, enum stook_fault fault,
                                   const void *object, const struct stook_wrong *wrong,
                                   const char *detail, bool found)
{
        struct stook_report_about about = {
                .fault = fault, .object = object, .cache_name = debug->name, .detail = detail,
        };
        char text[96];

        about.slab = slab_of(object, &about.offset);
        if (wrong && wrong->lost)
                about.detail = tell_lost(debug, object, wrong, text, sizeof(text));
        if (!debug->slabs || stook_slab_object_made(debug->slabs, object))
                stook_debug_add_tracks(debug, object, &about);
        /* With V a checker watches these bytes: it would report that this function reads them. */
        if (wrong && wrong->at && !(debug->flags & STOOK_DEBUG_V)) {
                about.bad = wrong->at;
                about.expected = wrong->expected;
                about.found = *wrong->at;
                about.dump = (const uint8_t *)object - debug->left;
                about.dump_bytes = debug->left + debug->tail;
        }
        if (found)
                stook_report_about_found(&about);
        else
                stook_report_about(&about);
}

void stook_debug_describe(const struct stook_debug *debug, const void *pointer,
                          struct stook_report_about *about)
{
        uint64_t entry = stook_pagemap_get((uintptr_t)pointer);
        uint32_t offset;
        const char *object = (const char *)stook_entry_span(entry)->start;
        bool interior;

        if (!debug->slabs) {
                stook_debug_add_tracks(debug, object, about);
                return;
        }
        offset = stook_entry_offset(entry, (uintptr_t)pointer);
        object += (size_t)stook_slabs_index(debug->slabs, offset, &interior) * debug->slabs->stride;
        if (stook_slab_object_made(debug->slabs, object))
                stook_debug_add_tracks(debug, object, about);
}

/* ---- all objects of a cache ---- */

struct visit {
        const struct stook_debug *debug;
        int faults;
};

static void check_object(void *object, void *slab, bool out, void *data)
{
        struct visit *visit = data;
        struct stook_wrong wrong;

        (void)slab;
        if (stook_debug_is_whole(visit->debug, object, out, &wrong))
                return;
        visit->faults++;
        stook_debug_report(visit->debug, wrong.fault, object, &wrong,
                           wrong.at ? "found by a check of all objects" : STOOK_OVERWRITTEN, true);
}

int stook_debug_validate(const struct stook_debug *debug)
{
        struct visit visit = { .debug = debug };

        stook_slabs_for_each_made(debug->slabs, check_object, &visit);
        return visit.faults;
}

int stook_debug_validate_large(const struct stook_debug *debug, void *object)
{
        struct visit visit = { .debug = debug };

        check_object(object, NULL, true, &visit);
        return visit.faults;
}
