/*
 * <stook/rcu.h> - frees that wait for readers
 *
 * An object given to stook_cache_free_rcu() stays as it is, every byte of it, until all readers that may have seen
 * it have left: until a grace period of the RCU implementation in use has passed. Then it is free. Objects wait in
 * sheaves, so a grace period is asked for once for a whole sheaf, and a sheaf that comes out of one full goes to
 * the barn as it is, to be allocated from.
 *
 * The core knows no RCU. It is given one as a table of functions: one of the four below, which are liburcu's
 * flavours and live in libstook-urcu, or your own.
 *
 *      stook_rcu_use(&stook_urcu_memb);
 *      ...
 *      old = rcu_xchg_pointer(&shared, new);
 *      stook_cache_free_rcu(cache, old);
 *
 * A thread that calls anything here must be one that may call the table's functions: with liburcu's flavours, but
 * for bp, it is registered.
 */
#ifndef STOOK_RCU_H
#define STOOK_RCU_H

#include <stddef.h>
#include <stdint.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Two words that belong to the implementation from call() until the callback: liburcu's struct rcu_head fits. */
struct stook_rcu_head {
        void *reserved[2];
};

/*
 * An RCU implementation. The table lives as long as the process.
 *   call          calls @done(head) after a grace period that begins now, from any thread that holds no lock and may
 *                 wait. Never fails, does not wait.
 *   barrier       returns when all callbacks given to `call` before have returned.
 *   read_lock, read_unlock, quiescent
 *                 for users of the table that read (<stook/maple.h>); may be NULL: nothing to do.
 *   may_wait      0: to wait for a grace period here would never end, because the calling thread is a reader itself,
 *                 or runs the callbacks. 1: `barrier` may be called, but who just waits keeps others waiting.
 *                 2: both may be done. NULL: not known, taken for 1.
 */
struct stook_rcu {
        size_t ops_size;                /* sizeof(struct stook_rcu) */
        void (*call)(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head));
        void (*barrier)(void);
        void (*read_lock)(void);
        void (*read_unlock)(void);
        void (*quiescent)(void);
        int  (*may_wait)(void);
};

/*
 * liburcu's flavours. In libstook-urcu: link with -lstook-urcu (pkg-config stook-urcu, CMake stook::urcu), and with the
 * flavour itself for its read sections (urcu_memb_read_lock() of <urcu/urcu-memb.h>: pkg-config liburcu-memb). Each that is
 * used has a thread of its own (stook-rcu), made with the first free; barriers do not depend on it.
 */
extern STOOK_PUBLIC const struct stook_rcu stook_urcu_memb, stook_urcu_mb, stook_urcu_qsbr, stook_urcu_bp;

/*
 * stook_urcu_handle_forks() - whether libstook-urcu stops its thread and calls liburcu's handlers around fork(2), so that
 * the child frees what waited in the parent. On by default; fork(2) inside a read section then never returns.
 * @on: 0: the program, or another library of it, calls liburcu's handlers itself (call_rcu_before_fork() and so on):
 *      done twice it is a deadlock. It knows of liburcu's threads only, so frees go through liburcu's call_rcu from then
 *      on, which begins a grace period every 10 ms at most. To be called before the first free. Else: on.
 * In libstook-urcu, signal-safe.
 */
STOOK_PUBLIC void stook_urcu_handle_forks(int on);

/*
 * stook_rcu_use() - which RCU the process uses, for all caches that were not made with one of their own
 * Return: 0; -EINVAL: NULL, ops_size unknown, call or barrier missing; -EBUSY: another one is in use, that is,
 * something was freed by it already. Signal-safe. The first call finds out how much memory there is, by files of
 * /proc and /sys (stook_rcu_limit).
 */
STOOK_PUBLIC int stook_rcu_use(const struct stook_rcu *rcu);

/*
 * stook_cache_free_rcu() - give an object back once its readers have left
 * @object: from @cache; NULL is fine. Nothing is written to it before.
 * Return: 0: it is the library's now.
 *   -ENOTSUP no RCU was chosen (stook_rcu_use), nor given to the cache: the object is still the caller's
 *   -EAGAIN  no place to note it in, or too much waits for readers already (stook_rcu_limit): still the caller's.
 *            Never for caches made with STOOK_RCU, whose objects have a hidden word for it.
 *   -EINVAL  cache NULL
 * Misuse (no object of the cache) is reported as stook_cache_free() does; where reports do not abort, -EINVAL.
 * May wait for readers if too much waits already. errno is preserved. Threads: MT-safe. Signal-safe if the table's
 * `call` is; if that is not known, handlers use stook_cache_free_rcu_nolock().
 */
STOOK_PUBLIC int stook_cache_free_rcu(struct stook_cache *cache, void *object);

/* The same without calling the table and without waiting for anybody: what is full is handed to the next ordinary
 * call, or barrier. Signal-safe. */
STOOK_PUBLIC int stook_cache_free_rcu_nolock(struct stook_cache *cache, void *object);

/*
 * stook_free_rcu() - the same for an object of <stook/malloc.h> of any size, or of any cache
 * Return: as stook_cache_free_rcu(). A pointer that is not ours is reported; -EINVAL where reports do not abort.
 */
STOOK_PUBLIC int stook_free_rcu(void *object);

/* The same as stook_cache_free_rcu_nolock() does it. Signal-safe. */
STOOK_PUBLIC int stook_free_rcu_nolock(void *object);

/*
 * stook_cache_rcu_barrier() - wait until all objects of a cache that were given to free_rcu before this call are free
 *     (NULL: nothing is done)
 * stook_rcu_barrier() - the same for everything
 * Calls the table's barrier. Inside a read section or a callback, where it could never end, it is reported as misuse
 * of stook_cache_free() is; where reports do not abort, it returns at once. Not signal-safe. stook_cache_destroy() does
 * it by itself.
 */
STOOK_PUBLIC void stook_cache_rcu_barrier(struct stook_cache *cache);
STOOK_PUBLIC void stook_rcu_barrier(void);

/*
 * stook_rcu_limit() - how much may wait for readers
 * @bytes: of objects; 0: an eighth of the memory there is (the smallest of RAM, memory.max and RLIMIT_AS)
 * @milliseconds: how long a free waits, where it may (see may_wait), before it answers -EAGAIN; 1000 at first
 * Above it, each free that would submit a sheaf waits, then fails; so do nolock ones at once. Caches made with STOOK_RCU
 * wait, too, but then take the object; that is reported once. STOOK_RCU_BACKLOG=BYTES sets it from the environment.
 * Return: 0. Signal-safe.
 */
STOOK_PUBLIC int stook_rcu_limit(uint64_t bytes, unsigned milliseconds);
/* Bytes of objects that wait, without those in sheaves not yet full. Signal-safe. */
STOOK_PUBLIC uint64_t stook_rcu_backlog(void);

#ifdef __cplusplus
}
#endif
#endif
