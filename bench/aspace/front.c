/*
 * bench/aspace/front.c - see front.h; the calls are those of <stook/cache.h>, <stook/sheaf.h> and
 * <stook/rcu.h>
 */
#include "front.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <stook/cache.h>
#include <stook/rcu.h>
#include <stook/sheaf.h>
#include <stook/stats.h>

#include "../none/none.h"
#include "address_space.h"

enum front { SHEAVES, ARRAY, SLABS, CPU_SLAB, CPU_SLAB_CAS, DOUBLE };
static enum front front = SHEAVES;
static enum front_preallocation preallocation = FRONT_EXACT;
static _Thread_local unsigned height;

#define KINDS     3
#define ARRAY_MAX 32
#define BATCH     128

struct front_cache {
        struct stook_cache *cache;      /* or: */
        struct none_cache *none;
        unsigned kind;
        bool nodes;
        struct front_counts counts;     /* of DOUBLE and the older ones; one thread */
};

static struct front_cache *node_cache, *area_cache, *page_cache;
static _Thread_local uint64_t lent;     /* nodes taken from prefilled sheaves */

/* A thread's arrays (DOUBLE). */
static _Thread_local struct array {
        unsigned n;
        void *objects[ARRAY_MAX];
} arrays[KINDS];

/* A thread's objects that wait for a grace period. */
struct batch {
        struct stook_rcu_head head;
        struct front_cache *cache;
        unsigned n;
        void *objects[BATCH];
};
static _Thread_local struct batch *batches[KINDS];

bool front_choose(const char *name)
{
        static const char *const names[] = { "sheaves",  "array",        "slabs",
                                             "cpu-slab", "cpu-slab-cas", "double" };

        for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (!strcmp(name, names[i])) {
                        front = (enum front)i;
                        return !stook_rcu_use(&stook_urcu_bp);
                }
        return false;
}

void front_preallocate(enum front_preallocation how)
{
        preallocation = how;
}

void front_height(unsigned h)
{
        height = h;
}

/* ---- one object ---- */

static void *none_take(struct front_cache *c)
{
        c->counts.taken_behind += c->nodes;
        return front == CPU_SLAB_CAS ? none_cas_alloc(c->none) : none_rseq_alloc(c->none);
}

static void none_give(struct front_cache *c, void *object)
{
        c->counts.given_behind += c->nodes;
        if (front == CPU_SLAB_CAS)
                none_cas_free(c->none, object);
        else
                none_rseq_free(c->none, object);
}

static void *take(struct front_cache *c)
{
        struct array *a = &arrays[c->kind];

        if (c->cache)
                return stook_cache_alloc(c->cache);
        if (front != DOUBLE)
                return none_take(c);
        if (!a->n)
                while (a->n < ARRAY_MAX && (a->objects[a->n] = none_take(c)))
                        a->n++;
        c->counts.taken += c->nodes;
        return a->n ? a->objects[--a->n] : NULL;
}

static void give(struct front_cache *c, void *object)
{
        struct array *a = &arrays[c->kind];

        if (c->cache) {
                stook_cache_free(c->cache, object);
                return;
        }
        if (front != DOUBLE) {
                none_give(c, object);
                return;
        }
        if (a->n == ARRAY_MAX)
                while (a->n > ARRAY_MAX / 2)
                        none_give(c, a->objects[--a->n]);
        c->counts.given += c->nodes;
        a->objects[a->n++] = object;
}

/* ---- the calls the tree makes ---- */

struct stook_cache *front_cache_create(const char *name, size_t size,
                                       const struct stook_cache_args *args);
int   front_cache_destroy(struct stook_cache *cache);
void *front_cache_alloc(struct stook_cache *cache);
int   front_cache_alloc_bulk(struct stook_cache *cache, unsigned flags, size_t n, void **objects);
void  front_cache_free(struct stook_cache *cache, void *object);
int   front_cache_free_rcu(struct stook_cache *cache, void *object);
void  front_cache_rcu_barrier(struct stook_cache *cache);
struct stook_sheaf *front_sheaf_prefill(struct stook_cache *cache, unsigned flags, size_t n);
int front_sheaf_refill(struct stook_cache *cache, unsigned flags, struct stook_sheaf **sheaf,
                       size_t n);
size_t front_sheaf_available(const struct stook_sheaf *sheaf);
void *front_sheaf_alloc(struct stook_cache *cache, struct stook_sheaf *sheaf);
void  front_sheaf_return(struct stook_cache *cache, struct stook_sheaf *sheaf);

static struct front_cache *of(struct stook_cache *cache)
{
        return (struct front_cache *)cache;
}

struct stook_cache *front_cache_create(const char *name, size_t size,
                                       const struct stook_cache_args *args)
{
        static unsigned kinds;
        struct stook_cache_args mine =
                args ? *args : (struct stook_cache_args){ .args_size = sizeof(mine) };
        struct front_cache *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->kind = kinds++ % KINDS;
        c->nodes = !strcmp(name, "maple_node");
        if (front == SLABS)
                mine.flags |= STOOK_CACHE_NO_SHEAVES;
        if (front == ARRAY)
                mine.barn_full = mine.barn_empty = STOOK_NONE;
        if (front <= SLABS)
                c->cache = stook_cache_create(name, size, &mine);
        else
                c->none = none_create(size, 0, false);
        if (!c->cache && !c->none) {
                free(c);
                return NULL;
        }
        if (c->nodes)
                node_cache = c;
        return (struct stook_cache *)c;
}

int front_cache_destroy(struct stook_cache *cache)
{
        struct front_cache *c = of(cache);
        int error = c->cache ? stook_cache_destroy(c->cache) : none_destroy(c->none) ? 0 : -EBUSY;

        if (!error)
                free(c);
        return error;
}

/*
 * What the worst of writes could need, beyond the first node; given back unused, as most of it was.
 */
static void take_worst(struct front_cache *c)
{
        unsigned n = 3 * height;
        void *objects[64];

        if (preallocation == FRONT_EXACT || preallocation == FRONT_OWN_SHEAF || !c->nodes ||
            n > 64)
                return;
        if (c->cache && preallocation == FRONT_WORST_BULK) {
                if (!stook_cache_alloc_bulk(c->cache, 0, n, objects))
                        stook_cache_free_bulk(c->cache, n, objects);
                return;
        }
        for (unsigned i = 0; i < n; i++)
                objects[i] = preallocation == FRONT_WORST_LOOP || c->cache ? take(c) : none_take(c);
        for (unsigned i = 0; i < n; i++)
                if (preallocation == FRONT_WORST_LOOP || c->cache)
                        give(c, objects[i]);
                else
                        none_give(c, objects[i]);
}

void *front_cache_alloc(struct stook_cache *cache)
{
        take_worst(of(cache));
        return take(of(cache));
}

int front_cache_alloc_bulk(struct stook_cache *cache, unsigned flags, size_t n, void **objects)
{
        struct front_cache *c = of(cache);

        if (c->cache)
                return stook_cache_alloc_bulk(c->cache, flags, n, objects);
        for (size_t i = 0; i < n; i++)
                if (!(objects[i] = take(c))) {
                        while (i)
                                give(c, objects[--i]);
                        return -ENOMEM;
                }
        return 0;
}

void front_cache_free(struct stook_cache *cache, void *object)
{
        give(of(cache), object);
}

static void batch_done(struct stook_rcu_head *head)
{
        struct batch *b = (struct batch *)head;         /* head is its first field */

        for (unsigned i = 0; i < b->n; i++)
                give(b->cache, b->objects[i]);
        free(b);
}

int front_cache_free_rcu(struct stook_cache *cache, void *object)
{
        struct front_cache *c = of(cache);
        struct batch **at = &batches[c->kind], *b = *at;

        if (c->cache)
                return stook_cache_free_rcu(c->cache, object);
        if (!b) {
                b = *at = malloc(sizeof(*b));
                if (!b)
                        return -EAGAIN;
                b->cache = c;
                b->n = 0;
        }
        b->objects[b->n++] = object;
        if (b->n == BATCH) {
                *at = NULL;
                stook_urcu_bp.call(&b->head, batch_done);
        }
        return 0;
}

void front_settle(void)
{
        for (unsigned i = 0; i < KINDS; i++)
                if (batches[i]) {
                        stook_urcu_bp.call(&batches[i]->head, batch_done);
                        batches[i] = NULL;
                }
        if (front <= SLABS)
                stook_rcu_barrier();
        stook_urcu_bp.barrier();
}

void front_cache_rcu_barrier(struct stook_cache *cache)
{
        (void)cache;
        front_settle();
}

/* ---- prefilled: where there are no sheaves, an array ---- */

struct made {
        unsigned n;
        void *objects[100];
};

/* A sheaf on loan is the library's; what stands for one is a struct made. */
static bool is_lent(const struct front_cache *c)
{
        return c->cache && preallocation != FRONT_OWN_SHEAF;
}

/* Taken and put back: then the CPU's own sheaf has them, for as long as this thread is alone. */
static int fill_own_sheaf(struct front_cache *c, struct made *m, size_t n)
{
        int error = stook_cache_alloc_bulk(c->cache, 0, n, m->objects);

        if (!error) {
                stook_cache_free_bulk(c->cache, n, m->objects);
                m->n = (unsigned)n;
        }
        return error;
}

struct stook_sheaf *front_sheaf_prefill(struct stook_cache *cache, unsigned flags, size_t n)
{
        struct front_cache *c = of(cache);
        struct stook_sheaf *sheaf = NULL;

        take_worst(c);
        if (is_lent(c))
                return stook_sheaf_prefill(c->cache, flags, n);
        struct made *m = malloc(sizeof(*m));
        if (m)
                m->n = 0;
        sheaf = (struct stook_sheaf *)m;
        if (m && front_sheaf_refill(cache, flags, &sheaf, n)) {
                front_sheaf_return(cache, sheaf);
                return NULL;
        }
        return sheaf;
}

int front_sheaf_refill(struct stook_cache *cache, unsigned flags, struct stook_sheaf **sheaf,
                       size_t n)
{
        struct front_cache *c = of(cache);
        struct made *m = (struct made *)*sheaf;

        if (is_lent(c))
                return stook_sheaf_refill(c->cache, flags, sheaf, n);
        if (n > sizeof(m->objects) / sizeof(m->objects[0]))
                return -ENOMEM;
        if (c->cache)
                return fill_own_sheaf(c, m, n);
        while (m->n < n) {
                m->objects[m->n] = take(c);
                if (!m->objects[m->n])
                        return -ENOMEM;
                m->n++;
        }
        return 0;
}

size_t front_sheaf_available(const struct stook_sheaf *sheaf)
{
        return is_lent(node_cache) ? stook_sheaf_available(sheaf) : ((const struct made *)sheaf)->n;
}

void *front_sheaf_alloc(struct stook_cache *cache, struct stook_sheaf *sheaf)
{
        struct made *m = (struct made *)sheaf;

        if (is_lent(of(cache))) {
                lent += of(cache)->nodes;
                return stook_sheaf_alloc(of(cache)->cache, sheaf);
        }
        if (of(cache)->cache)
                return m->n && m->n-- ? stook_cache_alloc(of(cache)->cache) : NULL;
        return m->n ? m->objects[--m->n] : NULL;
}

void front_sheaf_return(struct stook_cache *cache, struct stook_sheaf *sheaf)
{
        struct made *m = (struct made *)sheaf;

        if (is_lent(of(cache))) {
                stook_sheaf_return(of(cache)->cache, sheaf);
                return;
        }
        while (m->n && !of(cache)->cache)
                give(of(cache), m->objects[--m->n]);
        free(m);
}

struct front_counts front_counts(void)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };
        struct front_counts none = { 0 };

        if (!node_cache)
                return none;
        if (!node_cache->cache)
                return node_cache->counts;
        if (stook_cache_get_stats(node_cache->cache, &s))
                return none;
        return (struct front_counts){ s.alloc_fastpath,
                                      s.alloc_slowpath + s.sheaf_refill,
                                      s.free_fastpath + s.free_rcu_sheaf,
                                      s.free_slowpath + s.sheaf_flush,
                                      s.alloc_slowpath,
                                      s.free_slowpath,
                                      lent };
}

uint64_t front_barn_calls(void)
{
        struct front_cache *all[] = { node_cache, area_cache, page_cache };
        uint64_t sum = 0;

        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
                struct stook_cache_stats s = { .stats_size = sizeof(s) };

                if (all[i] && all[i]->cache && !stook_cache_get_stats(all[i]->cache, &s))
                        sum += s.barn_get + s.barn_put;
        }
        return sum;
}

/* ---- what page faults allocate ---- */

bool front_pages_create(size_t object_bytes)
{
        page_cache = of(front_cache_create("page", object_bytes, NULL));
        return page_cache != NULL;
}

void *front_page_take(void)
{
        return take(page_cache);
}

void front_pages_give(size_t n, void **objects)
{
        if (page_cache->cache) {
                stook_cache_free_bulk(page_cache->cache, n, objects);
                return;
        }
        for (size_t i = 0; i < n; i++)
                give(page_cache, objects[i]);
}

/* ---- areas ---- */

struct area *vma_new(void)
{
        struct stook_cache_args args = { .args_size = sizeof(args),
                                         .flags = front <= SLABS ? STOOK_CACHE_RCU : 0 };
        struct front_cache *c = __atomic_load_n(&area_cache, __ATOMIC_ACQUIRE), *none = NULL;

        if (!c) {
                c = of(front_cache_create("area", sizeof(struct area), &args));
                if (!__atomic_compare_exchange_n(&area_cache, &none, c, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_ACQUIRE)) {
                        front_cache_destroy((struct stook_cache *)c);
                        c = none;
                }
        }
        return take(c);
}

void vma_delete(struct area *area)
{
        front_cache_free_rcu((struct stook_cache *)area_cache, area);
}
