/*
 * Purpose: see quarantine.h.
 */
#include "debug/quarantine.h"

#include "base/compiler.h"
#include "pages/meta.h"

/* Bytes of the limit for each place. Where objects are smaller, the places are full before it. */
#define BYTES_OF_PLACE 64
#define PLACES_LEAST   256
#define PLACES_MOST    ((uint64_t)1 << 20)

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
static void leaves(void *object, uint64_t how, size_t (*leave)(void *object, uint64_t how))
{
        __atomic_fetch_sub(&held, leave(object, how), __ATOMIC_RELAXED);
}

/* The object that has been there longest, or nearly so. NULL: none. */
static void *take_first(void)
{
        uint64_t at = __atomic_load_n(&first, __ATOMIC_RELAXED);
        uint64_t end = __atomic_load_n(&next, __ATOMIC_RELAXED);
        void *object = NULL;

        while (!object && at < end) {
                /* The ring has come round: the objects of places before these were taken out. */
                uint64_t from = end - at > places ? end - places : at;

                if (__atomic_compare_exchange_n(&first, &at, from + 1, false, __ATOMIC_RELAXED,
                                                __ATOMIC_RELAXED)) {
                        object = __atomic_exchange_n(&ring[from % places], NULL, __ATOMIC_ACQ_REL);
                        at = from + 1;
                }
        }
        return object;
}

void stook_quarantine_put(void *object, size_t bytes, uint64_t how,
                          size_t (*leave)(void *object, uint64_t how))
{
        uint64_t at;
        void *old;

        __atomic_fetch_add(&held, bytes, __ATOMIC_RELAXED);
        if (!__atomic_load_n(&ring, __ATOMIC_ACQUIRE) || bytes > most) {
                leaves(object, how, leave);
                return;
        }
        at = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
        old = __atomic_exchange_n(&ring[at % places], object, __ATOMIC_ACQ_REL);
        if (old)
                leaves(old, how, leave);
        while (__atomic_load_n(&held, __ATOMIC_RELAXED) > most && (old = take_first()))
                leaves(old, how, leave);
}

void stook_quarantine_flush(bool (*is)(const void *object, const void *data), const void *data,
                            size_t (*leave)(void *object, uint64_t how))
{
        for (uint64_t i = 0; __atomic_load_n(&ring, __ATOMIC_ACQUIRE) && i < places; i++) {
                void *object = __atomic_load_n(&ring[i], __ATOMIC_ACQUIRE);

                if (object && is(object, data) &&
                    __atomic_compare_exchange_n(&ring[i], &object, NULL, false, __ATOMIC_ACQ_REL,
                                                __ATOMIC_RELAXED))
                        leaves(object, 0, leave);
        }
}

uint64_t stook_quarantine_bytes(void)
{
        return __atomic_load_n(&held, __ATOMIC_RELAXED);
}
