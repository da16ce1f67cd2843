/*
 * <stook/sheaf.h> - prefilled sheaves: allocations that cannot fail
 *
 * Ask for n objects where failing, waiting and system calls are fine; take them one by one where they are not:
 *
 *      struct stook_sheaf *sheaf = stook_sheaf_prefill(nodes, 5, 0);
 *      if (!sheaf)
 *              return -ENOMEM;                 // nothing has begun yet
 *      lock(&tree);
 *      a = stook_sheaf_alloc(nodes, sheaf);    // up to 5 of them, none fails
 *      unlock(&tree);
 *      stook_sheaf_return(nodes, sheaf);       // with what is left in it
 *
 * The guarantee: after stook_sheaf_prefill(cache, n, flags) has given a sheaf, the next n calls of
 * stook_sheaf_alloc on it return an object. They take no lock, wait for nobody, make no system call, and
 * run a fixed number of instructions; so they may be made in a signal handler, in a child of fork or vfork,
 * while any other thread was stopped inside any call of the library, and when there is no memory left.
 * (The first touch of an object's memory may be a page fault, as with any memory.)
 *
 * A sheaf has one holder at a time: calls on one sheaf must not overlap, in a handler on top of one neither.
 * It may be handed from thread to thread. Objects from it are ordinary ones: stook_cache_free() gives
 * them back. Returned, the sheaf goes to where the cache takes sheaves from, so that the next prefill finds it.
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
 * @n: objects, 1 to 65534
 * @flags: STOOK_ZERO: each object taken from it reads as zeros; STOOK_NOWAIT
 *
 * Up to the cache's sheaf capacity this costs about as much as ten allocations, most times, and the sheaf is
 * filled to its capacity: see stook_sheaf_available(). Above it (always in a cache without sheaves) the sheaf is
 * made for the purpose, holds n exactly, and is taken apart when it is returned.
 * Ownership: the caller's, until stook_sheaf_return().
 * Return: the sheaf; NULL with errno
 *   EINVAL  cache NULL, n 0 or above 65534, an unknown flag, STOOK_ZERO with a constructor
 *   ENOMEM  no memory
 * Signal-safe.
 */
STOOK_PUBLIC struct stook_sheaf *stook_sheaf_prefill(struct stook_cache *cache, size_t n, unsigned flags);

/*
 * stook_sheaf_refill() - have at least n objects in a sheaf again
 * @sheaf: of that cache; *sheaf may be replaced by a larger one
 * @n: objects, 0 to 65534; enough in it already: nothing is done
 * @flags: as for prefill, and from here on instead of those given before
 *
 * Return: 0; -ENOMEM: no memory; the sheaf is as good as it was, perhaps with more objects than before; -EINVAL: cache,
 * sheaf or *sheaf NULL, no sheaf on loan from this cache, n above 65534, flags as for prefill. Signal-safe.
 */
STOOK_PUBLIC int stook_sheaf_refill(struct stook_cache *cache, struct stook_sheaf **sheaf, size_t n, unsigned flags);

/* Objects in a sheaf: so many calls of stook_sheaf_alloc() will succeed; 0 for NULL. Signal-safe. */
STOOK_PUBLIC size_t stook_sheaf_available(const struct stook_sheaf *sheaf);

/*
 * stook_sheaf_alloc() - one object out of a sheaf
 * @cache, @sheaf: a sheaf and its cache; NULL is not allowed, and not looked for: it ends the process (SIGSEGV)
 * Return: the object, as stook_cache_alloc() gives it, or with its bytes zero (STOOK_ZERO); NULL, with errno left alone,
 * only when the sheaf is empty. Signal-safe; see the guarantee above.
 */
STOOK_PUBLIC void *stook_sheaf_alloc(struct stook_cache *cache, struct stook_sheaf *sheaf);

/*
 * stook_sheaf_return() - give a sheaf back, with the objects that are left in it
 * @cache: the one it was borrowed from; NULL with a sheaf is misuse
 * @sheaf: NULL is fine; it must not be used any more
 *
 * A sheaf of another cache, and one that was returned before, is reported as misuse of stook_cache_free() is; where
 * reports do not abort, the call does nothing. errno is preserved. It may take memory from the slabs, to fill the sheaf up
 * for the next user, but never fails. Signal-safe.
 */
STOOK_PUBLIC void stook_sheaf_return(struct stook_cache *cache, struct stook_sheaf *sheaf);

#ifdef __cplusplus
}
#endif
#endif
