/*
 * Purpose: which caches are shown, in which order, and what they are; see info.h.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "cache/cache_watch.h"
#include "debug/debug_modes.h"
#include "cli/info/info.h"

uint64_t info_space_bytes(const struct heap_cache *c)
{
        return c->stats.slabs * c->stats.slab_bytes;
}

/* ---- order; the largest first, but for names and age ---- */

static int most_first(uint64_t x, uint64_t y)
{
        return x > y ? -1 : x < y;
}

static int by_name(const struct heap_cache *x, const struct heap_cache *y)
{
        return strcmp(x->name, y->name);
}

static int by_age(const struct heap_cache *x, const struct heap_cache *y)
{
        return x->cache.born < y->cache.born ? -1 : x->cache.born > y->cache.born;
}

static int by_bytes(const struct heap_cache *x, const struct heap_cache *y)
{
        return most_first(info_space_bytes(x), info_space_bytes(y));
}

static int by_live(const struct heap_cache *x, const struct heap_cache *y)
{
        return most_first(x->stats.objects_live, y->stats.objects_live);
}

static int by_cached(const struct heap_cache *x, const struct heap_cache *y)
{
        return most_first(x->stats.objects_cached, y->stats.objects_cached);
}

static int by_size(const struct heap_cache *x, const struct heap_cache *y)
{
        return most_first(x->stats.object_size, y->stats.object_size);
}

static int by_allocs(const struct heap_cache *x, const struct heap_cache *y)
{
        return most_first(x->stats.alloc_fastpath + x->stats.alloc_slowpath,
                          y->stats.alloc_fastpath + y->stats.alloc_slowpath);
}

static uint64_t waste(const struct heap_cache *c)
{
        uint64_t used = c->stats.objects_live * c->stats.object_size, all = info_space_bytes(c);

        return all > used ? all - used : 0;
}

static int by_loss(const struct heap_cache *x, const struct heap_cache *y)
{
        return most_first(waste(x), waste(y));
}

const char *const info_sorts[] = { "bytes", "name", "live", "cached", "size", "allocs", "loss",
                                   "age", NULL };
static int (*const orders[])(const struct heap_cache *, const struct heap_cache *) = {
        by_bytes, by_name, by_live, by_cached, by_size, by_allocs, by_loss, by_age
};
static int (*order)(const struct heap_cache *, const struct heap_cache *);

static int compare(const void *a, const void *b)
{
        const struct heap_cache *x = *(const struct heap_cache *const *)a;
        const struct heap_cache *y = *(const struct heap_cache *const *)b;
        int answer = order(x, y);

        return answer ? answer : by_age(x, y);
}

static bool is_named(const struct heap_cache *c, const char *pattern)
{
        bool named = !pattern || !fnmatch(pattern, c->name, 0);

        for (unsigned i = 0; i < c->alias_count && !named; i++)
                named = !fnmatch(pattern, c->aliases[i], 0);
        return named;
}

size_t info_choose(const struct heap *h, const struct info_view *view,
                   const struct heap_cache ***chosen)
{
        const struct heap_cache **list = malloc((h->cache_count + 1) * sizeof *list);
        size_t n = 0;

        *chosen = list;
        if (!list)
                return SIZE_MAX;
        for (size_t i = 0; i < h->cache_count; i++) {
                const struct heap_cache *c = &h->caches[i];

                /*
                 * Malloc makes all its classes at once; other caches are there for a reason. The
                 * peak, because a baseline may have been taken off the counters.
                 */
                if ((view->all || c->stats.slabs_peak ||
                     !(c->cache.flags & STOOK_CACHE_OF_MALLOC)) && is_named(c, view->name))
                        list[n++] = c;
        }
        order = by_bytes;
        for (size_t i = 0; view->sort && info_sorts[i]; i++)
                if (!strcmp(view->sort, info_sorts[i]))
                        order = orders[i];
        qsort(list, n, sizeof *list, compare);
        return n;
}

const char *info_option_source(const struct stook_option_state *option)
{
        static const char *const sources[] = { "build", "program", "environment", "run time" };

        return option->name[0] && option->source < 4 ? sources[option->source] : NULL;
}

uint64_t info_ctor(const struct heap_cache *c)
{
        return (uint64_t)(uintptr_t)c->cache.ctor;
}

const char *info_debug(const struct heap_cache *c, char letters[16])
{
        static const struct { uint64_t flag; char letter; } modes[] = {
                { STOOK_CACHE_CHECK, 'F' }, { STOOK_CACHE_RED_ZONE, 'Z' },
                { STOOK_CACHE_POISON, 'P' }, { STOOK_CACHE_STORE_USER, 'U' },
                { STOOK_CACHE_TRACE, 'T' }, { STOOK_CACHE_MAY_FAIL, 'A' },
                { STOOK_CACHE_QUARANTINE, 'Q' }, { STOOK_DEBUG_C, 'C' }, { STOOK_DEBUG_V, 'V' },
        };
        char *at = letters;

        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
                if (c->cache.debug_modes & modes[i].flag)
                        *at++ = modes[i].letter;
        *at = 0;
        return letters;
}

const char *info_flags(const struct heap_cache *c, char letters[16])
{
        uint64_t flags = c->cache.flags;
        char *at = letters;

        if (c->alias_count)
                *at++ = '*';
        if (flags & STOOK_CACHE_HWCACHE_ALIGN)
                *at++ = 'A';
        if (info_ctor(c))
                *at++ = 'c';
        if (flags & STOOK_CACHE_ACCOUNT)
                *at++ = 'g';
        if (flags & STOOK_CACHE_OF_MALLOC)
                *at++ = 'm';
        if (flags & STOOK_CACHE_NO_SHEAVES)
                *at++ = 'n';
        if (c->cache.slabs.in_random_order)
                *at++ = 'o';
        if (flags & (STOOK_CACHE_RCU | STOOK_CACHE_TYPESAFE_BY_RCU))
                *at++ = 'r';
        if (c->cache.watch & STOOK_WATCH_DEBUG)
                *at++ = 'd';
        if (c->cache.watch & STOOK_WATCH_RECORD)
                *at++ = 't';
        if (c->cache.watch & STOOK_WATCH_PROFILE)
                *at++ = 'p';
        if (c->cache.state == STOOK_CACHE_DYING)
                *at++ = 'D';
        *at = 0;
        return letters;
}
