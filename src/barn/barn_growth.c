/*
 * Purpose: capacity and limits of barns that live: set by a tuner, and grown and shrunk by the rate of misses.
 *
 * Place: called by barn.c (init), barn_refill.c (what is flushed and filled), barn_idle.c (looks), cache (tuning).
 * A cache swings when it flushes sheaves for lack of room and soon fills as many from its slabs: its users free and
 * allocate, in turn, more objects than slot and barn hold. Every SWINGS of them its sheaves become twice as large, as
 * far as a slot may keep of one cache; then its barns get room for twice as many, as far as they may keep of one. So
 * what swings stays above the slabs. A cache from whose barns nothing was asked for a whole look shrinks at once.
 * Sheaves in use are left alone: they go when they are empty (barn.c).
 *
 * Invariants:
 *  I1 what all caches have grown by keeps at most STOOK_SLOT_GROWN_BYTES of objects in a slot. (What barns keep is
 *     bounded by barn_budget.c.)
 * Concurrency: any thread, any instruction. Words are relaxed and each valid by itself; two threads that grow a cache
 *  at once grow it once (compare-and-swap of capacity). A reader who has an older capacity makes a sheaf of it. Under
 *  a tuner growth is off (at_least is STOOK_BARN_FIXED).
 */
#include "barn/barn.h"

#define SWINGS 8                        /* arbitrary: a program's start and end are no swings, ten rounds of a loop are */
#define OBJECTS_MOST 1024               /* of a sheaf that grew by itself: 8 KiB of pointers */

static uint32_t grown;                  /* atomic; I1 */

static unsigned smaller(uint64_t a, uint64_t b)
{
        return (unsigned)(a < b ? a : b);
}

/* Within STOOK_BARN_CACHE_BYTES. */
static unsigned full_limit_of(const struct stook_barns *barns, unsigned capacity, unsigned wanted)
{
        uint64_t bytes = (uint64_t)capacity * barns->below->slot_size;

        wanted = smaller(wanted, STOOK_BARN_LIMIT_MAX);
        return bytes ? smaller(wanted, STOOK_BARN_CACHE_BYTES / bytes) : wanted;
}

static void give_back(struct stook_barns *barns)
{
        uint32_t bytes = __atomic_exchange_n(&barns->growth.grown_bytes, 0, __ATOMIC_RELAXED);

        __atomic_fetch_sub(&grown, bytes, __ATOMIC_RELAXED);
}

void stook_barns_set(struct stook_barns *barns, unsigned capacity, unsigned full_limit, unsigned empty_limit)
{
        give_back(barns);
        barns->full_wanted = full_limit;
        __atomic_store_n(&barns->capacity, capacity, __ATOMIC_RELAXED);
        __atomic_store_n(&barns->full_limit, full_limit_of(barns, capacity, full_limit), __ATOMIC_RELAXED);
        __atomic_store_n(&barns->empty_limit, smaller(empty_limit, STOOK_BARN_LIMIT_MAX), __ATOMIC_RELAXED);
        __atomic_store_n(&barns->growth.at_least, STOOK_BARN_FIXED, __ATOMIC_RELAXED);
}

void stook_barns_let_grow(struct stook_barns *barns)
{
        uint32_t capacity = stook_barns_capacity(barns);

        if (capacity)
                __atomic_store_n(&barns->growth.at_least, capacity, __ATOMIC_RELAXED);
}

/* Twice as many objects in a sheaf. False: no more than they are. */
static bool enlarge(struct stook_barns *barns)
{
        uint32_t capacity = stook_barns_capacity(barns), slot_size = barns->below->slot_size;
        uint32_t larger = stook_sheaf_round_capacity(2 * capacity), bytes = 2 * (larger - capacity) * slot_size;

        if (larger > OBJECTS_MOST || 2 * (uint64_t)larger * slot_size > STOOK_SLOT_CACHE_BYTES)
                return false;
        if (__atomic_add_fetch(&grown, bytes, __ATOMIC_RELAXED) > STOOK_SLOT_GROWN_BYTES ||
            !__atomic_compare_exchange_n(&barns->capacity, &capacity, larger, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                __atomic_fetch_sub(&grown, bytes, __ATOMIC_RELAXED);
                return false;
        }
        __atomic_fetch_add(&barns->growth.grown_bytes, bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&barns->full_limit, full_limit_of(barns, larger, barns->full_wanted), __ATOMIC_RELAXED);
        return true;
}

void stook_barns_flushed(struct stook_barns *barns)
{
        if (__atomic_load_n(&barns->growth.at_least, __ATOMIC_RELAXED) != STOOK_BARN_FIXED)
                __atomic_fetch_add(&barns->growth.flushed, 1, __ATOMIC_RELAXED);
}

void stook_barns_refilled(struct stook_barns *barns)
{
        struct stook_barn_growth *growth = &barns->growth;
        uint32_t limit = __atomic_load_n(&barns->full_limit, __ATOMIC_RELAXED);

        if (STOOK_LIKELY(!__atomic_load_n(&growth->flushed, __ATOMIC_RELAXED)))
                return;
        __atomic_store_n(&growth->flushed, __atomic_load_n(&growth->flushed, __ATOMIC_RELAXED) - 1, __ATOMIC_RELAXED);
        if (__atomic_add_fetch(&growth->swings, 1, __ATOMIC_RELAXED) < SWINGS)
                return;
        __atomic_store_n(&growth->swings, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&growth->flushed, 0, __ATOMIC_RELAXED);
        if (__atomic_load_n(&growth->at_least, __ATOMIC_RELAXED) == STOOK_BARN_FIXED || enlarge(barns) || !limit)
                return;
        __atomic_store_n(&barns->full_limit, full_limit_of(barns, stook_barns_capacity(barns), 2 * limit), __ATOMIC_RELAXED);
}

void stook_barns_shrink(struct stook_barns *barns)
{
        uint32_t at_least = __atomic_load_n(&barns->growth.at_least, __ATOMIC_RELAXED);

        if (at_least == STOOK_BARN_FIXED)
                return;
        __atomic_store_n(&barns->growth.swings, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&barns->growth.flushed, 0, __ATOMIC_RELAXED);
        if (stook_barns_capacity(barns) == at_least)
                return;
        __atomic_store_n(&barns->capacity, at_least, __ATOMIC_RELAXED);
        __atomic_store_n(&barns->full_limit, full_limit_of(barns, at_least, barns->full_wanted), __ATOMIC_RELAXED);
        give_back(barns);
}
