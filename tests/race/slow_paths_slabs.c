/*
 * Purpose: paths of slow_paths.h through the slab layer: slabs with many parts, and slabs of four
 * objects.
 *
 * The first 64 objects of a new slab are its first part, so few objects make a part full. No empty
 * slab is kept in these two caches. The paths are:
 *   - a free that claims a part;
 *   - the settling of that claim under the lock, and by way of pending where the lock is refused;
 *   - a birth with all that follows until the slab is published;
 *   - takes from claims on pending;
 *   - the release of a slab by its last object.
 */
#include "base/inject.h"
#include "base/lock.h"
#include "cache/cache.h"
#include "race/breakpoint.h"
#include "race/slow_paths.h"

#define PART 64
#define BULK 30

static void nothing(void) { }
static void p_refused(void) { stook_inject.lock_refuse_every = 1; }

/* The first two parts are full, objects of both are the next to go. */
static void p_parts(void)
{
        take(&parted, 2 * PART);
        for (unsigned i = 0; i < PART / 2; i++) {
                uint64_t *o = parted.held[2 * i];

                parted.held[2 * i] = parted.held[2 * PART - 1 - 2 * i];
                parted.held[2 * PART - 1 - 2 * i] = o;
        }
}

static void p_parts_refused(void) { p_parts(); p_refused(); }

/* Claims of two parts wait on pending, with few objects each. */
static void p_pending(void) { p_parts_refused(); give(&parted, 8); }
static void p_pending_free(void) { p_pending(); stook_inject.lock_refuse_every = 0; }

/* The last object of a slab, whose other parts are listed. */
static void p_last(void) { take(&parted, 1); }
static void p_last_refused(void) { p_last(); p_refused(); }
/* The other part, too, is full or claimed. */
static void p_last_two(void) { take(&parted, PART + 1); give(&parted, PART - 1); }
static void p_last_claimed(void)
{
        p_parts_refused();
        give(&parted, 2 * PART - 1);
        stook_inject.lock_refuse_every = 0;
}

static void p_fours_full(void) { take(&fours, 8); }
static void p_fours_full_refused(void) { p_fours_full(); p_refused(); }
static void p_fours_last(void) { take(&fours, 4); give(&fours, 3); }
static void p_fours_last_refused(void) { p_fours_last(); p_refused(); }
static void p_fours_pending(void) { p_fours_full_refused(); give(&fours, 5); }

static void c_take(void) { take_one(&parted); }
static void c_give(void) { give_one(&parted); }
static void c_take_nolock(void) { take_one_nolock(&parted); }
static void c_give_nolock(void) { give_one_nolock(&parted); }
static void c_take_fours(void) { take_one(&fours); }
static void c_give_fours(void) { give_one(&fours); }

static void c_take_bulk(void)
{
        void *got[BULK];

        if (IN_LIBRARY(stook_cache_alloc_bulk(parted.cache, 0, BULK, got))) {
                slow_path_fault("no memory");
                return;
        }
        for (unsigned i = 0; i < BULK; i++)
                keep(&parted, got[i]);
}

static void c_give_bulk(void)
{
        void *gone[BULK];
        unsigned n = 0;

        while (n < BULK && (gone[n] = let_go(&parted)))
                n++;
        (void)IN_LIBRARY((stook_cache_free_bulk(parted.cache, n, gone), 0));
}

const struct slow_path slow_paths_slabs[] = {
        { "alloc parted: new slab", nothing, c_take, false },
        { "alloc parted: new slab, no lock", p_refused, c_take, false },
        { "alloc parted: partial slab", p_parts, c_take, false },
        { "alloc parted: pending", p_pending, c_take, false },
        { "alloc parted: pending, lock free", p_pending_free, c_take, false },
        { "alloc parted nolock: pending", p_pending, c_take_nolock, false },
        { "alloc parted bulk: pending", p_pending, c_take_bulk, false },
        { "alloc parted bulk: pending, lock free", p_pending_free, c_take_bulk, false },
        { "free parted: full part", p_parts, c_give, false },
        { "free parted: full part, no lock", p_parts_refused, c_give, false },
        { "free parted: pending", p_pending, c_give, false },
        { "free parted bulk: full parts", p_parts, c_give_bulk, false },
        { "free parted bulk: full parts, no lock", p_parts_refused, c_give_bulk, false },
        { "free parted: last object", p_last, c_give, false },
        { "free parted: last object, no lock", p_last_refused, c_give, false },
        { "free parted nolock: last object", p_last, c_give_nolock, false },
        { "free parted bulk: last two", p_last_two, c_give_bulk, false },
        { "free parted: last object, claims", p_last_claimed, c_give, false },
        { "alloc fours: new slab", nothing, c_take_fours, false },
        { "alloc fours: pending", p_fours_pending, c_take_fours, false },
        { "free fours: full slab", p_fours_full, c_give_fours, false },
        { "free fours: full slab, no lock", p_fours_full_refused, c_give_fours, false },
        { "free fours: last object", p_fours_last, c_give_fours, false },
        { "free fours: last object, no lock", p_fours_last_refused, c_give_fours, false },
};
const unsigned slow_path_slabs_count = sizeof(slow_paths_slabs) / sizeof(slow_paths_slabs[0]);
