/*
 * Purpose: see profile.h: the buckets of stacks, and the pairs of stacks.
 * Concurrency: M2: a bucket or pair is whole before the release that links it; pairs with the
 *  acquire of its readers.
 */
#include "os/os.h"
#include "pages/meta.h"
#include "process/process.h"
#include "profile/profile.h"

#define PAIRS_MOST 16384                /* 5 MB; arbitrary */

struct stook_profile_state stook_profile;
struct stook_profile_bucket *stook_profile_buckets[STOOK_PROFILE_CHAINS] STOOK_MOSTLY_UNUSED;
struct stook_profile_pair *stook_profile_pairs[STOOK_PROFILE_CHAINS] STOOK_MOSTLY_UNUSED;
static uint32_t pairs_made;             /* atomic, relaxed */

bool stook_profile_table_start(uint64_t interval, bool lifetimes)
{
        if (!stook_profile.started)
                __atomic_store_n(&stook_profile.started, stook_os_clock_ns(), __ATOMIC_RELAXED);
        stook_profile_set_interval(interval);
        __atomic_store_n(&stook_profile.lifetimes, lifetimes, __ATOMIC_RELAXED);
        return true;
}

void stook_profile_set_interval(uint64_t interval)
{
        __atomic_store_n(&stook_profile.interval, interval, __ATOMIC_RELAXED);
}

uint64_t stook_profile_interval(void)
{
        return __atomic_load_n(&stook_profile.interval, __ATOMIC_RELAXED);
}

bool stook_profile_has_lifetimes(void)
{
        return __atomic_load_n(&stook_profile.lifetimes, __ATOMIC_RELAXED);
}

uint32_t stook_profile_thread_now(void)
{
        return stook_profile_has_lifetimes() ? stook_process_thread_id() : 0;
}

/* ---- buckets ---- */

static struct stook_profile_bucket *find(struct stook_profile_bucket *from, uint32_t stack)
{
        while (from && from->stack != stack)
                from = from->next;
        return from;
}

struct stook_profile_bucket *stook_profile_bucket(uint32_t stack)
{
        struct stook_profile_bucket **head =
                &stook_profile_buckets[(stack * UINT32_C(0x9e3779b1)) >> 20];
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
_Static_assert(STOOK_PROFILE_CHAINS == 1 << (32 - 20), "the hash has as many values");

void stook_profile_for_each(void (*each)(const struct stook_profile_bucket *bucket, void *data),
                            void *data)
{
        for (size_t i = 0; i < STOOK_PROFILE_CHAINS; i++) {
                const struct stook_profile_bucket *b = __atomic_load_n(&stook_profile_buckets[i],
                                                                       __ATOMIC_ACQUIRE);

                for (; b; b = b->next)
                        each(b, data);
        }
}

/* ---- pairs ---- */

static struct stook_profile_pair *find_pair(struct stook_profile_pair *from, uint32_t born,
                                            uint32_t died)
{
        while (from && (from->born != born || from->died != died))
                from = from->next;
        return from;
}

/* NULL: no room. */
static struct stook_profile_pair *pair_of(uint32_t born, uint32_t died)
{
        uint32_t hash = (born * UINT32_C(0x85ebca6b) ^ died) * UINT32_C(0x9e3779b1);
        struct stook_profile_pair **head = &stook_profile_pairs[hash >> 20];
        struct stook_profile_pair *first = __atomic_load_n(head, __ATOMIC_ACQUIRE), *fresh;
        struct stook_profile_pair *found = find_pair(first, born, died);

        if (found)
                return found;
        if (__atomic_fetch_add(&pairs_made, 1, __ATOMIC_RELAXED) >= PAIRS_MOST) {
                __atomic_fetch_sub(&pairs_made, 1, __ATOMIC_RELAXED);
                return NULL;
        }
        fresh = stook_meta_bump(sizeof *fresh, 64);
        if (!fresh)
                return NULL;
        fresh->born = born;
        fresh->died = died;
        do {
                found = find_pair(first, born, died);
                if (found)
                        return found;
                fresh->next = first;
        } while (!__atomic_compare_exchange_n(head, &first, fresh, false, __ATOMIC_RELEASE,
                                              __ATOMIC_ACQUIRE));
        return fresh;
}

/* By the power of two of a time. */
static unsigned life_of(uint64_t ns)
{
        unsigned bits = 64 - (unsigned)__builtin_clzll(ns | 1), low = STOOK_PROFILE_LIFE_BITS;

        return bits <= low ? 0 : bits - low < STOOK_PROFILE_LIVES ? bits - low
                                                                  : STOOK_PROFILE_LIVES - 1;
}

void stook_profile_add_pair(const struct stook_profile_life *life, struct stook_profile_sums parts,
                            uint32_t stack, bool elsewhere, uint64_t ns)
{
        struct stook_profile_pair *pair = pair_of(life->stack, stack);

        if (!pair) {
                __atomic_fetch_add(&stook_profile.pairs_lost, 1, __ATOMIC_RELAXED);
                return;
        }
        __atomic_fetch_add(&pair->samples, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&pair->objects, parts.objects, __ATOMIC_RELAXED);
        __atomic_fetch_add(&pair->bytes, parts.bytes, __ATOMIC_RELAXED);
        if (elsewhere)
                __atomic_fetch_add(&pair->elsewhere, parts.objects, __ATOMIC_RELAXED);
        __atomic_fetch_add(&pair->lives[life_of(ns)], parts.objects, __ATOMIC_RELAXED);
}

void stook_profile_for_each_pair(void (*each)(const struct stook_profile_pair *pair, void *data),
                                 void *data)
{
        for (size_t i = 0; i < STOOK_PROFILE_CHAINS; i++) {
                const struct stook_profile_pair *p = __atomic_load_n(&stook_profile_pairs[i],
                                                                     __ATOMIC_ACQUIRE);

                for (; p; p = p->next)
                        each(p, data);
        }
}

uint64_t stook_profile_lost(void)
{
        return __atomic_load_n(&stook_profile.lost, __ATOMIC_RELAXED);
}

void stook_profile_count_lost(void)
{
        __atomic_fetch_add(&stook_profile.lost, 1, __ATOMIC_RELAXED);
}
