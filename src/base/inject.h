/*
 * Purpose: the points where a test makes a step of the library fail, or takes part in one.
 * Place: a point is one macro in a layer's source. Its name is a field of struct stook_inject,
 *  below and nowhere else. Only a build for tests (-DSTOOK_INJECT) has the struct. In every other
 *  build the macros are constants: no object, symbol or branch is left of them
 *  (tools/check-symbols).
 * Concurrency: points read their field relaxed, from any thread. A test that sets a field while
 *  other threads run stores it atomically.
 */
#ifndef STOOK_INJECT_H
#define STOOK_INJECT_H

#ifdef STOOK_INJECT

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stook_front;

extern struct stook_inject {
        /*
         * Every n-th call of a step fails; 0: none. Each point in the source counts its own calls.
         */
        uint32_t lock_refuse_every;     /* take and try of a lock */
        uint32_t sheaf_fail_every;      /* a new sheaf */
        uint32_t miss_pop, miss_push;   /* the retry in the miss path */
        uint32_t exchange_fail;         /* exchanges in the miss path */
        uint32_t rearm_fail;            /* a new count for a marked main */
        uint32_t get_fail, refill_fail; /* the barn has no full sheaf; objects for an empty one */
        uint32_t abort_storm;           /* every section of the miss path */
        uint32_t lend_fail;             /* exchanges of the spare sheaf (prefilled sheaves) */

        /* The n-th call from now fails, and each later one: the field stays 1. 0: none. */
        long     span_fail_from;        /* a span is taken */
        long     commit_fail_from;      /* pages are committed */
        long     close_fail_from;       /* a page is to have no access */

        /* Other than 0: what a step does differently. */
        uint32_t no_barrier;            /* evacuation has no barrier; a test must notice */
        uint32_t locked_slot;           /* locked backend: all threads use slot n - 1 */
        uint32_t rcu_rounds_at_once;    /* a round of open sheaves takes no time */
        uint32_t defrag_ratio_plus_1;   /* of 1024 fills, n - 1 look at other nodes' lists */

        /* Other than NULL: read or called instead of the system's. */
        const char *node_folder;        /* of /sys/devices/system/node */
        const char *pressure_file, *events_file;
        bool   (*ask_policy)(int *mode, uint64_t *nodes); /* of get_mempolicy */
        long   (*move)(void *from, void *to, size_t bytes); /* of mremap: @to, or -errno */
        /* How long the faults of so many pages took; 1: of a huge one. */
        uint64_t (*fault_ns)(unsigned pages);

        /*
         * Called between the get of a sheaf and its install. It changes the slot, as a migration
         * may.
         */
        void   (*landing)(struct stook_front *front);
        /* Called when a put has taken an object out of the quarantine, which is not free yet. */
        void   (*leaving)(void *object);
        /* Called when a fill without the lock has taken a slab that was pending. */
        void   (*in_hands)(void *slabs);
        /* Called when a put has seen room for a full sheaf in a barn, before it pushes. */
        void   (*putting)(void *barns);
        /* Called before a sheaf of another node's objects is put back into its word. */
        void   (*putting_back)(struct stook_front *front);
        /*
         * Called while a list is made anew, for each descriptor that is a slab of it, or was. Where
         * its parts are is known; their flags are looked at next.
         */
        void   (*relisting)(void *span);
        /* Called before lines of a slot are filled; the lock of the regions may be held. */
        void   (*filling)(char *slot);

        /* Counted by the library. */
        uint32_t evacuate_sleeps; /* sleeps of at most 1 ms for the holder of a locked slot */
        uint32_t faults_timed;    /* huge faults of which it is known how long they took */
} stook_inject;

/* True for each n-th call, by the counter of the point. */
bool stook_inject_nth(const uint32_t *every, uint32_t *calls);
/* True from the n-th call on. */
bool stook_inject_later(long *from);

#define STOOK_INJECT_EVERY(field) \
        ({ static uint32_t calls_; stook_inject_nth(&stook_inject.field, &calls_); })
#define STOOK_INJECT_FROM(field)  stook_inject_later(&stook_inject.field)
#define STOOK_INJECT_GET(field)   __atomic_load_n(&stook_inject.field, __ATOMIC_RELAXED)
#define STOOK_INJECT_COUNT(field) \
        ((void)__atomic_fetch_add(&stook_inject.field, 1, __ATOMIC_RELAXED))
#define STOOK_INJECT_CALL(field, argument) \
        do { \
                __typeof__(stook_inject.field) call_ = STOOK_INJECT_GET(field); \
                if (call_) \
                        call_(argument); \
        } while (0)

#else

#define STOOK_INJECT_EVERY(field)          0
#define STOOK_INJECT_FROM(field)           0
#define STOOK_INJECT_GET(field)            0
#define STOOK_INJECT_COUNT(field)          ((void)0)
#define STOOK_INJECT_CALL(field, argument) ((void)0)

#endif

#endif
