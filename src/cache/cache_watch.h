/*
 * Purpose: what a cache, or malloc, asks of src/watch: caches whose every allocation and free is
 * looked at, by the debug modes, by recording, by profiles, by hardening, or for a limit. `watch`
 * of a cache says by which. 0: by none, and nothing here is asked but what a new cache is watched
 * by.
 * Place: the calls lead up, through one table and the edge of a watched cache (cache_slow.h).
 *
 * A watched cache has no hot path. The line of its index stays empty for ever, as that of an
 * accounted cache (account/account.h): inlined calls and malloc's hot paths miss, and the slow call
 * asks the watch. A cache that is debugged has no sheaves. Another watched cache has its sheaves at
 * the line of a second index.
 * Concurrency: any thread, any instruction. `watch` is const after creation.
 */
#ifndef STOOK_CACHE_WATCH_H
#define STOOK_CACHE_WATCH_H

#include <stook/debug.h>
#include "cache/cache_slow.h"
#include "pages/span.h"
#include "report/report.h"

enum stook_watch {
        STOOK_WATCH_DEBUG   = 1,        /* the modes of src/debug: no sheaves, never merged */
        STOOK_WATCH_RECORD  = 2,
        STOOK_WATCH_PROFILE = 4,
        STOOK_WATCH_FAIL    = 8,        /* allocations are made to fail (debug/fail.c) */
        STOOK_WATCH_SEAL    = 16,       /* with HARDEN: objects have seals (harden/seal.h) */
        STOOK_WATCH_HARDEN  = 32,       /* watch_harden.c; never together with DEBUG */
        STOOK_WATCH_LIMIT   = 64,       /* objects of callers are counted: src/limit */
        STOOK_WATCH_EMPTY   = 128,      /* with HARDEN: nobody may touch an object */
};

/* The debug modes that a cache may be made with (<stook/debug.h>). */
#define STOOK_DEBUG_FLAGS \
        (STOOK_CACHE_CHECK | STOOK_CACHE_RED_ZONE | STOOK_CACHE_POISON | STOOK_CACHE_STORE_USER | \
         STOOK_CACHE_TRACE | STOOK_CACHE_MAY_FAIL | STOOK_CACHE_QUARANTINE)

/* Are the sheaves of a cache at the line of a second index? */
STOOK_INLINE bool stook_watch_wants_line(uint32_t watch)
{
        return watch && !(watch & STOOK_WATCH_DEBUG);
}

/*
 * What makes objects, and the calls of the other side: STOOK_HOW_BY. The drop-in's assembly has
 * them in numbers. While stook_malloc_pairs, what does not fit is reported.
 */
enum stook_entry_point {
        STOOK_BY_MALLOC, STOOK_BY_NEW, STOOK_BY_NEW_ARRAY,
        STOOK_BY_NEW_ALIGNED, STOOK_BY_NEW_ARRAY_ALIGNED,
        STOOK_ENTRY_POINTS,
};

struct stook_watch_duties {
        /* ---- of any cache, when it is made ---- */
        /*
         * What a cache of that name is to be watched by: enum stook_watch. *@debug: the debug modes
         * that STOOK_DEBUG asks for it, besides those of its maker, @own. No lock is held.
         */
        uint32_t (*wanted)(const char *name, uint64_t own, uint64_t *debug);

        /* ---- of a watched cache ---- */
        /*
         * It gets @debug modes, which are not 0: sets what lies behind its objects, and what makes
         * them. @hidden: stook_rcu_cache_init. False: no memory.
         */
        bool (*make)(struct stook_cache *cache, uint64_t debug, uint32_t hidden,
                     struct stook_slabs_args *args);
        /*
         * Before it is destroyed: its objects leave the quarantine, and those that were isolated go
         * to their slabs. Registry mutex held.
         */
        void (*end)(struct stook_cache *cache);
        /* As stook_rcu_free. What readers have left comes to the edge, with STOOK_HOW_READERS. */
        int (*free_rcu)(struct stook_cache *cache, void *object, bool nolock);
        /* Readers have left these, which go back to the slabs without a call of `free`. */
        void (*left)(struct stook_cache *cache, size_t n, void *const *objects);
        /* Is an allocation of @bytes to fail, though there is memory? */
        bool (*fails)(const struct stook_cache *cache, size_t bytes);
        /*
         * @object of a prefilled sheaf goes to its user. The call cannot fail. Return: @object, or
         * another one instead of it.
         */
        void *(*lent)(struct stook_cache *cache, void *object);
        /* What the user of an object may use of it; or STOOK_NO_OBJECT. */
        size_t (*usable)(const struct stook_cache *cache, const void *object);
        /* For a report about @pointer, which lies in a slab of the cache; NULL: in none. */
        void (*describe)(const struct stook_cache *cache, const void *pointer,
                         struct stook_report_about *about);
        /* For a report, of an object that is free: where it lies. NULL: that is not known. */
        const char *(*where)(struct stook_cache *cache, const void *object);

        /* The constructor of a cache with STOOK_WATCH_SEAL. @at: its object_bytes less a seal. */
        void (*make_seal)(void *object, void *at);

        /* ---- of malloc, while stook_malloc_is_watched ---- */
        /* As stook_malloc_slow, of a size up to STOOK_CLASS_MAX; @group 0: none. */
        void *(*malloc)(size_t size, uint16_t group, uint64_t how);
        /* As stook_malloc_resize, of a live object of a watched cache, @usable bytes of it. */
        void *(*resize)(struct stook_cache *cache, void *object, size_t size, size_t usable,
                        int *error);

        /* ---- of large objects, while stook_large_options says that they are watched ---- */
        /*
         * As stook_large_alloc, of any size and alignment; the library is up, and the call has
         * begun (stook_slow_begin).
         */
        void *(*large_alloc)(size_t align, size_t size, uint64_t how);
        bool (*large_free)(struct stook_span *span, uint64_t how);
        /* The same for a user that says that it asked for @size bytes. */
        bool (*large_free_sized)(struct stook_span *span, size_t size, uint64_t how);
        /* As stook_malloc_resize, @usable bytes of it. NULL: no memory, or it was at fault. */
        void *(*large_resize)(struct stook_span *span, size_t size, size_t usable);
        size_t (*large_usable)(const struct stook_span *span);
        /* Spans with guards (pages/span.h). */
        struct stook_span *(*take_guarded)(unsigned node, size_t bytes, size_t align);
        void (*give_guarded)(struct stook_span *span);
};
extern const struct stook_watch_duties stook_watch_duties STOOK_HIDDEN;

#endif
