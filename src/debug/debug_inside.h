/*
 * Purpose: what the files of src/debug share: the tail of an object, its bytes, and reports.
 */
#ifndef STOOK_DEBUG_INSIDE_H
#define STOOK_DEBUG_INSIDE_H

#include "debug/debug_modes.h"

/* The kernel's bytes, which developers know by sight. */
#define STOOK_BYTE_FREE    0xbb         /* red zone of a free object */
#define STOOK_BYTE_LIVE    0xcc         /* of a live one, and what was not asked for */
#define STOOK_BYTE_POISON  0x6b         /* a free object */
#define STOOK_BYTE_LAST    0xa5         /* its last byte */

enum stook_debug_state {
        STOOK_STATE_FREE        = 0x46524545,   /* unlikely in other memory */
        STOOK_STATE_LIVE        = 0x4c495645,
        STOOK_STATE_WAITING     = 0x57414954,
        STOOK_STATE_QUARANTINED = 0x51554152,
        STOOK_STATE_ISOLATED    = 0x49534f4c,
};

/* At debug->tail from the object. */
struct stook_debug_tail {
        uint32_t state;                 /* atomic: debug_modes.h I1 */
        uint32_t requested : 24;        /* bytes; I2, as all that follows */
        uint32_t made_by : 8;           /* enum stook_entry_point; of malloc's, in the drop-in */
        /*
         * The group's, when it was handed out; of a large object what was requested; with C what
         * stook_debug_content said when the object was made.
         */
        uint64_t word;
        struct stook_report_track tracks[4];    /* with U: allocated, freed; the life before it */
};
#define STOOK_TAIL_BYTES offsetof(struct stook_debug_tail, tracks)

STOOK_INLINE size_t stook_tail_bytes(uint64_t flags)
{
        return flags & STOOK_CACHE_STORE_USER ? sizeof(struct stook_debug_tail) : STOOK_TAIL_BYTES;
}

STOOK_INLINE struct stook_debug_tail *stook_tail(const struct stook_debug *debug,
                                                 const void *object)
{
        return (struct stook_debug_tail *)((uintptr_t)object + (uintptr_t)debug->tail);
}

/* What the user of an object asked for. */
STOOK_INLINE size_t stook_debug_bytes(const struct stook_debug *debug, const void *object)
{
        const struct stook_debug_tail *tail = stook_tail(debug, object);

        return debug->slabs ? tail->requested : tail->word;
}

STOOK_INLINE void stook_debug_set_bytes(const struct stook_debug *debug, void *object, size_t bytes)
{
        if (debug->slabs)
                stook_tail(debug, object)->requested = (uint32_t)bytes;
        else
                stook_tail(debug, object)->word = bytes;
}

STOOK_INLINE uint32_t stook_debug_state(const struct stook_debug *debug, const void *object)
{
        return __atomic_load_n(&stook_tail(debug, object)->state, __ATOMIC_ACQUIRE); /* M1 */
}

STOOK_INLINE void stook_debug_set_state(const struct stook_debug *debug, void *object,
                                        enum stook_debug_state state)
{
        __atomic_store_n(&stook_tail(debug, object)->state, state, __ATOMIC_RELEASE); /* M1 */
}

#define STOOK_OVERWRITTEN "the state of the object was overwritten"

/* A byte that is not as it should be. */
struct stook_wrong {
        enum stook_fault fault;
        const uint8_t *at;
        uint8_t expected;
        bool    lost;                   /* the state is none: nothing that the tail says holds */
};

/* ---- debug_bytes.c ---- */
/* Is it a state? If not, it was overwritten. */
bool stook_debug_is_state(uint32_t state);
/* Of an object whose state is none: what is wrong around it, by its place in the slab alone. */
void stook_debug_look_around(const struct stook_debug *debug, const void *object,
                             struct stook_wrong *wrong);
/* A sum over the user's bytes of an object. */
uint64_t stook_debug_content(const struct stook_debug *debug, const void *object);
/* Is a LIVE or WAITING object as it was left? @waiting: RCU may have written its hidden word. */
bool stook_debug_live_is_whole(const struct stook_debug *debug, const void *object, bool waiting,
                               struct stook_wrong *wrong);
/* Is a FREE or QUARANTINED one? */
bool stook_debug_free_is_whole(const struct stook_debug *debug, const void *object,
                               struct stook_wrong *wrong);
/* Is any object that was made? @out: of its slab. An isolated one was reported, so it is. */
bool stook_debug_is_whole(const struct stook_debug *debug, const void *object, bool out,
                          struct stook_wrong *wrong);
/* Writes the red zones around an object of which @bytes are the user's. */
void stook_debug_fill_zones(const struct stook_debug *debug, void *object, size_t bytes,
                            uint8_t byte);
void stook_debug_poison(const struct stook_debug *debug, void *object);

/* ---- debug_object.c: what a memory checker is told, if there is one ---- */
/* Before an object is made: its stride is open, for a slab may lie where closed bytes were. */
void stook_debug_open(const struct stook_debug *debug, void *object);
/* It was made: closed is what no user may use, and no layer touches. */
void stook_debug_close(const struct stook_debug *debug, void *object);
/* The same for a large object, all of which is open before. */
void stook_debug_close_large(const struct stook_debug *debug, void *object);
void stook_debug_tell_alloc(const struct stook_debug *debug, void *object);
void stook_debug_tell_resize(const struct stook_debug *debug, void *object, size_t to);
void stook_debug_tell_free(const struct stook_debug *debug, void *object);

/* What the tail of an object says of it. */
void stook_debug_add_tracks(const struct stook_debug *debug, const void *object,
                            struct stook_report_about *about);
/* Reports. @found: always returns. @wrong, @detail: may be NULL. */
STOOK_COLD void stook_debug_report(const struct stook_debug *debug, enum stook_fault fault,
                                   const void *object, const struct stook_wrong *wrong,
                                   const char *detail, bool found);

#endif
