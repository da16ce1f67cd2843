/*
 * Purpose: freed objects wait here before they are free. So a write or a free that comes late meets
 * an object that has no new user, and is found when the object leaves. First in, first out, up to
 * so many bytes of all caches together.
 * Place: called by watch, which says what leaves; calls pages for memory.
 * Invariants:
 *  I1 an object is in at most one place of the ring. What takes it out does so by an exchange or a
 *     compare-and-swap of the place, and has it alone.
 *  I2 an object that a put makes leave has a cache that is not destroyed before it is in its slab.
 *     Else a destroy that had looked through the ring would find one object out, or give the cache
 *     up while that object's slab is being changed.
 * Concurrency: any thread, any instruction. No step waits: a put exchanges its object for what was
 *  in the place. Where the cache of that is being destroyed, its own object leaves at once. A
 *  thread that vanishes in between (a fork's child, a jump) loses the object that it has in hands.
 *  The two counts only choose places: an object whose place was passed over leaves when the ring
 *  has come round.
 * Failure: without memory for the ring objects leave at once.
 */
#include "debug/debug_modes.h"

#include "base/compiler.h"
#include "base/inject.h"
#include "pages/meta.h"

/* Bytes of the limit for each place. Where objects are smaller, the places are full before it. */
#define BYTES_OF_PLACE 64
#define PLACES_LEAST   256
#define PLACES_MOST    ((uint64_t)1 << 20)
/* For a place that others change at once: the ring came round meanwhile. Arbitrary. */
#define PLACE_TRIES    4

static void   **ring;                   /* atomic places; NULL in one: none there */
static uint64_t places, most;           /* const once `ring` is set: power of two; bytes */
static uint64_t first, next;            /* atomic: of places, counted for ever */
static uint64_t held;                   /* atomic: bytes */

void stook_quarantine_start(uint64_t limit)
{
        uint64_t wanted = limit / BYTES_OF_PLACE, n = PLACES_LEAST;

        if (__atomic_load_n(&ring, __ATOMIC_RELAXED))
                return;
        while (n < wanted && n < PLACES_MOST)
                n *= 2;
        places = n;
        most = limit;
        /* Release, for caches that other threads make use of at once. */
        __atomic_store_n(&ring, stook_meta_bump(n * sizeof(*ring), 0), __ATOMIC_RELEASE);
}

/* @object leaves: its bytes are no longer held. */
static void leaves(void *object, uint64_t how, const struct stook_leaving *by)
{
        __atomic_fetch_sub(&held, by->leave(object, how), __ATOMIC_RELAXED);
}

/* @object, which was seen in @place, leaves for @instead. False: it is not there, or stays (I2). */
static bool leaves_place(void **place, void *object, void *instead, uint64_t how,
                         const struct stook_leaving *by)
{
        void *cache;
        bool had;

        if (!by->begin(object, &cache))
                return false;
        had = __atomic_compare_exchange_n(place, &object, instead, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED);
        if (had) {
                STOOK_INJECT_CALL(leaving, object);
                leaves(object, how, by);
        }
        by->end(cache);
        return had;
}

/* The object that has been there longest, or nearly so, leaves. False: none. */
static bool first_leaves(uint64_t how, const struct stook_leaving *by)
{
        uint64_t at = __atomic_load_n(&first, __ATOMIC_RELAXED);
        uint64_t end = __atomic_load_n(&next, __ATOMIC_RELAXED);

        while (at < end) {
                /* The ring has come round: the objects of places before these were taken out. */
                uint64_t from = end - at > places ? end - places : at;

                if (__atomic_compare_exchange_n(&first, &at, from + 1, false, __ATOMIC_RELAXED,
                                                __ATOMIC_RELAXED)) {
                        void **place = &ring[from % places];
                        void *object = __atomic_load_n(place, __ATOMIC_ACQUIRE);

                        if (object && leaves_place(place, object, NULL, how, by))
                                return true;
                        at = from + 1;
                }
        }
        return false;
}

/* The next place is @object's. What was there leaves; false: that stays (I2). */
static bool finds_place(void *object, uint64_t how, const struct stook_leaving *by)
{
        void **place = &ring[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % places], *old;

        for (unsigned i = 0; i < PLACE_TRIES; i++) {
                old = __atomic_load_n(place, __ATOMIC_ACQUIRE);
                if (old ? leaves_place(place, old, object, how, by)
                        : __atomic_compare_exchange_n(place, &old, object, false, __ATOMIC_ACQ_REL,
                                                      __ATOMIC_RELAXED))
                        return true;
        }
        return false;
}

void stook_quarantine_put(void *object, size_t bytes, uint64_t how,
                          const struct stook_leaving *by)
{
        __atomic_fetch_add(&held, bytes, __ATOMIC_RELAXED);
        if (!__atomic_load_n(&ring, __ATOMIC_ACQUIRE) || bytes > most ||
            !finds_place(object, how, by))
                leaves(object, how, by);
        while (__atomic_load_n(&held, __ATOMIC_RELAXED) > most && first_leaves(how, by))
                ;
}

void stook_quarantine_flush(bool (*is)(const void *object, const void *data), const void *data,
                            const struct stook_leaving *by)
{
        for (uint64_t i = 0; __atomic_load_n(&ring, __ATOMIC_ACQUIRE) && i < places; i++) {
                void *object = __atomic_load_n(&ring[i], __ATOMIC_ACQUIRE);

                if (object && is(object, data) &&
                    __atomic_compare_exchange_n(&ring[i], &object, NULL, false, __ATOMIC_ACQ_REL,
                                                __ATOMIC_RELAXED))
                        leaves(object, 0, by);
        }
}

uint64_t stook_quarantine_bytes(void)
{
        return __atomic_load_n(&held, __ATOMIC_RELAXED);
}
