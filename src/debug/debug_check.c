/*
 * Purpose: the bytes of a debugged object: what they must be in each state, and what a report says
 * of those that are not.
 * Place: called by debug_object.c for single objects; by cache and inspect for all objects of a
 *  cache, and for what is known of one.
 * Concurrency: single objects as debug_modes.h I2; all objects: quiescent.
 */
#include <string.h>

#include "debug/debug_inside.h"
#include "pages/pagemap.h"
#include "pages/span.h"

typedef uint64_t word __attribute__((may_alias, aligned(1)));

/* The first of @bytes that is not @byte; NULL: none. */
static const uint8_t *first_other(const uint8_t *at, size_t bytes, uint8_t byte)
{
        const uint8_t *end = at + bytes;

        for (; end - at >= 8; at += 8)
                if (*(const word *)at != UINT64_C(0x0101010101010101) * byte)
                        break;
        for (; at < end; at++)
                if (*at != byte)
                        return at;
        return NULL;
}

/* ---- red zones ---- */

/* The pieces of the red zone behind an object, around the words of other layers. */
struct piece {
        size_t from, to;
};

/* @bytes are the user's. @hidden: the hidden word is a part of the zone. */
static void right_zone(const struct stook_debug *debug, size_t bytes, bool hidden,
                       struct piece pieces[2])
{
        size_t again = hidden && debug->hidden ? debug->hidden : debug->words_end;

        pieces[0] = (struct piece){ bytes, debug->words };
        pieces[1] = (struct piece){ again, debug->tail };
}

void stook_debug_fill_zones(const struct stook_debug *debug, void *object, size_t bytes,
                            uint8_t byte)
{
        uint8_t *start = object;
        struct piece pieces[2];

        if (!(debug->flags & STOOK_DEBUG_Z))
                return;
        right_zone(debug, bytes, true, pieces);
        memset(start - debug->left, byte, debug->left);
        for (unsigned i = 0; i < 2; i++)
                memset(start + pieces[i].from, byte, pieces[i].to - pieces[i].from);
}

static bool is_wrong(struct stook_wrong *wrong, enum stook_fault fault, const uint8_t *at,
                     uint8_t expected)
{
        if (at)
                *wrong = (struct stook_wrong){ .fault = fault, .at = at, .expected = expected };
        return at != NULL;
}

static bool zones_are_whole(const struct stook_debug *debug, const void *object, size_t bytes,
                            bool hidden, uint8_t byte, struct stook_wrong *wrong)
{
        const uint8_t *start = object;
        struct piece pieces[2];

        if (!(debug->flags & STOOK_DEBUG_Z))
                return true;
        right_zone(debug, bytes, hidden, pieces);
        for (unsigned i = 0; i < 2; i++) {
                size_t n = pieces[i].to - pieces[i].from;

                if (is_wrong(wrong, STOOK_FAULT_OVERRUN,
                             first_other(start + pieces[i].from, n, byte), byte))
                        return false;
        }
        return !is_wrong(wrong, STOOK_FAULT_UNDERRUN,
                         first_other(start - debug->left, debug->left, byte), byte);
}

/* The group's word, which no user may write. */
static bool word_is_whole(const struct stook_debug *debug, const void *object,
                          struct stook_wrong *wrong)
{
        const uint8_t *is = (const uint8_t *)object + debug->words;
        const uint8_t *was = (const uint8_t *)&stook_tail(debug, object)->word;

        for (unsigned i = 0; debug->accounted && i < sizeof(uint64_t); i++)
                if (is[i] != was[i])
                        return !is_wrong(wrong, STOOK_FAULT_OVERRUN, is + i, was[i]);
        return true;
}

bool stook_debug_live_is_whole(const struct stook_debug *debug, const void *object, bool waiting,
                               struct stook_wrong *wrong)
{
        size_t bytes = stook_debug_bytes(debug, object);

        /* Whatever wrote over the tail wrote over the zone before it. */
        if (bytes > debug->object_bytes)
                bytes = debug->object_bytes;
        return zones_are_whole(debug, object, bytes, !waiting, STOOK_BYTE_LIVE, wrong) &&
               word_is_whole(debug, object, wrong);
}

bool stook_debug_is_state(uint32_t state)
{
        switch (state) {
        case STOOK_STATE_FREE:
        case STOOK_STATE_LIVE:
        case STOOK_STATE_WAITING:
        case STOOK_STATE_QUARANTINED:
        case STOOK_STATE_ISOLATED:
                return true;
        }
        return false;
}

/* The red zone before the object tells whether it was free. */
void stook_debug_look_around(const struct stook_debug *debug, const void *object,
                             struct stook_wrong *wrong)
{
        bool free = debug->left && ((const uint8_t *)object)[-1] == STOOK_BYTE_FREE;

        *wrong = (struct stook_wrong){ .fault = STOOK_FAULT_CORRUPT };
        zones_are_whole(debug, object, debug->object_bytes, false,
                        free ? STOOK_BYTE_FREE : STOOK_BYTE_LIVE, wrong);
        wrong->lost = true;
}

/* ---- poison ---- */

/*
 * Of an object at most so many bytes are poisoned: a large one may be huge, and poison would make
 * pages resident that its user never touched. Arbitrary.
 */
#define POISON_MOST ((size_t)1 << 20)

static size_t poisoned_bytes(const struct stook_debug *debug)
{
        return debug->object_bytes < POISON_MOST ? debug->object_bytes : POISON_MOST;
}

void stook_debug_poison(const struct stook_debug *debug, void *object)
{
        uint8_t *start = object;
        size_t bytes;

        if (!debug->poisons)
                return;
        bytes = poisoned_bytes(debug);
        memset(start, STOOK_BYTE_POISON, bytes - 1);
        start[bytes - 1] = STOOK_BYTE_LAST;
}

bool stook_debug_free_is_whole(const struct stook_debug *debug, const void *object,
                               struct stook_wrong *wrong)
{
        const uint8_t *start = object, *last = start + poisoned_bytes(debug) - 1;

        if (debug->poisons) {
                if (is_wrong(wrong, STOOK_FAULT_WRITE_AFTER_FREE,
                             first_other(start, (size_t)(last - start), STOOK_BYTE_POISON),
                             STOOK_BYTE_POISON))
                        return false;
                if (*last != STOOK_BYTE_LAST)
                        return !is_wrong(wrong, STOOK_FAULT_WRITE_AFTER_FREE, last,
                                         STOOK_BYTE_LAST);
        }
        return zones_are_whole(debug, object, debug->object_bytes, true, STOOK_BYTE_FREE, wrong);
}

/* ---- reports ---- */

/* Is there a thread in it? Tracks begin as zeros. */
static const struct stook_report_track *or_null(const struct stook_report_track *track)
{
        return track->thread ? track : NULL;
}

static void add_tracks(const struct stook_debug *debug, const void *object,
                       struct stook_report_about *about)
{
        const struct stook_debug_tail *tail = stook_tail(debug, object);

        about->object_bytes = debug->object_bytes;
        if (!stook_debug_is_state(stook_debug_state(debug, object)))
                return;
        if (stook_debug_bytes(debug, object) <= debug->object_bytes)
                about->requested_bytes = stook_debug_bytes(debug, object);
        if (!(debug->flags & STOOK_DEBUG_U))
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
                add_tracks(debug, object, &about);
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
                add_tracks(debug, object, about);
                return;
        }
        offset = stook_entry_offset(entry, (uintptr_t)pointer);
        object += (size_t)stook_slabs_index(debug->slabs, offset, &interior) * debug->slabs->stride;
        if (stook_slab_object_made(debug->slabs, object))
                add_tracks(debug, object, about);
}

/* ---- all objects of a cache ---- */

struct visit {
        const struct stook_debug *debug;
        int faults;
};

static bool is_whole(const struct stook_debug *debug, const void *object, uint32_t state,
                     struct stook_wrong *wrong)
{
        switch (state) {
        case STOOK_STATE_LIVE:
        case STOOK_STATE_WAITING:
                return stook_debug_live_is_whole(debug, object, state == STOOK_STATE_WAITING,
                                                 wrong);
        case STOOK_STATE_FREE:
        case STOOK_STATE_QUARANTINED:
                return stook_debug_free_is_whole(debug, object, wrong);
        }
        return true;                    /* isolated */
}

static void check_object(void *object, void *slab, bool out, void *data)
{
        struct visit *visit = data;
        uint32_t state = stook_debug_state(visit->debug, object);
        struct stook_wrong wrong = { .fault = STOOK_FAULT_CORRUPT };

        (void)slab;
        if (!stook_debug_is_state(state))
                stook_debug_look_around(visit->debug, object, &wrong);
        else if (is_whole(visit->debug, object, state, &wrong) &&
                 (out || state == STOOK_STATE_FREE))    /* FREE and out: in a prefilled sheaf */
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
