/*
 * Purpose: see profile.h: the sampled objects in use of profile_sample.c.
 * A table of sets of 16 places, found by the object's address. A set does not spill into others, so
 * nothing is ever moved, and a lookup has an end. A byte for each set counts its objects. That is
 * all that the free of an object that was not sampled looks at, mostly.
 * Concurrency: a place is taken by a compare-and-swap of its key from 0 to TAKING. Only the owner
 *  of an object enters it or takes it out, so no two calls do so with one key.
 *  M1: the key's release in enter pairs with the acquire in a free: another thread may free the
 *  object, and finds its life.
 */
#include "base/byte.h"
#include "os/os.h"
#include "process/process.h"
#include "profile/profile.h"
#include "stack/stack.h"

#define SET_PLACES 16                   /* keys of two cache lines */
/* Sets for 65,536 samples: 32 GiB of objects in use at the default interval; and for others. */
#define SETS_USUAL 4096
#define SETS_MANY  65536                /* a million samples */
#define TAKING     1                    /* a key: the place is being filled */

/* Const after the start. */
static struct {
        uintptr_t *keys;                /* [sets * SET_PLACES], atomic: 0, TAKING or an address */
        struct stook_profile_life *lives;       /* the same places */
        uint8_t   *counts;              /* [sets], atomic */
        size_t     sets;
} table;

bool stook_profile_objects_start(uint64_t interval)
{
        table.sets = interval < STOOK_PROFILE_INTERVAL / 8 ? SETS_MANY : SETS_USUAL;
        table.keys = stook_os_zeroed(table.sets * SET_PLACES * sizeof *table.keys);
        table.lives = stook_os_zeroed(table.sets * SET_PLACES * sizeof *table.lives);
        table.counts = stook_os_zeroed(table.sets);
        return table.keys && table.lives && table.counts;
}

static size_t set_of(const void *object)
{
        return ((uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15)) >> 40 & (table.sets - 1);
}

bool stook_profile_enter(const void *object, const struct stook_profile_life *life)
{
        size_t set = set_of(object), first = set * SET_PLACES;

        for (size_t i = first; i < first + SET_PLACES; i++) {
                uintptr_t none = 0;

                if (__atomic_load_n(&table.keys[i], __ATOMIC_RELAXED) ||
                    !__atomic_compare_exchange_n(&table.keys[i], &none, TAKING, false,
                                                 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                        continue;
                table.lives[i] = *life;
                stook_byte_add(&table.counts[set], 1);
                __atomic_store_n(&table.keys[i], (uintptr_t)object, __ATOMIC_RELEASE);
                return true;
        }
        return false;
}

static void end(const struct stook_profile_life *life)
{
        stook_profile_end(life, stook_profile_has_lifetimes() ? stook_stack_deep(2) : 0,
                          stook_profile_thread_now(), stook_os_clock_ns());
}

static STOOK_NOINLINE void take_out(size_t set, const void *object)
{
        size_t first = set * SET_PLACES;

        for (size_t i = first; i < first + SET_PLACES; i++) {
                struct stook_profile_life life;

                if (__atomic_load_n(&table.keys[i], __ATOMIC_ACQUIRE) != (uintptr_t)object)
                        continue;
                life = table.lives[i];
                /* Release: the life was read before the place is another object's. */
                __atomic_store_n(&table.keys[i], 0, __ATOMIC_RELEASE);
                stook_byte_add(&table.counts[set], UINT8_MAX);    /* one less */
                end(&life);
                return;
        }
}

void stook_profile_free(const void *object)
{
        size_t set = set_of(object);

        if (STOOK_UNLIKELY(__atomic_load_n(&table.counts[set], __ATOMIC_RELAXED)))
                take_out(set, object);
}
