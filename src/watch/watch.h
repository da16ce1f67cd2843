/*
 * Purpose: caches and large objects whose every allocation and free is looked at. What a cache or
 * malloc asks is in cache/cache_watch.h; here is the rest.
 * Place: called through stook_watch_duties, by life at start, and by inspect. Calls debug, harden,
 *  profile, record, stack, and the slow calls of cache and malloc, for the call itself.
 * Concurrency: any thread, any instruction. `watch` of a cache is const after creation.
 */
#ifndef STOOK_WATCH_H
#define STOOK_WATCH_H

#include "cache/cache_watch.h"
#include "debug/debug_modes.h"
#include "harden/harden.h"
#include "harden/seal.h"
#include "malloc/malloc.h"

/* What makes a cache a watched one. */
#define STOOK_HARDEN_OBJECTS \
        (STOOK_HARDEN_SEALS | STOOK_HARDEN_ZERO_FREE | STOOK_HARDEN_ZERO_ALLOC)

/* Flags are 0 if the cache is not debugged. */
extern struct stook_debug stook_cache_no_debug;
STOOK_INLINE struct stook_debug *stook_cache_debug(const struct stook_cache *cache)
{
        return cache->debug_modes ? stook_cache_seldom(cache)->debug : &stook_cache_no_debug;
}

STOOK_INLINE bool stook_cache_is_hardened(const struct stook_cache *cache)
{
        return cache->watch & STOOK_WATCH_HARDEN;
}

/* Have its objects seals (harden/seal.h)? */
STOOK_INLINE bool stook_cache_is_sealed(const struct stook_cache *cache)
{
        return cache->watch & STOOK_WATCH_SEAL;
}

/* Bytes from an object's start to its seal. */
STOOK_INLINE size_t stook_seal_at(const struct stook_cache *cache)
{
        return cache->object_size - STOOK_SEAL_BYTES;
}

/* What a user may have of an object. */
STOOK_INLINE size_t stook_watch_bytes(const struct stook_cache *cache)
{
        if (cache->watch & STOOK_WATCH_EMPTY)
                return 0;
        return stook_slow_bytes(cache) - (stook_cache_is_sealed(cache) ? STOOK_SEAL_BYTES : 0);
}

/* Content that outlives a free, or was made by a constructor, is never zeroed. */
STOOK_INLINE bool stook_cache_hardened_by(const struct stook_cache *cache, uint32_t zeroing)
{
        return stook_cache_is_hardened(cache) && stook_is_hardened(zeroing) && !cache->ctor &&
               !(cache->flags & STOOK_CACHE_TYPESAFE_BY_RCU);
}

/* ---- watch.c: stook_watch_duties ---- */
uint32_t stook_watch_wanted(const char *name, uint64_t own, uint64_t *debug);
bool stook_watch_make(struct stook_cache *cache, uint64_t modes, uint32_t hidden,
                      struct stook_slabs_args *args);
void stook_watch_end(struct stook_cache *cache);
void *stook_watch_alloc(struct stook_cache *cache, uint64_t how);
/* A free, but for the short way of sealed caches. */
void stook_watch_free_seen(struct stook_cache *cache, void *object, uint64_t how);
bool stook_watch_alloc_bulk(struct stook_cache *cache, size_t n, void **objects, uint64_t how);
void stook_watch_free_bulk(struct stook_cache *cache, size_t n, void **objects, uint64_t how);
int stook_watch_free_rcu(struct stook_cache *cache, void *object, bool nolock);
void stook_watch_left(struct stook_cache *cache, size_t n, void *const *objects);
bool stook_watch_fails(const struct stook_cache *cache, size_t bytes);
void *stook_watch_lent(struct stook_cache *cache, void *object);
size_t stook_watch_usable(const struct stook_cache *cache, const void *object);
void stook_watch_describe(const struct stook_cache *cache, const void *pointer,
                          struct stook_report_about *about);

/* May a cache be watched, though its maker did not say so? */
bool stook_watch_is_asked(void);
/* @object of a cache, or a large one, waits as @bytes in the quarantine. @how: of its free. */
void stook_watch_quarantine(void *object, size_t bytes, uint64_t how);

/* ---- watch_harden.c ---- */
/* False: the object has a user already, which was reported. It must not be handed out. */
bool stook_watch_harden_alloc(struct stook_cache *cache, void *object, size_t bytes, unsigned by);
/* False: a double free, which was reported. @how: cache_slow.h. */
bool stook_watch_harden_free(struct stook_cache *cache, void *object, uint64_t how);
/* Of a cache whose objects have seals: a user asked for @bytes, and now for others. */
bool stook_watch_harden_resize(struct stook_cache *cache, void *object, size_t bytes);
/*
 * Checks all objects of a cache with seals; quiescent. Returns faults found, each of which is
 * reported.
 */
int stook_watch_validate_sealed(struct stook_cache *cache);
/* A free by RCU that ends the user's time. False: as above. */
bool stook_watch_harden_wait(struct stook_cache *cache, void *object);
/*
 * @object was made by entry point @was, and is freed by @is. What does not fit is reported. @debug:
 * of its cache; NULL: it has no debug modes.
 */
void stook_watch_compare(const struct stook_debug *debug, void *object, unsigned was, unsigned is);
/* The same of an object whose cache may have debug modes. Return: what made it. */
unsigned stook_watch_compare_debugged(const struct stook_cache *cache, void *object, unsigned is);
STOOK_COLD const char *stook_watch_where(struct stook_cache *cache, const void *object);

/* ---- watch_sealed.c: the short way of malloc's sealed classes ---- */
/* Const after the start. dropin/hot_sealed_*.h has it in numbers. */
extern struct stook_sealed {
        uintptr_t line;                 /* of its sheaves, in slot 0 */
        uint32_t at;                    /* bytes from an object to its seal; 0: no such class */
        struct stook_delay_class delay;
} STOOK_ALIGNED(32) stook_sealed_classes[STOOK_CLASSES] STOOK_HIDDEN;
/*
 * The drop-in's short way takes sizes up to this. 0: none. Else all classes are such, their freed
 * objects wait, and nothing is zeroed.
 */
extern uint64_t stook_sealed_most STOOK_HIDDEN;
/*
 * Where it is not 0: eight times the index of the first class's cache. The others' follow in their
 * order, each two indices on: the one in between is its second one, of which no page is. Else so
 * much that no index follows.
 */
extern uint32_t stook_sealed_first STOOK_HIDDEN;

/* At start: @cache of @class has seals, and nothing else watches it. Do its freed objects wait? */
void stook_watch_sealed_start(struct stook_cache *cache, unsigned class, bool wait);
/* At start, behind all of them. */
void stook_watch_sealed_ready(void);
/* What the drop-in has popped, and has found at fault: it is reported. Return: NULL. */
STOOK_COLD void *stook_watch_refuse(void *object);
/* What the drop-in has taken from its user: it waits, or is free. */
void stook_watch_gone(void *object);
/* What waits is free: a trim. */
void stook_watch_give_delayed(void);
/* Of stook_watch_duties, and of the edge. */
void *stook_watch_malloc(size_t size, uint16_t group, uint64_t how);
void stook_watch_free(struct stook_cache *cache, void *object, uint64_t how);

/* ---- watch_malloc.c ---- */
/* At start: what options ask for; makes the caches of watched classes. */
void stook_watch_start(void);

/* A malloc, but for the short way of sealed classes. */
void *stook_watch_malloc_seen(size_t size, uint16_t group, uint64_t how);
/* Of stook_watch_duties. */
void *stook_watch_resize(struct stook_cache *cache, void *object, size_t size, size_t usable,
                         int *error);
/* Another object of @size with the first @bytes of this one, which is freed. NULL: no memory. */
void *stook_watch_copy(void *object, size_t size, size_t bytes, uint64_t how);

/* ---- watch_large.c ---- */
extern uint64_t stook_large_debug STOOK_HIDDEN; /* STOOK_DEBUG_*: of large objects; 0: none */
extern bool stook_large_guards STOOK_HIDDEN;    /* Z=guard */
/* Of stook_watch_start. */
void stook_watch_large_start(void);
/* Of stook_watch_duties. */
void *stook_watch_large_alloc(size_t align, size_t size, uint64_t how);
bool stook_watch_large_free(struct stook_span *span, uint64_t how);
bool stook_watch_large_free_sized(struct stook_span *span, size_t size, uint64_t how);
void *stook_watch_large_resize(struct stook_span *span, size_t size, size_t usable);
size_t stook_watch_large_usable(const struct stook_span *span);

/* A large object leaves the quarantine. Returns its bytes. */
size_t stook_watch_large_leave(void *object, uint64_t how);

/*
 * Checks all large objects, also in the quarantine; quiescent. Returns faults found, each of which
 * is reported.
 */
int stook_large_debug_validate(void);
/* The same of hardening's canaries behind them. */
int stook_large_canaries_validate(void);
/* The number of the call stack that allocated it (stack/stack.h); 0: not known. */
uint32_t stook_large_stack(const struct stook_span *span);
/* What debug modes know of a large object, live or freed; its memory may be read. */
void stook_watch_large_describe(const struct stook_span *span, struct stook_report_about *about);
/* The same of a pointer that is freed, if it leads to a closed one, which gets its access back. */
void stook_watch_describe_freed(const void *pointer, struct stook_report_about *about);

#endif
