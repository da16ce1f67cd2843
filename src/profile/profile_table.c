/*
 * Purpose: see profile.h.
 * Objects in use: a table of sets of 16 places, found by the object's address. A set does not spill
 * into others, so nothing is ever moved, and a lookup has an end. A byte for each set counts its
 * objects. That is all that the free of an object that was not sampled looks at, mostly.
 * Concurrency: a place is taken by a compare-and-swap of its key from 0 to TAKING. Only the owner
 *  of an object enters it or takes it out, so no two calls do so with one key.
 *  M1: the key's release in enter pairs with the acquire in a free: another thread may free the
 *  object, and finds its bucket and parts.
 *  M2: a bucket is whole before the release that links it; pairs with the acquire of its readers.
 */
#include "base/byte.h"
#include "os/os.h"
#include "pages/meta.h"
#include "profile/profile.h"

#define SET_PLACES 16                   /* keys of two cache lines */
/* Sets for 65,536 samples: 32 GiB of objects in use at the default interval; and for others. */
#define SETS_USUAL 4096
#define SETS_MANY  65536                /* a million samples */
#define TAKING     1                    /* a key: the place is being filled */
#define BUCKETS    4096                 /* heads of chains; arbitrary */

struct sample {
        struct stook_profile_bucket *bucket;
        struct stook_profile_sums parts;
};

/* Const after the start. */
static struct {
        uintptr_t     *keys;            /* [sets * SET_PLACES], atomic: 0, TAKING or an address */
        struct sample *samples;         /* the same places */
        uint8_t       *counts;          /* [sets], atomic */
        size_t         sets;
} table;

static struct stook_profile_bucket *buckets[BUCKETS] STOOK_MOSTLY_UNUSED;      /* atomic */
static uint64_t lost;                                                          /* atomic, relaxed */

bool stook_profile_table_start(uint64_t interval)
{
        table.sets = interval < STOOK_PROFILE_INTERVAL / 8 ? SETS_MANY : SETS_USUAL;
        table.keys = stook_os_zeroed(table.sets * SET_PLACES * sizeof *table.keys);
        table.samples = stook_os_zeroed(table.sets * SET_PLACES * sizeof *table.samples);
        table.counts = stook_os_zeroed(table.sets);
        return table.keys && table.samples && table.counts;
}

/* ---- stacks ---- */

static struct stook_profile_bucket *find(struct stook_profile_bucket *from, uint32_t stack)
{
        while (from && from->stack != stack)
                from = from->next;
        return from;
}

struct stook_profile_bucket *stook_profile_bucket(uint32_t stack)
{
        struct stook_profile_bucket **head = &buckets[(stack * UINT32_C(0x9e3779b1)) >> 20];
        struct stook_profile_bucket *first = __atomic_load_n(head, __ATOMIC_ACQUIRE), *fresh;
        struct stook_profile_bucket *found = find(first, stack);

        if (found)
                return found;
        fresh = stook_meta_bump(sizeof *fresh, 64);
        if (!fresh)
                return NULL;
        fresh->stack = stack;
        do {
                /* Another thread may have made it meanwhile: this one is then lost. */
                found = find(first, stack);
                if (found)
                        return found;
                fresh->next = first;
        } while (!__atomic_compare_exchange_n(head, &first, fresh, false, __ATOMIC_RELEASE,
                                              __ATOMIC_ACQUIRE));
        return fresh;
}
_Static_assert(BUCKETS == 1 << (32 - 20), "the hash has as many values");

void stook_profile_for_each(void (*each)(const struct stook_profile_bucket *bucket, void *data),
                            void *data)
{
        for (size_t i = 0; i < BUCKETS; i++) {
                const struct stook_profile_bucket *b = __atomic_load_n(&buckets[i],
                                                                       __ATOMIC_ACQUIRE);

                for (; b; b = b->next)
                        each(b, data);
        }
}

/* ---- objects ---- */

static size_t set_of(const void *object)
{
        return ((uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15)) >> 40 & (table.sets - 1);
}

bool stook_profile_enter(const void *object, struct stook_profile_bucket *bucket,
                         struct stook_profile_sums parts)
{
        size_t set = set_of(object), first = set * SET_PLACES;

        for (size_t i = first; i < first + SET_PLACES; i++) {
                uintptr_t none = 0;

                if (__atomic_load_n(&table.keys[i], __ATOMIC_RELAXED) ||
                    !__atomic_compare_exchange_n(&table.keys[i], &none, TAKING, false,
                                                 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                        continue;
                table.samples[i] = (struct sample){ bucket, parts };
                stook_byte_add(&table.counts[set], 1);
                __atomic_store_n(&table.keys[i], (uintptr_t)object, __ATOMIC_RELEASE);
                return true;
        }
        return false;
}

static STOOK_NOINLINE void take_out(size_t set, const void *object)
{
        size_t first = set * SET_PLACES;

        for (size_t i = first; i < first + SET_PLACES; i++) {
                struct sample sample;

                if (__atomic_load_n(&table.keys[i], __ATOMIC_ACQUIRE) != (uintptr_t)object)
                        continue;
                sample = table.samples[i];
                __atomic_fetch_add(&sample.bucket->freed.objects, sample.parts.objects,
                                   __ATOMIC_RELAXED);
                __atomic_fetch_add(&sample.bucket->freed.bytes, sample.parts.bytes,
                                   __ATOMIC_RELAXED);
                /* Release: the sample was read before the place is another object's. */
                __atomic_store_n(&table.keys[i], 0, __ATOMIC_RELEASE);
                stook_byte_add(&table.counts[set], UINT8_MAX);    /* one less */
                return;
        }
}

void stook_profile_free(const void *object)
{
        size_t set = set_of(object);

        if (STOOK_UNLIKELY(__atomic_load_n(&table.counts[set], __ATOMIC_RELAXED)))
                take_out(set, object);
}

uint64_t stook_profile_lost(void)
{
        return __atomic_load_n(&lost, __ATOMIC_RELAXED);
}

void stook_profile_count_lost(void)
{
        __atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
}
