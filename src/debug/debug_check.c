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
        if (about->fault == STOOK_FAULT_WRITE_AFTER_FREE ||
            about->fault == STOOK_FAULT_DOUBLE_FREE) {
                about->allocated_before = or_null(&tail->tracks[2]);
                about->freed_before = or_null(&tail->tracks[3]);
        }
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
        uint64_t first = wrong->fault == STOOK_FAULT_OVERRUN
                                 ? (uint64_t)(wrong->at - (const uint8_t *)object)
                                 : (uint64_t)debug->tail;

        if (debug->tail < 0)
                stook_report_format(text, bytes, STOOK_OVERWRITTEN ", %u bytes before its start",
                                    (uint64_t)-debug->tail);
        else
                stook_report_format(text, bytes, STOOK_OVERWRITTEN ", bytes %u to %u", first,
                                    (uint64_t)debug->tail + sizeof(uint32_t) - 1);
        return text;
}

/* The object before @object in its slab, if an overrun of it reached further; else NULL. */
static const void *overran(const struct stook_debug *debug, const void *object,
                           struct stook_wrong *wrong)
{
        size_t offset;
        const char *slab = slab_of(object, &offset), *before;

        if (!debug->slabs || offset < 2 * debug->slabs->stride)
                return NULL;
        before = slab + offset - debug->slabs->stride;
        if (!stook_slab_object_made(debug->slabs, before) ||
            !stook_debug_is_state(stook_debug_state(debug, before)) ||
            stook_debug_is_whole(debug, before, true, wrong) ||
            wrong->fault != STOOK_FAULT_OVERRUN)
                return NULL;
        return before;
}

STOOK_COLD void stook_debug_report(const struct stook_debug *debug, enum stook_fault fault,
                                   const void *object, const struct stook_wrong *wrong,
                                   const char *detail, bool found)
{
        struct stook_wrong of_other;
        const void *other = wrong && wrong->lost ? overran(debug, object, &of_other) : NULL;
        struct stook_report_about about = {
                .fault = fault, .object = object, .cache_name = debug->name, .detail = detail,
        };
        char text[96];

        if (other) {
                about.fault = STOOK_FAULT_OVERRUN;
                about.object = object = other;
                about.detail = "it reached the state of the object behind it";
                wrong = &of_other;
        }
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
                about.dump_bytes = debug->left + debug->zone_end;
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
                object += stook_entry_span(entry)->use.lead;
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
