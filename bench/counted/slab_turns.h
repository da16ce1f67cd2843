/*
 * bench/counted/slab_turns.h - the slabs of a cache, and their list's lock, counted
 *
 * Purpose: counts each ask for a lock by its kind: in a fill, which may wait; in a give, which must
 * not wait; a try. The build includes this header before the sources of slab, whose calls it
 * replaces by macros. bench/counted/slab_turns.cc includes it, too. The counters are plain, because
 * the threads of that program run one at a time.
 */
#ifndef BENCH_SLAB_TURNS_H
#define BENCH_SLAB_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stook_cache;

struct slab_turns_lock {
        uint64_t asked, busy, refused;
};

struct slab_turns_counted {
        struct slab_turns_lock of[3];   /* fill, give, again */
};

#ifdef __cplusplus
extern "C" {
#endif

extern struct slab_turns_counted slab_turns_counted;

/* The slabs of @cache. Locks sleep by the two at the end from here on. */
void *slab_turns_begin(struct stook_cache *cache);
size_t slab_turns_fill(void *slabs, size_t n, void **objects);
void   slab_turns_give(void *slabs, size_t n, void *const *objects);
/* Does the calling thread hold the lock of node 0? */
bool   slab_turns_holds(const void *slabs);
void   slab_turns_sleep(uint32_t *word, uint32_t value, uint64_t ns);
void   slab_turns_wake(uint32_t *word);

#ifdef __cplusplus
}
#else

#include "base/lock.h"

STOOK_INLINE bool slab_turns_ask(struct stook_lock *lock, bool (*ask)(struct stook_lock *),
                                 unsigned kind)
{
        struct slab_turns_lock *counted = &slab_turns_counted.of[kind];
        bool busy = __atomic_load_n(&lock->word, __ATOMIC_RELAXED) != 0, got = ask(lock);

        counted->asked++;
        counted->busy += busy;
        counted->refused += !got;
        return got;
}

#define stook_lock_take(lock) \
        slab_turns_ask(lock, stook_lock_take, stook_lock_may_not_wait() ? 1 : 0)
#define stook_lock_try(lock)  slab_turns_ask(lock, stook_lock_try, 2)

#endif
#endif
