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
        if (!sheaf && stook_cache_is_sealed(cache))
                return "it was freed before, and waits to be free";
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

static STOOK_COLD bool is_at_fault(enum stook_fault fault, struct stook_cache *cache, void *object,
                                   const char *detail)
{
        report(fault, cache, object, detail);
        return false;
}

/* ---- objects with seals ---- */

/* The seal says that the object is free, or it is none. */
static STOOK_COLD bool refuse(struct stook_cache *cache, void *object)
{
        uint64_t key = stook_seal_key(object), says = stook_seal_says(object, stook_seal_at(cache));

        if (!stook_seal_is_good(says))
                return is_at_fault(STOOK_FAULT_OVERRUN, cache, object,
                                   "the seal behind the object was overwritten");
        if ((says & STOOK_SEALED_LIVE) &&
            !stook_seal_canary_is_whole(key, object, stook_seal_at(cache), stook_seal_bytes(says)))
                return is_at_fault(STOOK_FAULT_OVERRUN, cache, object,
                                   "bytes behind the object were written, found when it was freed");
        return is_at_fault(STOOK_FAULT_DOUBLE_FREE, cache, object,
                           stook_watch_where(cache, object));
}

static STOOK_NOINLINE bool seal_end(struct stook_cache *cache, void *object)
{
        uint64_t seal = stook_seal_load(object, stook_seal_at(cache));

        return stook_seal_end(stook_seal_key(object), object, stook_seal_at(cache), seal) ||
               refuse(cache, object);
}

static bool is_untouched(const struct stook_cache *cache, void *object)
{
        size_t at = stook_seal_at(cache);

        return stook_is_hardened(STOOK_HARDEN_CHECK_FREE)
                       ? stook_seal_reads_zero(object, at)
                       : stook_seal_is_filled(stook_seal_key(object), object,
                                              stook_seal_bytes(stook_seal_says(object, at)));
}

static bool seal_begin(struct stook_cache *cache, void *object, size_t bytes, unsigned by)
{
        size_t at = stook_seal_at(cache);
        uint64_t key = stook_seal_key(object), says = stook_seal_says(object, at);

        if (STOOK_UNLIKELY(!stook_seal_is_free(says)))
                return is_at_fault(STOOK_FAULT_CORRUPT, cache, object,
                                   "the seal of a free object was overwritten");
        if (STOOK_UNLIKELY(!is_untouched(cache, object)))
                return is_at_fault(STOOK_FAULT_WRITE_AFTER_FREE, cache, object,
                                   "found when the object was to be allocated");
        stook_seal_unfill(object, stook_seal_bytes(says));
        stook_seal_write(key, object, at, bytes, by);
        return true;
}

bool stook_watch_harden_resize(struct stook_cache *cache, void *object, size_t bytes)
{
        size_t at = stook_seal_at(cache), had, least;
        uint64_t says = stook_seal_says(object, at);

        if (!seal_end(cache, object))
                return false;
        /* The canary, and what the user no longer has: the next free does not wipe so far. */
        had = stook_seal_bytes(says);
        least = had < bytes ? had : bytes;
        memset((char *)object + least, 0, (had + STOOK_SEAL_BYTES < at ? had + STOOK_SEAL_BYTES
                                                                       : at) - least);
        stook_seal_write(stook_seal_key(object), object, at, bytes, stook_seal_made_by(says));
        return true;
}

/* ---- a check of all objects ---- */

static const char *fault_of(const struct stook_cache *cache, void *object, bool live,
                            enum stook_fault *fault)
{
        size_t at = stook_seal_at(cache);
        uint64_t says = stook_seal_says(object, at);

        *fault = STOOK_FAULT_OVERRUN;
        if (!stook_seal_is_good(says))
                return "the seal behind it was overwritten, found by a check of all objects";
        if (live && (says & STOOK_SEALED_LIVE))
                return stook_seal_canary_is_whole(stook_seal_key(object), object, at,
                                                  stook_seal_bytes(says)) ? NULL
                       : "bytes behind the object were written, found by a check of all objects";
        if ((says & STOOK_SEALED_WAITING) == STOOK_SEALED_WAITING)
                return NULL;
        *fault = STOOK_FAULT_WRITE_AFTER_FREE;
        return is_untouched(cache, object) ? NULL : "found by a check of all objects";
}

struct check {
        struct stook_cache *cache;
        int faults;
};

static void check_object(void *object, void *slab, bool out, void *data)
{
        struct check *check = data;
        struct stook_report_about about = {
                .object = object, .cache_name = stook_cache_name(check->cache), .slab = slab,
        };

        about.detail = fault_of(check->cache, object, out, &about.fault);
        if (!about.detail)
                return;
        about.slab = (const void *)
                stook_entry_span(stook_pagemap_get((uintptr_t)object))->start;
        about.offset = (uintptr_t)object - (uintptr_t)about.slab;
        check->faults++;
        stook_report_about_found(&about);
}

int stook_watch_validate_sealed(struct stook_cache *cache)
{
        struct check check = { .cache = cache };

        if (stook_cache_is_sealed(cache))
                stook_slabs_for_each_made(&cache->slabs, check_object, &check);
        return check.faults;
}

/* ---- all of them ---- */

bool stook_watch_harden_alloc(struct stook_cache *cache, void *object, size_t bytes, unsigned by)
{
        if (STOOK_LIKELY(stook_cache_is_sealed(cache)))
                return seal_begin(cache, object, bytes, by);
        if (!stook_is_hardened(STOOK_HARDEN_DOUBLE) || stook_harden_user_begins(object))
                return true;
        report(STOOK_FAULT_CORRUPT, cache, object, "a free object that has a user");
        return false;
}

bool stook_watch_harden_wait(struct stook_cache *cache, void *object)
{
        size_t at = stook_seal_at(cache);
        uint64_t says;

        if (STOOK_LIKELY(stook_cache_is_sealed(cache))) {
                if (!seal_end(cache, object))
                        return false;
                says = stook_seal_says(object, at);
                *stook_seal_word_of(object, at) = stook_seal_of(stook_seal_key(object),
                                                                says | STOOK_SEALED_WAITING);
                return true;
        }
        if (!stook_is_hardened(STOOK_HARDEN_DOUBLE) || stook_harden_user_ends(object))
                return true;
        report(STOOK_FAULT_DOUBLE_FREE, cache, object, stook_watch_where(cache, object));
        return false;
}

void stook_watch_compare(const struct stook_debug *debug, void *object, unsigned was, unsigned is)
{
        static const char *const makes[] = {
                "malloc", "new", "new[]", "aligned new", "aligned new[]",
        };
        static const char *const frees[] = {
                "free or realloc", "delete", "delete[]", "aligned delete", "aligned delete[]",
        };
        char detail[64];

        if (STOOK_LIKELY(was == is || !stook_malloc_pairs))
                return;
        stook_report_format(detail, sizeof(detail), "made by %s, freed by %s",
                            makes[was % STOOK_ENTRY_POINTS], frees[is % STOOK_ENTRY_POINTS]);
        if (debug) {
                stook_debug_report_mismatch(debug, object, detail);
                return;
        }
        stook_report_about(&(struct stook_report_about){
                .fault = STOOK_FAULT_MISMATCH, .object = object, .detail = detail,
        });
}

unsigned stook_watch_compare_debugged(const struct stook_cache *cache, void *object, unsigned is)
{
        const struct stook_debug *debug = stook_cache_debug(cache);
        unsigned was = is;

        /* A heap's objects have no entry point: any call frees them. */
        if (!stook_malloc_pairs || !(debug->flags & STOOK_CACHE_CHECK) || cache->slabs.of_heap)
                return is;
        stook_debug_goes(debug, object, is, &was);
        stook_watch_compare(debug, object, was, is);
        return was;
}

/* What a free says about a live object. False: it names another size, which is reported. */
static bool fits(struct stook_cache *cache, void *object, uint64_t how)
{
        uint64_t says = stook_seal_says(object, stook_seal_at(cache));
        char detail[96];

        if (!stook_malloc_pairs || (how & STOOK_HOW_READERS) || !stook_seal_is_live(says))
                return true;
        stook_watch_compare(NULL, object, stook_seal_made_by(says), stook_how_by(how));
        if (!stook_how_has_size(how) || stook_how_size(how) == stook_seal_bytes(says))
                return true;
        stook_report_format(detail, sizeof(detail), "freed with %u bytes, allocated with %u",
                            (uint64_t)stook_how_size(how), (uint64_t)stook_seal_bytes(says));
        return is_at_fault(STOOK_FAULT_WRONG_SIZE, cache, object, detail);
}

bool stook_watch_harden_free(struct stook_cache *cache, void *object, uint64_t how)
{
        uint64_t key = stook_seal_key(object);
        size_t at = stook_seal_at(cache), bytes;

        if (stook_cache_is_sealed(cache) && !fits(cache, object, how))
                return false;
        /* What waited for readers has had no user since. */
        if (!(how & STOOK_HOW_READERS) && !stook_watch_harden_wait(cache, object))
                return false;
        if (stook_cache_hardened_by(cache, STOOK_HARDEN_ZERO_FREE) && stook_watch_bytes(cache))
                memset(object, 0, stook_watch_bytes(cache));
        if (stook_cache_is_sealed(cache)) {
                bytes = stook_seal_bytes(stook_seal_says(object, at));
                if (!stook_is_hardened(STOOK_HARDEN_CHECK_FREE))
                        stook_seal_fill(key, object, bytes);
                *stook_seal_word_of(object, at) = stook_seal_of_free(key, bytes);
        }
        return true;
}
