/*
 * Purpose: one look at a heap, its caches first; see heap.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/heap/heap_inside.h"

#define ALIASES_MAX 4096                /* of one cache that are looked at; arbitrary */
#define LOOKS       3                   /* while the table of caches changes */

bool heap_more(void **items, size_t count, size_t item_bytes)
{
        size_t room = count ? count * 2 : 1;
        void *grown;

        if (count & (count - 1))
                return true;
        grown = room > HEAP_ITEMS_MAX ? NULL : realloc(*items, room * item_bytes);
        if (grown)
                *items = grown;
        return grown;
}

bool heap_in_circle(struct heap_circle *circle, uint64_t at)
{
        if (circle->power && at == circle->seen)
                return true;
        if (++circle->steps >= circle->power) {
                circle->seen = at;
                circle->power = circle->power ? circle->power * 2 : 1;
                circle->steps = 0;
        }
        return false;
}

bool heap_note(struct heap *h, const char *what, uint64_t address, unsigned cache)
{
        if (!heap_more((void **)&h->oddities, h->oddity_count, sizeof *h->oddities))
                return false;
        h->oddities[h->oddity_count++] = (struct heap_oddity){ .what = what, .address = address,
                                                              .cache = (uint16_t)cache };
        return true;
}

struct heap_cache *heap_cache_of(const struct heap *h, unsigned index)
{
        unsigned at = index < STOOK_CACHES_MAX ? h->cache_of_index[index] : 0;

        return at ? &h->caches[at - 1] : NULL;
}

/* ---- caches ---- */

static bool lives(const struct stook_cache *c)
{
        return c->state == STOOK_CACHE_LIVE || c->state == STOOK_CACHE_DYING;
}

static void copy_stats(struct heap_cache *c)
{
        const struct stook_cache *from = &c->cache;
        struct stook_counters counters = from->counters;
        struct stook_cache_stats *s = &c->stats;

        s->stats_size = sizeof *s;
        counters.far = c->seldom.counters;
#define COPY(counter) s->counter = *stook_counter_at(&counters, STOOK_STAT_##counter);
        STOOK_COUNTERS(COPY)
#undef COPY
        memcpy(s->name, c->name, sizeof s->name);
        s->object_size = from->object_size;
        s->stride = from->slabs.stride;
        s->objects_per_slab = from->slabs.objects;
        s->slab_bytes = from->slabs.slab_bytes;
        s->sheaf_capacity = from->barns.capacity;
        s->slabs_peak = from->slabs.slabs_peak;
        s->objects_peak = from->slabs.objects_peak;
}

static void raise(uint64_t *peak, uint64_t now)
{
        if (*peak < now && (int64_t)now > 0)
                *peak = now;
}

/* The process notes peaks when a slab is made; there may be more objects by now. */
static void raise_peaks(struct stook_cache_stats *s)
{
        raise(&s->slabs_peak, s->slabs);
        raise(&s->objects_peak, s->alloc_slowpath + s->sheaf_refill - s->free_slowpath -
                                s->sheaf_flush);
}

/* Objects with users, once all counts are there. */
static void count_live(struct heap *h)
{
        for (size_t i = 0; i < h->cache_count; i++) {
                struct stook_cache_stats *s = &h->caches[i].stats;
                uint64_t allocated = s->alloc_fastpath + s->alloc_slowpath;
                uint64_t freed = s->free_fastpath + s->free_slowpath + s->free_rcu_sheaf;

                s->objects_live = allocated > freed ? allocated - freed : 0;
                raise_peaks(s);
        }
}

static int read_aliases(struct heap *h, struct heap_cache *c)
{
        struct stook_alias *at = c->seldom.aliases, alias;

        while (at && c->alias_count < ALIASES_MAX && !heap_copy(h, at, &alias, sizeof alias)) {
                if (!heap_more((void **)&c->aliases, c->alias_count, sizeof *c->aliases))
                        return -ENOMEM;
                memcpy(c->aliases[c->alias_count], alias.name, sizeof alias.name);
                c->aliases[c->alias_count++][sizeof alias.name - 1] = 0;
                at = alias.next;
        }
        return 0;
}

/*
 * Pages that were never written may be missing in a core: the system leaves out mappings without
 * content. Such pages are zeros.
 */
static int copy_seldom(struct heap *h, const struct stook_seldom *at, struct stook_seldom *out)
{
        int error = heap_copy(h, at, out, sizeof *out);

        if (error != -EFAULT)
                return error;
        memset(out, 0, sizeof *out);
        /* A page may begin in the midst of it, at a word. A failed copy leaves zeros. */
        for (size_t i = 0; i < sizeof *out; i += sizeof(uint64_t))
                heap_copy(h, (const char *)at + i, (char *)out + i, sizeof(uint64_t));
        return 0;
}

/* What lies below the table, and the name, which may lie there. */
static int read_seldom(struct heap *h, struct heap_cache *c, uint64_t at)
{
        uint64_t here = c->address + offsetof(struct stook_cache, short_name);
        int error = copy_seldom(h, (const void *)(uintptr_t)at, &c->seldom);

        if ((uint64_t)(uintptr_t)c->cache.slabs.name == here)
                memcpy(c->name, c->cache.short_name, sizeof c->cache.short_name);
        else
                memcpy(c->name, c->seldom.name, sizeof c->name);
        c->name[sizeof c->name - 1] = 0;
        return error;
}

static int add_cache(struct heap *h, const struct stook_cache *from, uint64_t base, unsigned index)
{
        struct heap_cache *c;
        int error;

        /* What a walk over slabs divides by. */
        if (from->index != index || !from->slabs.stride || !from->slabs.objects ||
            from->slabs.objects > STOOK_SLAB_OBJECTS_MAX)
                return heap_note(h, "a cache makes no sense", base + index * sizeof *from,
                                 index) ? 0 : -ENOMEM;
        if (!heap_more((void **)&h->caches, h->cache_count, sizeof *h->caches))
                return -ENOMEM;
        c = &h->caches[h->cache_count++];
        memset(c, 0, sizeof *c);
        c->cache = *from;
        c->address = base + index * sizeof *from;
        error = read_seldom(h, c, base - (index + 1) * sizeof c->seldom);
        if (error)
                return error;
        copy_stats(c);
        return read_aliases(h, c);
}

static int by_age(const void *a, const void *b)
{
        const struct heap_cache *x = a, *y = b;

        return x->cache.born < y->cache.born ? -1 : x->cache.born > y->cache.born;
}

/* The whole table; @copies has *@bound. */
static int copy_caches(struct heap *h, struct stook_cache **copies, uint64_t *base, uint32_t *bound)
{
        const struct stook_root *r = &h->library->root;
        struct stook_cache *table;
        int error = heap_copy(h, r->caches, &table, sizeof table);

        if (!error)
                error = heap_copy(h, r->caches_used, bound, sizeof *bound);
        if (error)
                return error;
        if (*bound > STOOK_CACHES_MAX)
                return -EBADMSG;
        *base = (uint64_t)(uintptr_t)table;
        *copies = aligned_alloc(STOOK_CACHELINE, (*bound + 1) * sizeof **copies);
        if (!*copies)
                return -ENOMEM;
        return heap_copy(h, table, *copies, *bound * sizeof **copies);
}

static int read_caches(struct heap *h)
{
        struct stook_cache *copies = NULL;
        uint32_t bound = 0;
        uint64_t base = 0;
        int error = copy_caches(h, &copies, &base, &bound);

        for (unsigned i = 1; i < bound && !error; i++)
                if (lives(&copies[i]))
                        error = add_cache(h, &copies[i], base, i);
        free(copies);
        if (h->cache_count)
                qsort(h->caches, h->cache_count, sizeof *h->caches, by_age);
        for (size_t i = 0; i < h->cache_count; i++)
                h->cache_of_index[h->caches[i].cache.index] = (uint16_t)(i + 1);
        return error;
}

static void free_cache(struct heap_cache *c)
{
        free(c->aliases);
        free(c->node);
        free(c->slot_objects);
}

/* Leaves out the caches that are not those any more that they were when the look began. */
static int drop_changed(struct heap *h)
{
        struct stook_cache *copies = NULL;
        uint32_t bound = 0;
        uint64_t base;
        size_t kept = 0;
        int error = copy_caches(h, &copies, &base, &bound);

        for (size_t i = 0; i < h->cache_count && !error; i++) {
                struct heap_cache *c = &h->caches[i];
                const struct stook_cache *now = &copies[c->cache.index];

                if (c->cache.index < bound && lives(now) && now->born == c->cache.born) {
                        h->caches[kept++] = *c;
                        continue;
                }
                free_cache(c);
                h->changed++;
        }
        free(copies);
        if (error)
                return error;
        h->cache_count = kept;
        memset(h->cache_of_index, 0, STOOK_CACHES_MAX * sizeof *h->cache_of_index);
        for (size_t i = 0; i < kept; i++)
                h->cache_of_index[h->caches[i].cache.index] = (uint16_t)(i + 1);
        return 0;
}

/* ---- the whole ---- */

static int read_metadata(struct heap *h)
{
        struct stook_meta_range range[STOOK_META_RANGES];
        int error = heap_copy(h, h->library->root.meta, range, sizeof range);

        for (unsigned i = 0; i < STOOK_META_RANGES && !error; i++)
                if (range[i].state == 2) {
                        h->pages.metadata_bytes += range[i].bump;
                        if (h->present)
                                h->resident.own += memory_pages_resident(h->present, range[i].base,
                                                                         range[i].bump);
                }
        if (!error)
                error = heap_copy(h, h->library->root.maintenance_process, &h->maintainer,
                                  sizeof h->maintainer);
        if (!error)
                error = heap_copy(h, h->library->root.huge_dear, &h->huge_dear,
                                  sizeof h->huge_dear);
        if (!error)
                error = heap_copy(h, h->library->root.options, h->options, sizeof h->options);
        for (unsigned i = 0; i < STOOK_OPTIONS; i++) {
                h->options[i].name[sizeof h->options[i].name - 1] = 0;
                h->options[i].value[sizeof h->options[i].value - 1] = 0;
        }
        return error;
}

/* The pages of slabs: what of them objects have that are live, or in sheaves; the rest is free. */
static void divide_resident(struct heap *h)
{
        struct heap_resident *r = &h->resident;

        for (size_t i = 0; i < h->cache_count; i++) {
                const struct stook_cache_stats *s = &h->caches[i].stats;

                r->live += s->objects_live * s->stride;
                r->cached += s->objects_cached * s->stride;
        }
        if (r->live > r->slabs)
                r->live = r->slabs;
        if (r->cached > r->slabs - r->live)
                r->cached = r->slabs - r->live;
        r->free_objects = r->slabs - r->live - r->cached;
}

static int look(struct heap *h)
{
        struct timespec now;
        int error;

        clock_gettime(CLOCK_MONOTONIC, &now);
        h->at_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
        h->nodes = h->library->root.nodes;
        h->cache_of_index = calloc(STOOK_CACHES_MAX, sizeof *h->cache_of_index);
        error = h->cache_of_index ? read_caches(h) : -ENOMEM;
        if (!error)
                error = heap_read_sheaves(h);
        if (!error)
                error = heap_read_places(h);
        if (!error && h->detail >= HEAP_SLABS) {
                h->present = memory_pages_open(h->memory);
                error = heap_read_slabs(h);
        }
        if (!error)
                error = heap_read_groups(h);
        if (!error)
                error = read_metadata(h);
        if (!error)
                error = drop_changed(h);
        if (!error)
                count_live(h);
        if (!error)
                error = heap_read_heaps(h);
        if (h->present) {
                h->resident.known = memory_pages_close(h->present);
                h->present = NULL;
                divide_resident(h);
        }
        return error;
}

static void explain(struct heap *h, int error)
{
        const char *text = error == -ESRCH ? "the process is gone" :
                           error == -EPERM ? "the system does not let this user look there" :
                           error == -ENOMEM ? "no memory for what the heap has" :
                           error == -EBADMSG ? "the heap's own data is damaged" :
                           error == -EFAULT ? "memory that the heap's own data names is not there" :
                           strerror(-error);

        snprintf(h->error, sizeof h->error, "%s", text);
}

int heap_read(struct heap *h, struct memory *memory, const struct library *library,
              enum heap_detail detail)
{
        char error_text[sizeof h->error];
        int error = 0;

        for (unsigned i = 0; i < LOOKS; i++) {
                memset(h, 0, sizeof *h);
                h->memory = memory;
                h->library = library;
                h->detail = detail;
                error = look(h);
                if (!error && !h->changed)
                        return 0;
                if (error == -ESRCH || error == -EPERM || error == -ENOMEM)
                        break;
                if (i + 1 < LOOKS)
                        heap_free(h);
        }
        if (!error)
                return 0;
        explain(h, error);
        memcpy(error_text, h->error, sizeof error_text);
        heap_free(h);
        memcpy(h->error, error_text, sizeof error_text);
        return error;
}

void heap_free(struct heap *h)
{
        for (size_t i = 0; i < h->cache_count; i++)
                free_cache(&h->caches[i]);
        free(h->caches);
        free(h->cache_of_index);
        free(h->sheaves);
        free(h->objects);
        free(h->slabs);
        free(h->parts);
        free(h->spans);
        free(h->precharged);
        free(h->groups);
        free(h->heaps);
        free(h->oddities);
        memset(h, 0, sizeof *h);
}
