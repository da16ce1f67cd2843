/*
 * Purpose: the table of all caches, their indices, names and order of creation.
 * Place: called by cache_create.c, cache_destroy.c and by who walks all caches (inspect, life).
 * Invariants:
 *  I1 memory of the table is committed up to `bound`, in steps, and stays.
 *  I2 an index is in exactly one state: never used (>= bound), kept for malloc, idle (on idle_indices), in the
 *     making, or living (on living).
 * Concurrency: one mutex. It waits, unlike base/lock.h: none of its users may be called from a handler, and
 *  no alloc or free takes it.
 */
#include <errno.h>
#include <string.h>

#include "base/thread.h"
#include "cache/cache.h"
#include "cache/cache_rcu.h"
#include "life/life.h"
#include "os/os.h"
#include "pages/meta.h"
#include "slot/slot_rcu.h"

struct stook_cache *stook_caches;
struct stook_shape stook_shapes[STOOK_CACHES_MAX];

struct stook_alias {
        struct stook_alias *next;
        char name[64];
};

static uint32_t mutex;                  /* 0 free, 1 held, 2 held and somebody may sleep */
static void    *mutex_owner;            /* atomic: the stook_self of the holder; only it compares equal */
static uint32_t bound;                  /* atomic: read by walks without the mutex */
static uint32_t first_free_index;       /* const after start */
static size_t   committed;              /* mutex; bytes of the table */
static struct stook_list living = { &living, &living };
static struct stook_list idle_indices = { &idle_indices, &idle_indices };
static struct stook_alias *idle_aliases;
static uint64_t births;                 /* mutex */

#define WAIT_NS 1000000
#define FORK_WAITS 1000

static bool mutex_take(unsigned max_waits)
{
        uint32_t seen = 0;

        if (__atomic_compare_exchange_n(&mutex, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return true;
        for (unsigned waits = 0; __atomic_exchange_n(&mutex, 2, __ATOMIC_ACQUIRE) != 0; waits++) {
                if (waits == max_waits)
                        return false;
                stook_os_futex_wait(&mutex, 2, WAIT_NS);
        }
        return true;
}

void stook_registry_wait(void)
{
        while (!mutex_take(FORK_WAITS))
                ;
        __atomic_store_n(&mutex_owner, stook_self, __ATOMIC_RELAXED);
}

void stook_registry_lock(void)
{
        stook_fork_check();                     /* or the child of _Fork waits for a holder it has not */
        stook_registry_wait();
}

bool stook_registry_try(void)
{
        if (!mutex_take(0))
                return false;
        __atomic_store_n(&mutex_owner, stook_self, __ATOMIC_RELAXED);
        return true;
}

void stook_registry_unlock(void)
{
        __atomic_store_n(&mutex_owner, NULL, __ATOMIC_RELAXED);
        if (__atomic_exchange_n(&mutex, 0, __ATOMIC_RELEASE) == 2)
                stook_os_futex_wake(&mutex);
}

bool stook_registry_is_mine(void)
{
        return __atomic_load_n(&mutex_owner, __ATOMIC_RELAXED) == stook_self;
}

bool stook_registry_fork_prepare(void)
{
        if (stook_registry_is_mine() || !mutex_take(FORK_WAITS))
                return false;
        __atomic_store_n(&mutex_owner, stook_self, __ATOMIC_RELAXED);
        return true;
}

static bool commit_through(unsigned index)
{
        size_t page = stook_os_page_bytes();
        size_t step = page;
        size_t need = (size_t)(index + 1) * sizeof(struct stook_cache);

        if (need <= committed)
                return true;
        need = (need + step - 1) / step * step;
        if (!stook_os_commit((char *)stook_caches + committed, need - committed))
                return false;
        committed = need;
        return true;
}

bool stook_caches_start(unsigned reserved_indices)
{
        size_t page = stook_os_page_bytes();

        stook_slot_rcu_submit = stook_rcu_submit_drained;
        stook_caches = stook_os_reserve(STOOK_CACHES_MAX * sizeof(struct stook_cache), page);
        if (!stook_caches || !commit_through(reserved_indices))
                return false;
        first_free_index = reserved_indices + 1;
        __atomic_store_n(&bound, first_free_index, __ATOMIC_RELEASE);
        return true;
}

bool stook_registry_is_class(const struct stook_cache *cache)
{
        return cache->flags & STOOK_CACHE_OF_MALLOC;
}

unsigned stook_caches_bound(void)
{
        return __atomic_load_n(&bound, __ATOMIC_ACQUIRE);
}

int stook_registry_take(unsigned index, struct stook_cache **taken)
{
        struct stook_cache *cache;

        if (!index && !stook_list_empty(&idle_indices)) {
                cache = stook_container_of(idle_indices.next, struct stook_cache, all);
                stook_list_remove(&cache->all);
        } else {
                bool next = !index;

                if (next)
                        index = bound;
                if (index >= STOOK_CACHES_MAX)
                        return -ENFILE;
                if (!commit_through(index))
                        return -ENOMEM;
                cache = stook_cache_at(index);
                cache->index = index;
                if (next)
                        __atomic_store_n(&bound, index + 1, __ATOMIC_RELEASE);
        }
        __atomic_store_n(&cache->state, STOOK_CACHE_MAKING, __ATOMIC_RELAXED);
        *taken = cache;
        return 0;
}

void stook_registry_give(struct stook_cache *cache)
{
        __atomic_store_n(&cache->state, STOOK_CACHE_FREE, __ATOMIC_RELAXED);
        if (cache->index >= first_free_index)
                stook_list_add_head(&idle_indices, &cache->all);
}

void stook_registry_publish(struct stook_cache *cache)
{
        cache->born = ++births;
        __atomic_store_n(&cache->state, STOOK_CACHE_LIVE, __ATOMIC_RELEASE);
        stook_list_add_tail(&living, &cache->all);
}

void stook_registry_withdraw(struct stook_cache *cache)
{
        stook_list_remove(&cache->all);
        while (cache->aliases) {
                struct stook_alias *alias = cache->aliases;

                cache->aliases = alias->next;
                alias->next = idle_aliases;
                idle_aliases = alias;
        }
}

struct stook_cache *stook_registry_next(struct stook_cache *cache)
{
        struct stook_list *next = cache ? cache->all.next : living.next;

        return next == &living ? NULL : stook_container_of(next, struct stook_cache, all);
}

static void link_by_age(struct stook_cache *cache)
{
        struct stook_list *before = living.prev;

        while (before != &living && stook_container_of(before, struct stook_cache, all)->born > cache->born)
                before = before->prev;
        stook_list_insert_between(&cache->all, before, before->next);
}

/* The lists of a holder who is gone, from the caches' states. What he was making or giving up is lost. */
static void rebuild(void)
{
        stook_list_init(&living);
        stook_list_init(&idle_indices);
        for (unsigned i = 1; i < bound; i++) {
                struct stook_cache *cache = stook_cache_at(i);

                if (cache->state == STOOK_CACHE_LIVE || cache->state == STOOK_CACHE_DYING)
                        link_by_age(cache);
                else if (cache->state == STOOK_CACHE_FREE && i >= first_free_index)
                        stook_list_add_tail(&idle_indices, &cache->all);
        }
}

void stook_registry_fork_child(bool whole)
{
        if (!whole) {
                if (stook_registry_is_mine())
                        return;
                if (__atomic_load_n(&mutex, __ATOMIC_RELAXED))
                        rebuild();
        }
        __atomic_store_n(&mutex_owner, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&mutex, 0, __ATOMIC_RELEASE);
}

bool stook_registry_add_alias(struct stook_cache *cache, const char *name)
{
        struct stook_alias *alias = idle_aliases;

        if (alias)
                idle_aliases = alias->next;
        else
                alias = stook_meta_bump(sizeof(*alias), 0);
        if (!alias)
                return false;
        strcpy(alias->name, name);
        alias->next = cache->aliases;
        cache->aliases = alias;
        return true;
}

static bool answers_to(const struct stook_cache *cache, const char *name)
{
        if (!strcmp(cache->name, name))
                return true;
        for (const struct stook_alias *alias = cache->aliases; alias; alias = alias->next)
                if (!strcmp(alias->name, name))
                        return true;
        return false;
}

STOOK_API struct stook_cache *stook_cache_find(const char *name)
{
        struct stook_cache *found = NULL;

        if (!name)
                return NULL;
        stook_registry_lock();
        while ((found = stook_registry_next(found)) && !answers_to(found, name))
                ;
        stook_registry_unlock();
        return found;
}

STOOK_API int stook_for_each_cache(int (*each)(struct stook_cache *cache, void *data), void *data)
{
        struct stook_cache *cache = NULL;
        int answer = 0;

        if (!each)
                return -EINVAL;
        stook_registry_lock();
        while (!answer && (cache = stook_registry_next(cache)))
                answer = each(cache, data);
        stook_registry_unlock();
        return answer;
}
