/*
 * Purpose: see cache_limit.h.
 */
#include "limit/cache_limit.h"

#include <errno.h>
#include <stook/cache.h>

#include "home/home.h"
#include "os/os.h"

/* ---- the program's functions ---- */

/* stook_on_no_memory(): `call` and `data` are set before other threads use malloc. */
static struct {
        int     (*call)(void *data);
        void     *data;
        uintptr_t asking;               /* atomic, L2, M1: stook_self of the thread in it */
} no_memory;

/*
 * They may be jumped out of, and leave errno as it is. No lock of this call is held, but the
 * registry mutex in a malloc (L3), a trim and maintenance: these must not be jumped out of.
 */
static void tell_low(struct stook_cache *cache, uint64_t left)
{
        const struct stook_limit *limit = &stook_cache_seldom(cache)->limit;
        uint32_t held = stook_lock_pin();
        int before = errno;

        limit->on_low(cache, left, limit->data);
        errno = before;
        stook_lock_unpin(held);
}

static size_t ask(struct stook_cache *cache, size_t wanted)
{
        const struct stook_limit *limit = &stook_cache_seldom(cache)->limit;
        uint32_t held = stook_lock_pin();
        int before = errno;
        size_t freed = limit->reclaim(cache, wanted, limit->data);

        errno = before;
        stook_lock_unpin(held);
        return freed;
}

bool stook_reclaim_from(struct stook_cache *cache, size_t wanted)
{
        struct stook_limit *limit = &stook_cache_seldom(cache)->limit;
        uintptr_t none = 0;
        size_t freed;

        if (!limit->reclaim)
                return false;
        if (!__atomic_compare_exchange_n(&limit->reclaiming, &none, (uintptr_t)stook_self,
                                         false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))   /* L2, M1 */
                return false;
        freed = ask(cache, wanted);
        __atomic_store_n(&limit->reclaiming, 0, __ATOMIC_RELEASE);
        return freed;
}

/* Of a thread that is not in the child. */
static void let_go(uintptr_t *thread)
{
        uintptr_t by = __atomic_load_n(thread, __ATOMIC_RELAXED);

        if (by && by != (uintptr_t)stook_self)
                __atomic_store_n(thread, 0, __ATOMIC_RELAXED);
}

void stook_reclaim_fork_child(struct stook_cache *cache)
{
        let_go(&stook_cache_seldom(cache)->limit.reclaiming);
}

void stook_no_memory_fork_child(void)
{
        let_go(&no_memory.asking);
}

/* ---- for malloc: all caches ---- */

/*
 * L3. What was freed goes from the barns to the slabs, and whole slabs to the pages. The slots keep
 * what they have: to empty them, malloc would have to wait for another thread's evacuation.
 */
static STOOK_NOINLINE bool reclaim_from_all(void)
{
        struct stook_cache *cache = NULL;
        bool freed = false;
        int before = errno;

        if (stook_lock_may_not_wait() || stook_os_may_be_in_handler() ||
            !stook_registry_try_alone())
                return false;
        while ((cache = stook_registry_next(cache)))
                if (stook_reclaim_from(cache, SIZE_MAX)) {
                        stook_barn_empty_all(&cache->barns);
                        stook_slabs_shrink(&cache->slabs);
                        freed = true;
                }
        stook_registry_unlock();
        errno = before;                 /* the malloc may succeed after all */
        return freed;
}

/* ---- for malloc: the program ---- */

/* L3, but without the registry: a malloc in the callback asks nothing and fails at once. */
static STOOK_NOINLINE bool ask_program(void)
{
        uintptr_t none = 0;
        uint32_t held;
        int before = errno, answer;

        if (!no_memory.call || stook_lock_may_not_wait() || stook_os_may_be_in_handler() ||
            !__atomic_compare_exchange_n(&no_memory.asking, &none, (uintptr_t)stook_self, false,
                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return false;
        held = stook_lock_pin();
        answer = no_memory.call(no_memory.data);
        stook_lock_unpin(held);
        __atomic_store_n(&no_memory.asking, 0, __ATOMIC_RELEASE);
        errno = before;
        return answer != 0;
}

STOOK_API void stook_on_no_memory(int (*callback)(void *data), void *data)
{
        no_memory.data = data;
        no_memory.call = callback;
        if (callback)
                __atomic_store_n(&stook_caches_reclaim, true, __ATOMIC_RELAXED);
}

bool stook_reclaim(struct stook_cache *or_null, size_t wanted, uint64_t how)
{
        bool reclaimed;

        if (how & (STOOK_HOW_NOWAIT | STOOK_HOW_NOLOCK | STOOK_HOW_ASKED))
                return false;
        if (or_null && !stook_registry_is_class(or_null))
                return stook_reclaim_from(or_null, wanted);
        reclaimed = reclaim_from_all();
        return ask_program() || reclaimed;
}

/* ---- memory that the program prepares ---- */

/*
 * A handler on top of a call of the library may not wait: it would run the program's function where
 * that may be running already.
 */
static bool may_ask(const struct stook_cache *cache, uint64_t how)
{
        return cache->slabs.run_asks && !(how & (STOOK_HOW_NOWAIT | STOOK_HOW_NOLOCK)) &&
               !stook_lock_may_not_wait();
}

/* Return: how many. */
static size_t fill(struct stook_cache *cache, size_t n, void **objects, unsigned node, uint64_t how)
{
        return stook_slab_fill(&cache->slabs, node, n, objects,
                               STOOK_FILL_ASCENDING | STOOK_FILL_MAY_ASK |
                               (how & STOOK_HOW_THISNODE ? STOOK_FILL_THISNODE : 0));
}

size_t stook_alloc_with_memory(struct stook_cache *cache, size_t n, void **objects, uint64_t how)
{
        int named = how & STOOK_HOW_NODE ? stook_how_node(how) : -1;
        size_t got;

        if (!may_ask(cache, how))
                return 0;
        got = fill(cache, n, objects, named < 0 ? stook_home_to_use() : (unsigned)named,
                   how);
        if (got == n) {
                stook_count(&cache->counters, STOOK_STAT_alloc_slowpath, n);
                return n;
        }
        stook_slab_drain(&cache->slabs, got, objects);  /* as in cache_slow.c */
        return 0;
}

void stook_fill_with_memory(struct stook_cache *cache, struct stook_sheaf *sheaf, size_t n,
                            unsigned node, uint64_t how)
{
        size_t has = stook_sheaf_size(sheaf), got;

        if (has >= n || !may_ask(cache, how))
                return;
        got = fill(cache, n - has, sheaf->objects + has, node, how);
        stook_sheaf_set_size(sheaf, (unsigned)(has + got));
        stook_count(&cache->counters, STOOK_STAT_sheaf_refill, got);
}

/* ---- the count ---- */

/* L1. *@missing: objects that are beyond the limit, if it is met. */
static bool count_up(struct stook_limit *limit, uint64_t n, uint64_t *left, size_t *missing)
{
        uint64_t owned = __atomic_load_n(&limit->owned, __ATOMIC_RELAXED), most;

        do {
                most = __atomic_load_n(&limit->most, __ATOMIC_RELAXED);
                if (n > most || owned > most - n) {
                        *missing = owned + n - most;
                        return false;
                }
        } while (!__atomic_compare_exchange_n(&limit->owned, &owned, owned + n, true,
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        *left = most - owned - n;
        return true;
}

bool stook_limit_take(struct stook_cache *cache, size_t n, uint64_t how)
{
        struct stook_limit *limit = &stook_cache_seldom(cache)->limit;
        uint64_t left = 0;
        size_t missing = 0;

        if (!n)
                return true;
        if (STOOK_UNLIKELY(!count_up(limit, n, &left, &missing)) &&
            (!stook_reclaim(cache, missing, how) || !count_up(limit, n, &left, &missing)))
                return false;
        /* Told by the call that crosses the mark, not by those below it. */
        if (limit->on_low && left <= limit->low && left + n > limit->low &&
            !(how & (STOOK_HOW_NOWAIT | STOOK_HOW_NOLOCK)))
                tell_low(cache, left);
        return true;
}

void stook_limit_give(struct stook_cache *cache, size_t n)
{
        struct stook_limit *limit = &stook_cache_seldom(cache)->limit;
        uint64_t owned = __atomic_load_n(&limit->owned, __ATOMIC_RELAXED), less;

        /* Misuse that was reported may free what was never counted. */
        do {
                less = owned < n ? 0 : owned - n;
        } while (!__atomic_compare_exchange_n(&limit->owned, &owned, less, true,
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

STOOK_API int stook_cache_set_limit(struct stook_cache *cache, size_t limit_objects)
{
        if (!cache || stook_cache_is_destroyed(cache))
                return -EINVAL;
        if (!stook_cache_is_limited(cache))
                return -ENOTSUP;
        __atomic_store_n(&stook_cache_seldom(cache)->limit.most,
                         limit_objects ? limit_objects : SIZE_MAX, __ATOMIC_RELAXED);
        return 0;
}

const struct stook_limit_duties stook_limit_duties = { stook_alloc_with_memory, stook_reclaim };
