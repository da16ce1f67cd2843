/*
 * Purpose: the table of all caches, their indices, names and order of creation.
 * Place: called by cache_create.c, cache_destroy.c, and by walks over all caches (inspect, life).
 * Invariants:
 *  I1 memory of the table is committed up to stook_caches_used, in steps, and stays; that below it,
 *     of what few caches use, too.
 *  I2 an index is in exactly one state: never used (>= stook_caches_used), kept for malloc, idle
 *     (on idle_indices), in the making, or living (on living).
 *  I3 stook_caches_used <= room <= STOOK_CACHES_MAX.
 * Concurrency: one mutex. It waits, unlike base/lock.h: no call that waits for it may be made by a
 *  handler. Two mallocs only try to have it: the first of a class, and one that calls `reclaim`.
 *  M1: the release of stook_caches_used, once that part of the table may be read, pairs with the
 *  acquire of those who read it without the mutex.
 */
#include <errno.h>
#include <string.h>

#include "base/lock.h"
#include "base/mutex.h"
#include "cache/cache.h"
#include "gate/gate.h"
#include "os/os.h"
#include "pages/meta.h"
#include "report/report.h"

struct stook_cache *stook_caches;
uint32_t stook_caches_used;
struct stook_shape stook_shapes[STOOK_CACHES_MAX] STOOK_MOSTLY_UNUSED;

static struct stook_mutex mutex = STOOK_MUTEX_INIT(STOOK_RANK_REGISTRY);
static uint32_t first_free_index;       /* const after start; those below it are malloc's */
static uint32_t room;                   /* const after start: indices in the table */
static size_t   committed;              /* mutex; bytes of the table */
static size_t   seldom_committed;       /* mutex; bytes below it */
static struct stook_list living = { &living, &living };
static struct stook_list idle_indices = { &idle_indices, &idle_indices };
static struct stook_alias *idle_aliases;
static uint64_t births;                 /* mutex */

#define FORK_WAITS 1000                 /* of 1 ms each */
#define LOOK_WAITS 50                   /* likewise; arbitrary */

/* The table takes at most this share of an address space that is limited. Both are arbitrary. */
#define LIMIT_SHARE 64
#define ROOM_LEAST  512u

/* A handler may fork on top of the wait (_Fork): the holder is not in the child. */
void stook_registry_wait(void)
{
        while (!stook_mutex_wait(&mutex, LOOK_WAITS))
                stook_gate_check();
}

bool stook_registry_may_wait(const char *refusal)
{
        if (STOOK_LIKELY(!stook_registry_is_mine()))
                return true;
        stook_report_found(STOOK_FAULT_DEADLOCK, NULL, NULL, NULL, 0, refusal);
        return false;
}

bool stook_registry_lock(const char *refusal)
{
        stook_gate_check();     /* or a child of _Fork waits although no thread holds the mutex */
        if (!stook_registry_may_wait(refusal))
                return false;
        stook_registry_wait();
        return true;
}

/*
 * Counts as a holder (base/lock.h), so that a jump out of the malloc that makes a class is noticed.
 */
bool stook_registry_try(void)
{
        return stook_mutex_try_counting(&mutex);
}

bool stook_registry_try_alone(void)
{
        return stook_mutex_try(&mutex);
}

void stook_registry_unlock(void)
{
        stook_mutex_unlock(&mutex);
}

bool stook_registry_is_mine(void)
{
        return stook_mutex_is_mine(&mutex);
}

bool stook_registry_fork_prepare(void)
{
        return !stook_registry_is_mine() && stook_mutex_wait(&mutex, FORK_WAITS);
}

static bool commit_through(unsigned index)
{
        size_t above = stook_os_whole_pages((index + 1) * sizeof(struct stook_cache));
        size_t below = stook_os_whole_pages((index + 1) * sizeof(struct stook_seldom));

        /* The first time in one call. */
        if (!committed) {
                if (!stook_os_commit((char *)stook_caches - below, below + above))
                        return false;
                seldom_committed = below;
                committed = above;
        }
        if (below > seldom_committed) {
                if (!stook_os_commit((char *)stook_caches - below, below - seldom_committed))
                        return false;
                seldom_committed = below;
        }
        if (above > committed) {
                if (!stook_os_commit((char *)stook_caches + committed, above - committed))
                        return false;
                committed = above;
        }
        return true;
}

static bool reserve_table(void)
{
        uint64_t share = stook_os_address_limit_at_start() / LIMIT_SHARE;

        for (room = STOOK_CACHES_MAX; room >= ROOM_LEAST; room /= 2) {
                size_t below = stook_os_whole_pages(room * sizeof(struct stook_seldom));
                size_t bytes = below + room * sizeof(struct stook_cache);
                char *base;

                if (bytes > share && room > ROOM_LEAST)
                        continue;
                base = stook_meta_reserve(bytes, stook_os_page_bytes());
                if (!base)
                        continue;
                stook_caches = (struct stook_cache *)(base + below);
                return true;
        }
        return false;
}

bool stook_caches_start(unsigned reserved_indices)
{
        first_free_index = reserved_indices + 1;
        return reserve_table();
}

bool stook_registry_is_class(const struct stook_cache *cache)
{
        return cache->flags & STOOK_CACHE_OF_MALLOC;
}

unsigned stook_caches_bound(void)
{
        return __atomic_load_n(&stook_caches_used, __ATOMIC_ACQUIRE);
}

int stook_registry_take(unsigned index, struct stook_cache **taken)
{
        struct stook_cache *cache;

        if (!index && !stook_list_empty(&idle_indices)) {
                cache = stook_container_of(idle_indices.next, struct stook_cache, all);
                stook_list_remove(&cache->all);
        } else {
                bool next = !index;

                /* With the first cache; a process may do without. */
                if (!stook_caches_used) {
                        if (!commit_through(first_free_index - 1))
                                return -ENOMEM;
                        __atomic_store_n(&stook_caches_used, first_free_index,
                                         __ATOMIC_RELEASE);                             /* M1 */
                }
                if (next)
                        index = stook_caches_used;
                if (index >= room)
                        return -EAGAIN;
                if (!commit_through(index))
                        return -ENOMEM;
                cache = stook_cache_at(index);
                cache->index = index;
                cache->counters.far = stook_cache_seldom(cache)->counters;
                if (next)
                        __atomic_store_n(&stook_caches_used, index + 1, __ATOMIC_RELEASE);
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
        struct stook_seldom *seldom = stook_cache_seldom(cache);

        stook_list_remove(&cache->all);
        while (seldom->aliases) {
                struct stook_alias *alias = seldom->aliases;

                seldom->aliases = alias->next;
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

        while (before != &living &&
               stook_container_of(before, struct stook_cache, all)->born > cache->born)
                before = before->prev;
        stook_list_insert_between(&cache->all, before, before->next);
}

/*
 * Makes the lists anew from the caches' states, after their holder vanished. What that thread was
 * making or giving up is lost.
 */
static void rebuild(void)
{
        stook_list_init(&living);
        stook_list_init(&idle_indices);
        for (unsigned i = 1; i < stook_caches_used; i++) {
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
                stook_registry_recover();
                if (stook_registry_is_mine())
                        return;
                if (stook_mutex_is_held(&mutex))
                        rebuild();
        }
        stook_mutex_reset(&mutex);
}

/*
 * After a jump out of this function the next call does it again: the word is what it was, and the
 * count is raised.
 */
void stook_registry_recover(void)
{
        if (!stook_mutex_was_left(&mutex))
                return;
        stook_mutex_inherit(&mutex);
        rebuild();
        stook_registry_unlock();
}

static bool answers_to(const struct stook_cache *cache, const char *name)
{
        if (!strcmp(stook_cache_name(cache), name))
                return true;
        for (const struct stook_alias *alias = stook_cache_seldom(cache)->aliases; alias;
             alias = alias->next)
                if (!strcmp(alias->name, name))
                        return true;
        return false;
}

bool stook_registry_add_alias(struct stook_cache *cache, const char *name)
{
        struct stook_seldom *seldom = stook_cache_seldom(cache);
        struct stook_alias *alias = idle_aliases;

        if (answers_to(cache, name))
                return true;
        if (alias)
                idle_aliases = alias->next;
        else
                alias = stook_meta_bump(sizeof(*alias), 0);
        if (!alias)
                return false;
        strcpy(alias->name, name);
        alias->next = seldom->aliases;
        seldom->aliases = alias;
        return true;
}

STOOK_API struct stook_cache *stook_cache_find(const char *name)
{
        struct stook_cache *found = NULL;

        if (!name)
                return NULL;
        if (!stook_registry_lock(STOOK_REFUSED("stook_cache_find")))
                return (errno = EDEADLK, NULL);
        while ((found = stook_registry_next(found)) && !answers_to(found, name))
                ;
        stook_registry_unlock();
        return found;
}

STOOK_API int stook_cache_for_each(int (*each)(struct stook_cache *cache, void *data), void *data)
{
        struct stook_cache *cache = NULL;
        int answer = 0;

        if (!each)
                return -EINVAL;
        if (!stook_registry_lock(STOOK_REFUSED("stook_cache_for_each")))
                return -EDEADLK;
        while (!answer && (cache = stook_registry_next(cache)))
                answer = each(cache, data);
        stook_registry_unlock();
        return answer;
}
