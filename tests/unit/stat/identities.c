/*
 * What this proves: the sums of <stook/stats.h> hold to the last object after random calls of every
 * kind, on caches of every kind, in one thread and in four, while any step may be refused (no
 * pages, no sheaves, no lock, no exchange); and the counts are those of the calls that succeeded.
 * The slabs, walked, say the same, and a group is charged for what is held.
 *
 *      identities [STEPS [SEED]]       the seed is printed
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "base/lock.h"
#include "cache/cache.h"
#include "pages/span.h"

#define KINDS    8
#define HELD_MAX 600                    /* objects, for each kind and user */
#define LENT_MAX 3
#define BULK_MAX 100
#define THREADS  4

#define expect(cond) do { if (!(cond)) failed(#cond, __LINE__); } while (0)

static uint64_t seed;

static void failed(const char *what, int line)
{
        printf("identities.c:%d: seed %" PRIu64 ": not so: %s\n", line, seed, what);
        exit(1);
}

/* ---- an RCU with grace periods by hand ---- */

static pthread_mutex_t rcu_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stook_rcu_head *waiting[10000];
static void (*waiting_done[10000])(struct stook_rcu_head *);
static unsigned n_waiting;

static void rcu_call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *))
{
        pthread_mutex_lock(&rcu_lock);
        expect(n_waiting < 10000);
        waiting_done[n_waiting] = done;
        waiting[n_waiting++] = head;
        pthread_mutex_unlock(&rcu_lock);
}

static void rcu_grace(void)
{
        for (;;) {
                void (*done)(struct stook_rcu_head *) = NULL;
                struct stook_rcu_head *head = NULL;

                pthread_mutex_lock(&rcu_lock);
                if (n_waiting) {
                        head = waiting[--n_waiting];
                        done = waiting_done[n_waiting];
                }
                pthread_mutex_unlock(&rcu_lock);
                if (!head)
                        return;
                done(head);
        }
}

static const struct stook_rcu by_hand = { .ops_size = sizeof(by_hand),
                                          .call = rcu_call,
                                          .barrier = rcu_grace };

/* ---- caches, and their users ---- */

static struct kind {
        const char *name;
        size_t   size;
        uint64_t flags;
        unsigned barn;
        const struct stook_rcu *rcu;
        struct stook_cache *cache;
} kinds[KINDS] = {
        { "small", 64, 0, 0, NULL, NULL },
        { "middle", 700, 0, 0, NULL, NULL },
        { "large", 9000, 0, 0, NULL, NULL },
        { "random", 100, STOOK_CACHE_RANDOM_ORDER, 0, NULL, NULL },
        { "no sheaves", 48, STOOK_CACHE_NO_SHEAVES, 0, NULL, NULL },
        { "no barn", 128, 0, UINT32_MAX, NULL, NULL },
        { "readers", 256, 0, 0, &by_hand, NULL },
        { "charged", 96, STOOK_CACHE_ACCOUNT, 0, NULL, NULL },
};

static struct stook_group *group;       /* pays for what is charged */

/* What one thread has, and has done. */
struct user {
        uint64_t random;
        bool     alone;
        struct {
                void    *held[HELD_MAX];
                struct stook_sheaf *lent[LENT_MAX];
                unsigned n_held, n_lent;
                uint64_t allocs, frees, rcu_frees, bulk_failed;
        } of[KINDS];
};

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014 */
static uint64_t below(struct user *u, uint64_t n)
{
        uint64_t z = u->random += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (z ^ (z >> 31)) % n;
}

static void keep(struct user *u, unsigned k, void *object)
{
        if (!object)
                return;
        u->of[k].allocs++;
        if (u->of[k].n_held < HELD_MAX) {
                u->of[k].held[u->of[k].n_held++] = object;
        } else {
                stook_cache_free(kinds[k].cache, object);
                u->of[k].frees++;
        }
}

static void *pick(struct user *u, unsigned k)
{
        unsigned i, *n = &u->of[k].n_held;
        void *object;

        if (!*n)
                return NULL;
        i = (unsigned)below(u, *n);
        object = u->of[k].held[i];
        u->of[k].held[i] = u->of[k].held[--*n];
        return object;
}

static void alloc_some(struct user *u, unsigned k)
{
        struct stook_cache *cache = kinds[k].cache;
        void *objects[BULK_MAX];
        unsigned n = 1 + (unsigned)below(u, BULK_MAX);

        switch (below(u, 6)) {
        case 0: keep(u, k, stook_cache_zalloc(cache)); break;
        case 1:
                keep(u, k, stook_cache_alloc_node(cache, STOOK_ALLOC_NOWAIT, below(u, 2) ? 0 : -1));
                break;
        case 2: keep(u, k, stook_cache_alloc_nolock(cache)); break;
        case 3:
                if (stook_cache_alloc_bulk(cache, 0, n, objects))
                        u->of[k].bulk_failed++;
                else
                        for (unsigned i = 0; i < n; i++)
                                keep(u, k, objects[i]);
                break;
        default:
                for (unsigned i = 0; i < n; i++)
                        keep(u, k, stook_cache_alloc(cache));
        }
}

static void free_some(struct user *u, unsigned k)
{
        struct stook_cache *cache = kinds[k].cache;
        void *objects[BULK_MAX], *object;
        unsigned n = 1 + (unsigned)below(u, BULK_MAX), got = 0;
        uint64_t how = below(u, 5);

        if (kinds[k].rcu && how >= 3) {
                for (; n && (object = pick(u, k)); n--) {
                        if (stook_cache_free_rcu(cache, object)) {
                                stook_cache_free(cache, object);
                                u->of[k].frees++;
                        } else {
                                u->of[k].rcu_frees++;
                        }
                }
                return;
        }
        for (; got < n && (object = pick(u, k)); got++)
                objects[got] = object;
        if (how == 0)
                stook_cache_free_bulk(below(u, 2) ? cache : NULL, got, objects);
        else
                for (unsigned i = 0; i < got; i++)
                        how == 1 ? stook_cache_free_nolock(cache, objects[i])
                                 : stook_cache_free(cache, objects[i]);
        u->of[k].frees += got;
}

static size_t some_size(struct user *u)
{
        return 1 + below(u, below(u, 4) ? 30 : 200);
}

static void lend(struct user *u, unsigned k)
{
        struct stook_cache *cache = kinds[k].cache;
        unsigned *n = &u->of[k].n_lent;
        struct stook_sheaf **sheaf;

        if (*n < LENT_MAX && below(u, 2)) {
                u->of[k].lent[*n] = stook_sheaf_prefill(cache,
                                                        below(u, 2) ? STOOK_ALLOC_ZERO : 0,
                                                                some_size(u));
                *n += u->of[k].lent[*n] != NULL;
        }
        if (!*n)
                return;
        sheaf = &u->of[k].lent[below(u, *n)];
        for (size_t i = below(u, stook_sheaf_available(*sheaf) + 1); i; i--)
                keep(u, k, stook_sheaf_alloc(cache, *sheaf));
        if (below(u, 3) == 0)
                stook_sheaf_refill(cache, 0, sheaf, some_size(u));
        if (below(u, 3) == 0) {
                stook_sheaf_return(cache, *sheaf);
                *sheaf = u->of[k].lent[--*n];
        }
}

static void step(struct user *u)
{
        unsigned k = (unsigned)below(u, KINDS);

        switch (below(u, 32)) {
        case 0:
                if (below(u, 16) == 0)
                        stook_cache_shrink(kinds[k].cache);
                break;
        case 1: rcu_grace(); break;
        case 2: stook_maintain(); break;
        case 3: case 4: case 5: case 6: case 7: case 8:
                lend(u, k);
                break;
        default:
                /* Up for a while, down for a while. */
                if (below(u, 100) < ((u->random >> 40) & 1 ? 60 : 40))
                        alloc_some(u, k);
                else
                        free_some(u, k);
        }
}

/* ---- the sums ---- */

static void give_all_back(struct user *u)
{
        for (unsigned k = 0; k < KINDS; k++) {
                void *object;

                while (u->of[k].n_lent)
                        stook_sheaf_return(kinds[k].cache, u->of[k].lent[--u->of[k].n_lent]);
                while ((object = pick(u, k))) {
                        stook_cache_free(kinds[k].cache, object);
                        u->of[k].frees++;
                }
        }
}

static void check(const struct user *users, unsigned n_users)
{
        for (unsigned k = 0; k < KINDS; k++) {
                struct stook_cache *cache = kinds[k].cache;
                struct stook_cache_stats s = { .stats_size = sizeof(s) };
                uint64_t allocs = 0, frees = 0, rcu_frees = 0, held = 0, lent = 0, both = 0;

                for (unsigned i = 0; i < n_users; i++) {
                        allocs += users[i].of[k].allocs;
                        frees += users[i].of[k].frees;
                        rcu_frees += users[i].of[k].rcu_frees;
                        held += users[i].of[k].n_held;
                        lent += users[i].of[k].n_lent;
                        both += users[i].of[k].bulk_failed;
                }
                expect(!stook_cache_get_stats(cache, &s));
                expect(allocs - frees - rcu_frees == held);
                expect(s.objects_live == held);
                /*
                 * A bulk call that fails has taken objects and given them back: counted on both
                 * sides.
                 */
                both = both ? s.alloc_fastpath + s.alloc_slowpath - allocs : 0;
                expect(s.alloc_fastpath + s.alloc_slowpath == allocs + both);
                expect(s.free_fastpath + s.free_slowpath + s.free_rcu_sheaf ==
                       frees + rcu_frees + both);
                expect(s.objects_live == s.alloc_fastpath + s.alloc_slowpath - s.free_fastpath -
                                                 s.free_slowpath - s.free_rcu_sheaf);
                expect(s.objects_cached == s.sheaf_refill + s.free_fastpath + s.free_rcu_sheaf -
                                                   s.alloc_fastpath - s.sheaf_flush);
                expect(s.sheaves == s.sheaf_alloc - s.sheaf_free);
                expect(s.slabs == s.alloc_slab - s.free_slab);
                expect(s.sheaf_prefill_fast + s.sheaf_prefill_slow + s.sheaf_prefill_oversize -
                       s.sheaf_return_fast - s.sheaf_return_slow == lent);
                expect(stook_slabs_objects_out(&cache->slabs) == s.objects_live + s.objects_cached);
                expect(s.free_rcu_sheaf == rcu_frees);
                if (kinds[k].flags & STOOK_CACHE_ACCOUNT)
                        expect(stook_group_usage(group) == held * s.stride);
                expect(s.sheaf_capacity || !s.alloc_fastpath || s.sheaf_prefill_oversize);
                expect(!stook_cache_validate(cache));
        }
}

/* Every counter that any of these calls moves, was moved: a sum of noughts proves nothing. */
static void check_all_were_moved(void)
{
        uint64_t sums[STOOK_STAT_COUNT] = { 0 };
        /* Several nodes; scarce memory; several threads. */
        static const enum stook_counter others[] = {
                STOOK_STAT_alloc_node_mismatch,
                STOOK_STAT_order_fallback,
                STOOK_STAT_cmpxchg_double_fail,
                STOOK_STAT_free_rcu_sheaf_fail,
        };

        for (unsigned k = 0; k < KINDS; k++) {
                struct stook_cache_stats s = { .stats_size = sizeof(s) };

                stook_cache_get_stats(kinds[k].cache, &s);
#define ADD(name) sums[STOOK_STAT_##name] += s.name;
                STOOK_COUNTERS(ADD)
#undef ADD
        }
        for (unsigned i = 0; i < STOOK_STAT_COUNT; i++) {
                static const char *const names[] = {
#define NAME(name) #name,
                        STOOK_COUNTERS(NAME)
#undef NAME
                };
                bool other = false;

                printf("%20s %" PRIu64 "\n", names[i], sums[i]);
                for (unsigned j = 0; j < sizeof(others) / sizeof(others[0]); j++)
                        other |= others[j] == (enum stook_counter)i;
                expect(other || sums[i]);
        }
}

static void refuse(struct user *u, bool some)
{
        uint32_t *hooks[] = { &stook_inject.exchange_fail, &stook_inject.get_fail,
                              &stook_inject.refill_fail,   &stook_inject.abort_storm,
                              &stook_inject.miss_pop,      &stook_inject.miss_push,
                              &stook_inject.lend_fail,     &stook_inject.sheaf_fail_every,
                              &stook_inject.lock_refuse_every };

        for (unsigned i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
                *hooks[i] = some && below(u, 4) == 0 ? 1 + (uint32_t)below(u, 20) : 0;
        stook_inject.span_fail_from = some && below(u, 4) == 0 ? 1 + (long)below(u, 30) : 0;
}

static struct user users[THREADS + 1];

static void *steps_of_a_thread(void *user)
{
        stook_group_enter(group);
        for (long i = 0; i < 2000; i++)
                step(user);
        return NULL;
}

int main(int argc, char **argv)
{
        long steps = argc > 1 ? atol(argv[1]) : 6000;
        struct user *u = &users[THREADS];

        seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
        printf("seed %" PRIu64 "\n", seed);
        for (unsigned i = 0; i <= THREADS; i++)
                users[i].random = seed * 1000 + i;
        for (unsigned k = 0; k < KINDS; k++) {
                struct stook_cache_args args = { .args_size = sizeof(args),
                                                 .flags = kinds[k].flags,
                                                 .barn_full = kinds[k].barn,
                                                 .barn_empty = kinds[k].barn,
                                                 .rcu = kinds[k].rcu };

                kinds[k].cache = stook_cache_create(kinds[k].name, kinds[k].size, &args);
                expect(kinds[k].cache);
        }

        group = stook_group_create("payer", NULL, 0);
        expect(group && !stook_group_enter(group));
        for (long i = 0; i < steps; i++) {
                step(u);
                if (i % 500 == 499) {
                        refuse(u, false);
                        check(users, THREADS + 1);
                        refuse(u, i % 1000 == 499);
                }
        }
        for (int round = 0; round < 4; round++) {
                pthread_t threads[THREADS];

                refuse(u, round & 1);
                stook_inject.span_fail_from = 0;
                for (unsigned i = 0; i < THREADS; i++)
                        expect(!pthread_create(&threads[i], NULL, steps_of_a_thread, &users[i]));
                for (unsigned i = 0; i < THREADS; i++)
                        pthread_join(threads[i], NULL);
                refuse(u, false);
                check(users, THREADS + 1);
        }
        check_all_were_moved();
        for (unsigned i = 0; i <= THREADS; i++)
                give_all_back(&users[i]);
        check(users, THREADS + 1);
        for (unsigned k = 0; k < KINDS; k++) {
                struct stook_cache_stats s = { .stats_size = sizeof(s) };

                stook_cache_rcu_barrier(kinds[k].cache);
                stook_cache_shrink(kinds[k].cache);
                stook_cache_get_stats(kinds[k].cache, &s);
                expect(!s.slabs && !s.objects_cached && !s.sheaves);
                expect(!stook_cache_destroy(kinds[k].cache));
        }
        expect(stook_group_usage(group) == 0);
        return 0;
}
