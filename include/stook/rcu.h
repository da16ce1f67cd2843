/*
 * <stook/rcu.h> - frees that wait for readers
 *
 * stook_cache_free_rcu() takes an object that readers may still see. No byte of it is written until
 * all readers that may have seen it have left: until a grace period of the RCU implementation has
 * passed. Then the object is free. Objects wait in sheaves. One grace period is asked for once for
 * a whole sheaf, and a sheaf that was full goes to the barn afterwards as it is.
 *
 * The program names the RCU implementation as a table of functions: stook_rcu_epoch, which is in
 * libstook itself; one of liburcu's flavours, which are in libstook-urcu; or its own.
 *
 *      stook_rcu_use(&stook_urcu_memb);
 *      ...
 *      old = rcu_xchg_pointer(&shared, new);
 *      if (stook_cache_free_rcu(cache, old) == -EAGAIN) {      // never with STOOK_CACHE_RCU
 *              urcu_memb_synchronize_rcu();
 *              stook_cache_free(cache, old);
 *      }
 *
 * A thread that calls anything here must be allowed to call the table's functions. With liburcu's
 * flavours, except bp, the thread is registered with liburcu.
 *
 * "MT-safe" and "signal-safe" mean what <stook/cache.h> says. All calls are MT-safe.
 */
#ifndef STOOK_RCU_H
#define STOOK_RCU_H

#include <stddef.h>
#include <stdint.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Two words that belong to the implementation from call() until the callback. liburcu's
 * struct rcu_head fits. The library may read them meanwhile, and makes nothing of what it reads.
 * An implementation that is to be clean under ThreadSanitizer stores them atomically.
 */
struct stook_rcu_head {
        void *reserved[2];
};

/*
 * An RCU implementation. The table lives as long as the process.
 *   call          calls @done(head) after a grace period that begins now. The thread that calls
 *                 @done holds no lock and may wait. Never fails, does not wait, and returns before
 *                 @done is called: a @done that asks for another grace period would recurse.
 *   barrier       returns when all callbacks given to `call` before have returned.
 *   read_lock, read_unlock, quiescent
 *                 for users of the table that read (<stook/maple.h>). NULL: nothing to do.
 *   may_wait      0: a wait for a grace period in this thread would never end, because the thread
 *                 is a reader itself or runs the callbacks.
 *                 1: it may call `barrier`, but not wait otherwise, which would delay others.
 *                 2: any wait. NULL: unknown, taken for 1.
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
 * An implementation of the library's own. Threads need no registration. A read section is
 * stook_epoch_read_lock() to stook_epoch_read_unlock(): a load and a store each. Sections nest,
 * 65,535 deep at most; a deeper one is reported, and ends the process. A thread's first section
 * takes a record of 64 bytes, which another thread uses after its end. A grace period costs its
 * thread a membarrier, and a look at each record. Where membarrier is refused, sections have a
 * fence each. If it is refused after the first reader came, no grace period ends any more: that is
 * reported, and what waits stays allocated.
 *
 * Callbacks run in a thread named stook-rcu, which the first `call` or `barrier` makes, with all
 * signals blocked. It begins a grace period when 64 callbacks wait, or after 10 ms. Barriers do not
 * depend on it. After a fork the child goes on with what waited in its parent. A child of _Fork()
 * or clone() makes no thread, so callbacks wait for a barrier there. A callback that another thread
 * was in at that moment is lost.
 * When the program's last thread has ended, that thread ends within a second, and the process as by
 * exit(0): callbacks that wait then are not called.
 * A callback returns. One that is left by a jump, or ends its thread, holds grace periods up. They
 * go on when that thread calls stook_epoch_synchronize(), `call` or `barrier` from where it jumped
 * to, or when it ends. That is reported. A thread that jumped out of a callback in a call of
 * stook_epoch_synchronize() or `barrier` cannot be cancelled until it calls
 * pthread_setcancelstate(3).
 * `call` is signal-safe while there is that thread, and in a child of _Fork() or clone(). Where
 * /proc cannot be read, it ends once the first thread has, and the next `call` makes another.
 */
extern STOOK_PUBLIC const struct stook_rcu stook_rcu_epoch;

/*
 * stook_epoch_read_lock(), stook_epoch_read_unlock() - a read section of stook_rcu_epoch
 * A grace period that begins inside the section ends after it. Both are called by one thread. An
 * unlock without a lock is misuse, and reported; so is the end of a thread inside a section.
 * Threads: signal-safe. A child of fork(2) or _Fork() is inside of what its thread was inside of.
 */
STOOK_PUBLIC void stook_epoch_read_lock(void);
STOOK_PUBLIC void stook_epoch_read_unlock(void);

/*
 * stook_epoch_synchronize() - wait for a grace period of stook_rcu_epoch
 * Callbacks that waited before the call have returned, too.
 * Return: 0; or
 *   -EDEADLK  called inside a read section or a callback, which is misuse: reported, and returned
 *             only where reports do not abort
 *   -ENOTSUP  the system refuses membarrier since the first reader came
 *   -ENOMEM   the library could not start
 * Threads: not signal-safe.
 */
STOOK_PUBLIC int stook_epoch_synchronize(void);

/*
 * liburcu's flavours, in libstook-urcu: link with -lstook-urcu (pkg-config stook-urcu, CMake
 * stook::urcu). Link with the flavour itself, too, for its read sections (urcu_memb_read_lock() of
 * <urcu/urcu-memb.h>: pkg-config liburcu-memb). Each flavour in use has a thread named stook-rcu,
 * made with the first free. Barriers do not depend on it. Once the first thread of the process has
 * ended, it ends when there was nothing to do for half a second, and the next free makes another.
 */
extern STOOK_PUBLIC const struct stook_rcu stook_urcu_memb;
extern STOOK_PUBLIC const struct stook_rcu stook_urcu_mb;
extern STOOK_PUBLIC const struct stook_rcu stook_urcu_qsbr;
extern STOOK_PUBLIC const struct stook_rcu stook_urcu_bp;

/*
 * stook_urcu_handle_forks() - whether libstook-urcu handles fork(2) for liburcu
 * @on: not 0, the default: around a fork libstook-urcu stops its threads and calls liburcu's
 *      handlers, so that the child frees what waited in the parent. A fork inside a read section
 *      then never returns.
 *      0: the program, or another library of it, calls liburcu's handlers itself
 *      (call_rcu_before_fork() and so on). Calling them twice is a deadlock. The handlers know
 *      liburcu's threads only. So frees go through liburcu's call_rcu from then on, which begins a
 *      grace period every 10 ms at most.
 * To be called before the first free. In libstook-urcu.
 * Threads: signal-safe.
 */
STOOK_PUBLIC void stook_urcu_handle_forks(int on);

/*
 * stook_urcu_begin(), stook_urcu_passed() - a grace period that the program waits for anyway
 * @table: one of the four flavours above; another one is ignored
 * @begun: what stook_urcu_begin() returned, at most; 0 ends nothing
 *
 * What waits for readers of a flavour is free after any grace period, whoever waits for it.
 * libstook-urcu cannot see those of the program. A program that tells of them has less waiting:
 *
 *      uint64_t begun = stook_urcu_begin(&stook_urcu_memb);
 *      urcu_memb_synchronize_rcu();
 *      stook_urcu_passed(&stook_urcu_memb, begun);
 *
 * So it does with liburcu's poll interface: the first call before
 * urcu_memb_start_poll_synchronize_rcu(), the second one, in any thread, once
 * urcu_memb_poll_state_synchronize_rcu() is true. stook_urcu_passed() frees what was given by
 * stook_cache_free_rcu() and its like, in sheaves that were submitted before the first call, and
 * was not free yet. It calls callbacks, which a fork waits for. The grace period must begin after
 * the first call returned, and end before the second one: otherwise readers see freed objects.
 * Calls in callbacks of the table, or in handlers on top of its `barrier`, return 0 and do nothing.
 * With stook_urcu_handle_forks(0) they end nothing. stook_rcu_epoch needs nothing of this: all its
 * grace periods are its own. In libstook-urcu.
 * Return: a number for stook_urcu_passed(); 0: nothing waits, or none is to be had
 * Threads: MT-safe; the thread is registered with liburcu, and no reader. Not signal-safe.
 */
STOOK_PUBLIC uint64_t stook_urcu_begin(const struct stook_rcu *table);
STOOK_PUBLIC void stook_urcu_passed(const struct stook_rcu *table, uint64_t begun);

/*
 * stook_rcu_use() - name the RCU implementation of the process
 * @rcu: for all caches that were not made with one of their own. It lives as long as the process.
 * The first call finds out how much memory there is, from files of /proc and /sys: see
 * stook_rcu_set_limit().
 * Return: 0; or
 *   -EINVAL  rcu NULL, ops_size unknown, call or barrier missing
 *   -EBUSY   an object was freed by another implementation already
 * Threads: signal-safe.
 */
STOOK_PUBLIC int stook_rcu_use(const struct stook_rcu *rcu);

/*
 * stook_cache_free_rcu() - give an object back once its readers have left
 * @object: from @cache; NULL is fine. The object is not written to before its readers have left.
 * If too much waits already, the call may wait for readers (stook_rcu_set_limit()). errno is
 * preserved.
 * Return: 0: the library owns the object. On failure the caller still owns it
 *   -ENOTSUP no RCU was named by stook_rcu_use(), nor at the cache's creation
 *   -EAGAIN  there is no place to note the object in, or too much waits for readers. Never for
 *            caches made with STOOK_CACHE_RCU, whose objects have a hidden word for it.
 *   -EINVAL  cache NULL; or the pointer is no object of the cache, which is misuse: reported, and
 *            returned only where reports do not abort
 * Threads: signal-safe if the table's `call` is. If that is not known, handlers use
 * stook_cache_free_rcu_nolock().
 */
STOOK_PUBLIC int stook_cache_free_rcu(struct stook_cache *cache, void *object);

/*
 * stook_cache_free_rcu_nolock() - stook_cache_free_rcu() for callers that must not block
 * It neither calls the table's functions nor waits. A sheaf that it fills is submitted by the next
 * ordinary free that fills a sheaf, or by a barrier, stook_maintain(), shrink, trim or destroy.
 * Return: as stook_cache_free_rcu().
 * Threads: signal-safe.
 */
STOOK_PUBLIC int stook_cache_free_rcu_nolock(struct stook_cache *cache, void *object);

/*
 * stook_cache_free_rcu_bulk() - give n objects back once their readers have left
 * @n: objects; 0 does nothing
 * @objects: n pointers to objects of @cache; NULL among them is fine. Whole sheaves are filled from
 *           the array. May be NULL only if n is 0. Its content is unspecified after success.
 * Return: 0: the library owns all of them. On failure those that it owns are NULL in the array, and
 * the caller still owns the others
 *   -ENOTSUP, -EAGAIN, -EINVAL  as stook_cache_free_rcu(). After -EAGAIN the call goes on with no
 *             further object.
 *   -EINVAL  also: objects NULL and n not 0
 * errno is preserved.
 * Threads: signal-safe if the table's `call` is.
 */
STOOK_PUBLIC int stook_cache_free_rcu_bulk(struct stook_cache *cache, size_t n, void **objects);

/*
 * stook_free_rcu(), stook_free_rcu_nolock() - the same for an object of <stook/malloc.h> or of any
 *     cache
 * @object: of any size; NULL is fine
 * Return: as stook_cache_free_rcu().
 * Threads: stook_free_rcu() is signal-safe if the table's `call` is; the nolock form always.
 */
STOOK_PUBLIC int stook_free_rcu(void *object);
STOOK_PUBLIC int stook_free_rcu_nolock(void *object);

/*
 * stook_cache_rcu_barrier() - wait until all objects of @cache that were given to a free by RCU
 *     before this call are free; NULL: nothing is done
 * stook_rcu_barrier() - the same for all caches
 * They call the table's `barrier`. Inside a read section or a callback, where that would never end,
 * they are reported as misuse; where reports do not abort, they return at once.
 * stook_cache_destroy() includes the barrier of its cache.
 * A thread that ended, jumped out or was stopped in the middle of a free by RCU is waited for once,
 * for a second. Then it is reported, and what it held (as a rule a sheaf of objects) stays
 * allocated for ever.
 * Threads: not signal-safe.
 */
STOOK_PUBLIC void stook_cache_rcu_barrier(struct stook_cache *cache);
STOOK_PUBLIC void stook_rcu_barrier(void);

/*
 * stook_rcu_set_limit() - how much may wait for readers
 * @limit_bytes: of objects; 0: an eighth of the memory there is (the smallest of RAM, memory.max
 *               and RLIMIT_AS)
 * @milliseconds: how long a free waits, where it may (see may_wait), before it returns -EAGAIN;
 *                1000 at first
 * Above the limit, each free that would submit a sheaf waits and then fails. Nolock forms fail at
 * once. Frees of caches made with STOOK_CACHE_RCU wait, too, but then take the object; that is
 * reported once. STOOK_RCU_BACKLOG=BYTES sets the limit from the environment.
 * Threads: signal-safe.
 */
STOOK_PUBLIC void stook_rcu_set_limit(uint64_t limit_bytes, unsigned milliseconds);

/*
 * stook_rcu_backlog() - how much waits for readers
 * Return: bytes of objects that wait, without those in sheaves that are still open on a slot.
 * Threads: signal-safe.
 */
STOOK_PUBLIC uint64_t stook_rcu_backlog(void);

#ifdef __cplusplus
}
#endif
#endif
