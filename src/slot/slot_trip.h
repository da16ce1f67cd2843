/*
 * Purpose: marks of sheaves (barn/sheaf_word.h): who takes them away, and which are samples.
 *
 * A session samples one in `interval` bytes, in the mean. A sheaf that an owner is about to install
 * gets a countdown, unless it has one of the session that runs: so many pops, and the next one is
 * the sample. Countdowns are geometric in objects, with p = 1 - exp(-stride / interval), and each
 * sheaf draws its own. So they are independent of each other and of what the program does. One that
 * is longer than a count is cut, without SAMPLE, and drawn anew at the mark. That changes nothing:
 * a geometric variable has no memory.
 * Place: called by the slot layer, by home and prefill, which take objects out of sheaves; by
 *  src/sample, which starts and ends sessions.
 * Concurrency: main's word is changed by a section, which compares main and the word with what was
 *  seen. So of all calls that see one mark, one gives the new count and is the sample, and no pop
 *  or push between is lost. A section that loaded the word before finds at its commit what it
 *  loaded: no other thread ran on the slot. The model is tests/proof/models/slot.pml, MARK.
 */
#ifndef STOOK_SLOT_TRIP_H
#define STOOK_SLOT_TRIP_H

#include "slot/slot.h"

extern struct stook_sampling {
        uint64_t session;       /* atomic: as in a sheaf's word, 1 to 7; 0: none. M1 */
        uint64_t interval;      /* atomic: bytes; set before `session`, released by it */
} stook_sampling STOOK_HIDDEN;

enum stook_trip {
        STOOK_TRIP_NONE,        /* main is not marked, has no objects, or can have no count now */
        STOOK_TRIP_AGAIN,       /* it has a new count: a pop may be tried again */
        STOOK_TRIP_SAMPLE,      /* and this call is a sample, which takes no object of main */
};
/*
 * A pop missed, and main has objects. @in_place: if the call is a sample, it is the object that its
 * next pop takes. So that pop passes the mark.
 */
enum stook_trip stook_slot_trip(struct stook_front *front, bool in_place);
/* The call was a sample (_SAMPLE), and pops after all: one pop more comes before the next trial. */
void stook_slot_pass(struct stook_front *front);
/* As the sole owner of a sheaf: it gets a new count. True: its mark was a sample, in place. */
bool stook_sheaf_trip(struct stook_front *front, struct stook_sheaf *sheaf);

struct stook_cache;
struct stook_report_about;
struct stook_span;

/* Of src/sample. */
struct stook_sample_duties {
        /* An object of the front's cache, as any other, is a sample: its life is not followed. */
        void (*in_place)(struct stook_front *front);
        /* While there is a session: @n objects came past the sheaves. */
        void (*from_slabs)(struct stook_front *front, size_t n);
        /*
         * The object of a call that is a sample (STOOK_SLOT_SAMPLE), zeroed if it is to be; NULL:
         * none. @how: cache_slow.h.
         */
        void *(*take)(struct stook_cache *cache, uint64_t how);
        /* While there is a session: a large object of @size bytes may be a sample. */
        void (*large)(struct stook_span *span, size_t size);
        /* Before it is given, or changes its size: the life of a sample that is a span ends. */
        void (*end)(struct stook_span *span);
        /* For a report about @pointer, at which no object lives: what is known of it. */
        void (*describe)(const void *pointer, struct stook_report_about *about);
};
extern const struct stook_sample_duties stook_sample_duties STOOK_HIDDEN;

/* @n objects of the front's cache came past its sheaves: each of them is a trial, too. */
STOOK_INLINE void stook_slot_sample_from_slabs(struct stook_front *front, size_t n)
{
        if (STOOK_UNLIKELY(__atomic_load_n(&stook_sampling.session, __ATOMIC_RELAXED)))
                stook_sample_duties.from_slabs(front, n);
}

/* As the sole owner of a sheaf that is about to be installed, or lent. */
STOOK_INLINE void stook_sheaf_arm(struct stook_front *front, struct stook_sheaf *sheaf)
{
        uint64_t session = __atomic_load_n(&stook_sampling.session, __ATOMIC_RELAXED);

        if (STOOK_UNLIKELY((sheaf->word ^ session) & STOOK_WORD_SESSION))
                stook_sheaf_trip(front, sheaf);
}

#endif
