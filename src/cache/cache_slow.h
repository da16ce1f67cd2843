/*
 * Purpose: the slow calls behind the hot sections. Every call that allocates or frees runs a hot
 * section, or makes one slow call that says how. The slow call asks one thing: has the cache an
 * edge? An edge (`edge` of the cache) makes the call its own way: src/account charges a group,
 * src/watch shows the object. (Malloc's slow call knows no cache yet. It asks whether classes are
 * watched, and which group the thread is in, and comes to the plain calls: malloc/malloc_miss.c.)
 * Behind the edge stand the plain calls, which decide
 *  - the gate's check (gate/gate.h): before a step that enters a layer below. (Malloc's slow calls
 *    start the library as well. A cache exists only after the start.)
 *  - whether a node is named and matters,
 *  - that a call waits for no other thread.
 * Place: called by the public calls of cache, and by malloc; calls slot, slab.
 * Concurrency: any thread, any instruction.
 *
 * A call that must not wait (STOOK_HOW_NOLOCK) takes the same steps as a handler on top of a lock's
 * holder (base/lock.h I1): it only tries locks. It leaves work that is not the caller's (purging,
 * publishing figures) to the next ordinary call. It makes no gate's check, since a repair waits.
 * Invariants:
 *  I1 no step of such a call needs another thread to go on. What repeats without a fixed bound is a
 *     compare-and-swap on a word of a slab, a barn or a pending stack. It repeats only because that
 *     of another thread succeeded.
 */
#ifndef STOOK_CACHE_SLOW_H
#define STOOK_CACHE_SLOW_H

#include <errno.h>
#include <string.h>

#include "base/lock.h"
#include "base/probe.h"
#include "cache/cache.h"
#include "gate/gate.h"

/* How an object is wanted, or freed: one word, so that it takes one register. */
enum {
        /* The public flags (stook/cache.h). */
        STOOK_HOW_ZERO     = STOOK_ALLOC_ZERO,
        STOOK_HOW_THISNODE = STOOK_ALLOC_THISNODE,
        STOOK_HOW_NOWAIT   = STOOK_ALLOC_NOWAIT,
        STOOK_HOW_NOLOCK   = STOOK_ALLOC_NOLOCK,
        /* One bit: the word of an allocation never becomes that of a free. */
        STOOK_HOW_READERS  = 1 << 7,    /* a free: by RCU, and readers have left */
        STOOK_HOW_ALIGNED  = 1 << 7,    /* an allocation, to more than 16 bytes, with samples */
        STOOK_HOW_ASKED    = 1 << 8,    /* objects were asked back: not once more */
        STOOK_HOW_NODE     = 1 << 9,    /* the word says from which node */
        STOOK_HOW_GROUP    = 1 << 10,   /* the word says which group is charged; or this thread's */
        STOOK_HOW_CHARGED  = 1 << 11,   /* that group has been charged already */
        STOOK_HOW_ERRNO    = 1 << 12,   /* a failure sets errno to ENOMEM; else errno stays */
        STOOK_HOW_GUARDED  = 1 << 13,   /* a large object's span gets guards */
        STOOK_HOW_LAST     = STOOK_HOW_GUARDED,
};
/*
 * Bits 4 to 6: the entry point (enum stook_entry_point) that makes the object, or frees it. Only
 * malloc's calls say another than 0, and only src/watch looks.
 */
#define STOOK_HOW_BY_SHIFT 4
#define STOOK_HOW_BY (7u << STOOK_HOW_BY_SHIFT)
_Static_assert(!(STOOK_HOW_BY & (STOOK_HOW_NOLOCK | STOOK_HOW_READERS)), "between these two");
/* What every call with flags takes. */
#define STOOK_HOW_FLAGS (STOOK_HOW_ZERO | STOOK_HOW_THISNODE | STOOK_HOW_NOWAIT | STOOK_HOW_NOLOCK)
/*
 * Bits 14 to 31: 1 + the bytes that the caller of malloc asked for, or says that it frees; 0: not
 * said. Only for calls on watched caches, and src/watch takes it off.
 */
#define STOOK_HOW_SIZE_SHIFT  14
#define STOOK_HOW_SIZE_BITS   18
#define STOOK_HOW_SIZES       (((UINT64_C(1) << STOOK_HOW_SIZE_BITS) - 1) << STOOK_HOW_SIZE_SHIFT)
#define STOOK_HOW_GROUP_SHIFT 32        /* bits 32 to 47: a group's id; 0: none */
#define STOOK_HOW_NODE_SHIFT  48        /* bits 48 to 63: a node; -1: that of the CPU in use */

/* @how names none yet. */
STOOK_INLINE uint64_t stook_how_with_group(uint64_t how, uint16_t group)
{
        return how | STOOK_HOW_GROUP | (uint64_t)group << STOOK_HOW_GROUP_SHIFT;
}

STOOK_INLINE uint16_t stook_how_group(uint64_t how)
{
        return (uint16_t)(how >> STOOK_HOW_GROUP_SHIFT);
}

STOOK_INLINE uint64_t stook_how_with_node(uint64_t how, int node)
{
        return how | STOOK_HOW_NODE | (uint64_t)(uint16_t)node << STOOK_HOW_NODE_SHIFT;
}

STOOK_INLINE uint64_t stook_how_without_node(uint64_t how)
{
        return how & ~((uint64_t)UINT16_MAX << STOOK_HOW_NODE_SHIFT | STOOK_HOW_NODE);
}

STOOK_INLINE int stook_how_node(uint64_t how)
{
        return (int16_t)(how >> STOOK_HOW_NODE_SHIFT);
}

STOOK_INLINE unsigned stook_how_by(uint64_t how)
{
        return (how & STOOK_HOW_BY) >> STOOK_HOW_BY_SHIFT;
}

/* @size: at most STOOK_OBJECT_MAX. */
STOOK_INLINE uint64_t stook_how_with_size(uint64_t how, size_t size)
{
        return how | (uint64_t)(size + 1) << STOOK_HOW_SIZE_SHIFT;
}

STOOK_INLINE bool stook_how_has_size(uint64_t how)
{
        return (uint32_t)how >> STOOK_HOW_SIZE_SHIFT;
}

STOOK_INLINE size_t stook_how_size(uint64_t how)
{
        return ((uint32_t)how >> STOOK_HOW_SIZE_SHIFT) - 1;
}

STOOK_INLINE uint64_t stook_how_without_size(uint64_t how)
{
        return how & ~STOOK_HOW_SIZES;
}

/* Of a public call: are there no other flags, and can the cache zero objects if they say so? */
STOOK_INLINE bool stook_flags_good(const struct stook_cache *or_null, unsigned flags)
{
        return or_null && !(flags & ~(unsigned)STOOK_HOW_FLAGS) &&
               !((flags & STOOK_ALLOC_ZERO) && or_null->ctor);
}

/*
 * Around the steps of a slow call that may be told not to wait: it must not wait, or it makes the
 * gate's check. Exact pairs, which nest. A call that may always wait makes the check alone.
 */
STOOK_INLINE void stook_slow_begin(uint64_t how)
{
        if (STOOK_UNLIKELY(how & STOOK_HOW_NOLOCK))
                stook_lock_raise(0);
        else
                stook_gate_check();
}

STOOK_INLINE void stook_slow_end(uint64_t how)
{
        if (STOOK_UNLIKELY(how & STOOK_HOW_NOLOCK))
                stook_lock_lower();
}

/* For malloc: has the library started? A call that may wait starts it. */
STOOK_INLINE bool stook_slow_start(uint64_t how)
{
        return how & STOOK_HOW_NOLOCK ? stook_gate_is_open() : stook_gate_start();
}

/* What a slow call answers for @object, or NULL, of which @bytes are the caller's. */
STOOK_INLINE void *stook_slow_answer(uint64_t how, void *object, size_t bytes)
{
        if (STOOK_UNLIKELY(!object)) {
                STOOK_PROBE(alloc_fail);
                if (how & STOOK_HOW_ERRNO)
                        errno = ENOMEM;
        } else if (STOOK_UNLIKELY(how & STOOK_HOW_ZERO)) {
                memset(object, 0, bytes);
        }
        return object;
}

/* What a user of @cache has of an object. Merging raises it. */
STOOK_INLINE size_t stook_slow_bytes(const struct stook_cache *cache)
{
        return __atomic_load_n(&cache->object_size, __ATOMIC_RELAXED);
}

/* True: it is a destroyed one, which was reported, and nothing may be allocated. */
STOOK_INLINE bool stook_cache_is_destroyed(const struct stook_cache *cache)
{
        if (STOOK_LIKELY(cache->edge != STOOK_EDGE_GONE))
                return false;
        stook_cache_report_destroyed(cache);
        return true;
}

/* ---- the calls, through the edge of the cache ---- */

/* One object. NULL: no memory, none on that node, or over the limit of a group; nothing changed. */
void *stook_alloc_slow(struct stook_cache *cache, uint64_t how);

/* @object is known to be one of @cache (object_id.h). A double free is reported. errno stays. */
void stook_free_slow(struct stook_cache *cache, void *object, uint64_t how);

/*
 * @n objects, charged to the group of this thread; all or none. False: none. errno stays.
 * @how: public flags. STOOK_HOW_THISNODE: all objects are of one node.
 */
bool stook_alloc_bulk_slow(struct stook_cache *cache, size_t n, void **objects, uint64_t how);

/*
 * @n objects that are known to be of @cache; the array is left in any order. errno stays.
 * @how: 0; or STOOK_HOW_NOLOCK, between a raise and a lower (base/lock.h) of the caller.
 */
void stook_free_bulk_slow(struct stook_cache *cache, size_t n, void **objects, uint64_t how);

/* ---- the same without an edge: what lies behind every edge ---- */

void *stook_alloc_plain(struct stook_cache *cache, uint64_t how);
void stook_free_plain(struct stook_cache *cache, void *object, uint64_t how);
bool stook_alloc_bulk_plain(struct stook_cache *cache, size_t n, void **objects, uint64_t how);
void stook_free_bulk_plain(struct stook_cache *cache, size_t n, void **objects, uint64_t how);

/* Of src/limit: what may help an allocation that found too little. */
struct stook_limit_duties {
        /* Of a cache whose memory the program prepares: @n objects, or none. Return: how many. */
        size_t (*memory)(struct stook_cache *cache, size_t n, void **objects, uint64_t how);
        /*
         * Only if stook_caches_reclaim. True: the program freed some of @wanted objects, so the
         * call may try again, once. @or_null NULL: of a malloc that is served by no class.
         */
        bool (*reclaim)(struct stook_cache *or_null, size_t wanted, uint64_t how);
};
extern const struct stook_limit_duties stook_limit_duties STOOK_HIDDEN;

/* Atomic, relaxed: a cache had a callback that reclaims once. */
extern bool stook_caches_reclaim STOOK_HIDDEN;

STOOK_INLINE bool stook_slow_reclaim(struct stook_cache *or_null, size_t wanted, uint64_t how)
{
        return STOOK_UNLIKELY(__atomic_load_n(&stook_caches_reclaim, __ATOMIC_RELAXED)) &&
               stook_limit_duties.reclaim(or_null, wanted, how);
}

/* ---- edges, which the layers above have ---- */

/* A destroyed cache has one that reports. A cache made at its index later has its own. */
struct stook_edge_calls {
        void *(*alloc)(struct stook_cache *cache, uint64_t how);
        void (*free)(struct stook_cache *cache, void *object, uint64_t how);
        bool (*alloc_bulk)(struct stook_cache *cache, size_t n, void **objects, uint64_t how);
        void (*free_bulk)(struct stook_cache *cache, size_t n, void **objects, uint64_t how);
};
extern const struct stook_edge_calls stook_account_edge STOOK_HIDDEN;
extern const struct stook_edge_calls stook_watch_edge STOOK_HIDDEN;

/* Of caches with a closed front (slot/slot.h): stook_cache_alloc and stook_cache_free. */
struct stook_account_duties {
        void *(*alloc_closed)(struct stook_cache *cache);
        void (*free_closed)(struct stook_cache *cache, void *object);
};
extern const struct stook_account_duties stook_account_duties STOOK_HIDDEN;

#endif
