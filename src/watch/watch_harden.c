/*
 * Purpose: what hardening (harden/harden.h) does to an object of a hardened cache when it is
 * allocated and freed, and where an object lies that was freed before.
 * Place: called by watch.c, and for reports; reads slot, barn and slab.
 * Concurrency: any thread, any instruction. The search reads sheaves of other threads racily: their
 *  memory stays, so at worst it finds nothing.
 */
#include "watch/watch.h"

#include "pages/pagemap.h"
#include "pages/span.h"
#include "report/report.h"
#include "home/home.h"

/* ---- where an object lies ---- */

struct search {
        const void *object;
        const struct stook_sheaf *in;   /* NULL: not found yet */
};

static void look(struct stook_sheaf *sheaf, void *data)
{
        struct search *search = data;
        unsigned size = stook_sheaf_size(sheaf), most = stook_sheaf_capacity(sheaf);

        for (unsigned i = 0; i < size && i < most; i++)
                if (__atomic_load_n(&sheaf->objects[i], __ATOMIC_RELAXED) == search->object)
                        search->in = sheaf;
}

static const struct stook_sheaf *sheaf_with(const struct stook_cache *cache, const void *object)
{
        struct search search = { .object = object };

        stook_sheaf_for_each(cache->index, look, &search);
        return search.in;
}

static const char *of_slot(struct stook_cache *cache, unsigned slot,
                           const struct stook_sheaf *sheaf)
{
        struct stook_line *line = stook_slots_line(slot, cache->front.offset >> STOOK_LINE_SHIFT);

        for (unsigned node = 0; node < stook_os_node_count(); node++)
                if (stook_home_sheaf(&cache->front, slot, node) == sheaf)
                        return "it is free, on its way to its node";
        if (line && __atomic_load_n(&line->pair.lo, __ATOMIC_RELAXED) == (uintptr_t)sheaf)
                return "it is free in the main sheaf of a slot";
        if (line && __atomic_load_n(&line->pair.hi, __ATOMIC_RELAXED) == (uintptr_t)sheaf)
                return "it is free in the spare sheaf of a slot";
        return NULL;
}

static const char *of_sheaf(struct stook_cache *cache, const struct stook_sheaf *sheaf)
{
        const char *where = NULL;

        if (stook_sheaf_is_rcu(sheaf))
                return "it waits for readers";
        if (stook_sheaf_is_lent(sheaf))
                return "it is free in a prefilled sheaf";
        for (unsigned slot = 0; !where && slot < stook_slots_bound(); slot++)
                where = of_slot(cache, slot, sheaf);
        return where ? where : "it is free in a barn";
}

STOOK_COLD const char *stook_watch_where(struct stook_cache *cache, const void *object)
{
        const struct stook_sheaf *sheaf;

        if (!stook_cache_is_hardened(cache))
                return NULL;
        if (!stook_slab_object_out(&cache->slabs, object))
                return "it is free in its slab already, or was never handed out";
        sheaf = sheaf_with(cache, object);
        /* Sheaves of many caches, and chains of objects that wait for readers, are not searched. */
        return sheaf ? of_sheaf(cache, sheaf) : "it was freed before, and may wait for readers";
}

/* ---- what is done to objects ---- */

static STOOK_COLD void report(enum stook_fault fault, struct stook_cache *cache, void *object,
                              const char *detail)
{
        const struct stook_span *span = stook_entry_span(stook_pagemap_get((uintptr_t)object));

        stook_report_about(&(struct stook_report_about){
                .fault = fault, .object = object, .cache_name = stook_cache_name(cache),
                .detail = detail,
                .slab = (const void *)span->start, .offset = (uintptr_t)object - span->start,
        });
}

bool stook_watch_harden_alloc(struct stook_cache *cache, void *object)
{
        if (!stook_is_hardened(STOOK_HARDEN_DOUBLE) || stook_harden_user_begins(object))
                return true;
        report(STOOK_FAULT_CORRUPT, cache, object, "a free object that has a user");
        return false;
}

bool stook_watch_harden_wait(struct stook_cache *cache, void *object)
{
        if (!stook_is_hardened(STOOK_HARDEN_DOUBLE) || stook_harden_user_ends(object))
                return true;
        report(STOOK_FAULT_DOUBLE_FREE, cache, object, stook_watch_where(cache, object));
        return false;
}

bool stook_watch_harden_free(struct stook_cache *cache, void *object, uint64_t how)
{
        /* What waited for readers has had no user since. */
        if (!(how & STOOK_HOW_READERS) && !stook_watch_harden_wait(cache, object))
                return false;
        if (stook_cache_hardened_by(cache, STOOK_HARDEN_ZERO_FREE))
                memset(object, 0, stook_slow_bytes(cache));
        return true;
}
