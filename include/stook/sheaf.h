/*
 * <stook/sheaf.h> - prefilled sheaves: allocations that cannot fail
 *
 * A program asks for n objects where failing, waiting and system calls are allowed. It takes them
 * one by one where they are not:
 *
 *      struct stook_sheaf *sheaf = stook_sheaf_prefill(nodes, 0, 5);
 *      if (!sheaf)
 *              return -ENOMEM;                 // nothing has begun yet
 *      lock(&tree);
 *      a = stook_sheaf_alloc(nodes, sheaf);    // up to 5 of them, none fails
 *      unlock(&tree);
 *      stook_sheaf_return(nodes, sheaf);       // with what is left in it
 *
 * The guarantee: after stook_sheaf_prefill(cache, flags, n) has returned a sheaf, the next n calls
 * of stook_sheaf_alloc() on it return an object. They take no lock, wait for no thread, make no
 * system call, and run a fixed number of instructions. So they are allowed in a signal handler, in
 * a child of fork or vfork, while any other thread is stopped inside any call of the library, and
 * when there is no memory left. One place is left out: a child of vfork without the drop-in, for a
 * cache with STOOK_CACHE_ACCOUNT. The first touch of an object's memory may be a page fault, as
 * with any memory.
 *
 * A sheaf has one holder at a time. Calls on one sheaf must not overlap, and a handler must not use
 * a sheaf that it interrupted a call on. A thread may hand a sheaf to another thread. Objects taken
 * from a sheaf are ordinary: stook_cache_free() gives them back. A returned sheaf goes where the
 * cache takes sheaves from, so that the next prefill finds it.
 *
 * "MT-safe" and "signal-safe" mean what <stook/cache.h> says.
 */
#ifndef STOOK_PREFILLED_SHEAF_H
#define STOOK_PREFILLED_SHEAF_H

#include <stddef.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stook_sheaf;                     /* opaque */

/*
 * stook_sheaf_prefill() - borrow a sheaf with at least n objects in it
 * @flags: allocation flags. STOOK_ALLOC_ZERO: each object is zeroed when it is taken from the
 *         sheaf. STOOK_ALLOC_THISNODE: all objects are of one node. STOOK_ALLOC_NOWAIT: on_low and
 *         reclaim of a cache with a limit are not called. It has no other effect, because a prefill
 *         is charged to no group. An object is charged when it is taken, whatever the group's
 *         limit.
 * @n: objects, 0 to 65534
 *
 * Up to the cache's sheaf capacity the call usually costs about as much as ten allocations, and the
 * sheaf is filled to its capacity: see stook_sheaf_available(). Above it, and always in a cache
 * without sheaves, the sheaf is made for the purpose. It holds n objects exactly, and is taken
 * apart when it is returned. The same holds with STOOK_ALLOC_THISNODE on several nodes. In a
 * cache with a limit a sheaf holds n objects exactly, too. They count as owned from this call on.
 * Ownership: the caller's, until stook_sheaf_return().
 * Return: the sheaf, or NULL with errno
 *   EINVAL  cache NULL, n above 65534, an unknown flag, STOOK_ALLOC_ZERO with a constructor
 *   ENOMEM  no memory, or the limit of the cache is met; with STOOK_ALLOC_THISNODE: fewer objects
 *           on that node
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC struct stook_sheaf *stook_sheaf_prefill(struct stook_cache *cache, unsigned flags,
                                                     size_t n);

/*
 * stook_sheaf_refill() - have at least n objects in a sheaf again
 * @flags: as for prefill; they replace the flags given before. STOOK_ALLOC_THISNODE: a sheaf that
 *         has an object of another node is replaced.
 * @sheaf: a sheaf of that cache; *sheaf may be replaced by another
 * @n: objects, 0 to 65534; if the sheaf has as many, nothing is filled
 *
 * Return: 0; or
 *   -ENOMEM  no memory, or the limit of the cache is met; the sheaf has what it had, perhaps more
 *   -EINVAL  cache, sheaf or *sheaf NULL, *sheaf not on loan from this cache, n above 65534, an
 *            unknown flag, STOOK_ALLOC_ZERO with a constructor
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_sheaf_refill(struct stook_cache *cache, unsigned flags,
                                    struct stook_sheaf **sheaf, size_t n);

/*
 * stook_sheaf_available() - objects in a sheaf
 * Return: as many calls of stook_sheaf_alloc() will succeed; 0 for NULL.
 * Threads: signal-safe.
 */
STOOK_PUBLIC size_t stook_sheaf_available(const struct stook_sheaf *sheaf);

/*
 * stook_sheaf_alloc() - one object out of a sheaf
 * @cache, @sheaf: a sheaf and its cache. NULL is not tested for: the process ends with SIGSEGV.
 * Ownership: the caller's, until a free.
 * Return: the object, as stook_cache_alloc() returns it, or with its bytes zero (STOOK_ALLOC_ZERO).
 * NULL only if the sheaf is empty. Unlike other calls it leaves errno untouched then.
 * Threads: signal-safe; see the guarantee above.
 */
STOOK_PUBLIC void *stook_sheaf_alloc(struct stook_cache *cache, struct stook_sheaf *sheaf);

/*
 * stook_sheaf_return() - give a sheaf back, with the objects that are left in it
 * @cache: the one it was borrowed from; NULL with a sheaf is misuse
 * @sheaf: NULL is fine. The caller must not use it any more.
 *
 * The call never fails. It may take memory from the slabs to fill the sheaf up for the next user.
 * Returning a sheaf of another cache, or a second time, is misuse: it is reported as in
 * stook_cache_free(); where reports do not abort, the call does nothing. errno is preserved.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC void stook_sheaf_return(struct stook_cache *cache, struct stook_sheaf *sheaf);

#ifdef __cplusplus
}
#endif
#endif
