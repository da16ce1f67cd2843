/*
 * Purpose: the bytes of a debugged object: red zones and poison, written and looked at. What they
 * must be follows from the state of the object.
 * Place: called by debug_object.c and debug_check.c. The command `stook check` has this file, too,
 *  and looks at copies of slabs. So it reads nothing but the stride of an object and @debug.
 * Concurrency: as debug_modes.h I2.
 */
#include <string.h>

#include "debug/debug_inside.h"

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
        pieces[1] = (struct piece){ again, debug->zone_end };
}

void stook_debug_fill_zones(const struct stook_debug *debug, void *object, size_t bytes,
                            uint8_t byte)
{
        uint8_t *start = object;
        struct piece pieces[2];

        if (!(debug->flags & STOOK_CACHE_RED_ZONE))
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

        if (!(debug->flags & STOOK_CACHE_RED_ZONE))
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

        /* Whatever wrote over the tail of a large object wrote over the zone before it. */
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

/* ---- content ---- */

uint64_t stook_debug_content(const struct stook_debug *debug, const void *object)
{
        const uint8_t *at = object;
        uint64_t sum = UINT64_C(14695981039346656037);

        for (size_t i = 0; i < debug->object_bytes; i++)
                sum = (sum ^ at[i]) * UINT64_C(1099511628211);
        return sum;
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

/* ---- any object ---- */

bool stook_debug_is_whole(const struct stook_debug *debug, const void *object, bool out,
                          struct stook_wrong *wrong)
{
        uint32_t state = stook_debug_state(debug, object);

        *wrong = (struct stook_wrong){ .fault = STOOK_FAULT_CORRUPT };
        switch (state) {
        case STOOK_STATE_LIVE:
        case STOOK_STATE_WAITING:
                return stook_debug_live_is_whole(debug, object, state == STOOK_STATE_WAITING,
                                                 wrong) && out;
        case STOOK_STATE_FREE:          /* and out: in a prefilled sheaf */
                return stook_debug_free_is_whole(debug, object, wrong);
        case STOOK_STATE_QUARANTINED:
                return stook_debug_free_is_whole(debug, object, wrong) && out;
        case STOOK_STATE_ISOLATED:
                return out;
        }
        stook_debug_look_around(debug, object, wrong);
        return false;
}
