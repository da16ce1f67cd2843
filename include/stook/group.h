/*
 * <stook/group.h> - accounting groups: who uses how much, and no more than so much
 *
 * A group counts the bytes of objects allocated in its name and refuses those that would exceed its limit. A thread
 * enters a group; from then on what it allocates with malloc, and from caches made with STOOK_ACCOUNT, is charged to
 * it, until the object is freed, by whomever. Groups form trees: what a group is charged, its ancestors are, too.
 *
 * An object is charged at the bytes it takes in its slab, which for accounted caches includes 8 bytes that name the
 * group; a large object of malloc at its pages. Objects that lie free in sheaves are charged to nobody. Each CPU
 * keeps a stock of up to 128 KiB charged in advance for up to four groups, so that a pair of charge and uncharge
 * touches no shared memory; stook_group_usage() leaves stocks out, and before an allocation is refused they are
 * given back. So a limit is exact but for what other threads allocate at the same moment.
 *
 * Modelled on the kernel's memory control groups as slab users see them. The first group that is made slows down
 * every malloc of the process by a few nanoseconds, as the hot path then does not know whether to charge.
 *
 * "Signal-safe" means: at any instruction of any other call of the library, from a signal handler too.
 */
#ifndef STOOK_GROUP_H
#define STOOK_GROUP_H

#include <stddef.h>
#include <stdint.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stook_group;

/* Groups that may exist at a time, those counted that are gone but have objects left. */
#define STOOK_GROUPS_MAX 65534

/*
 * stook_group_create() - make a group
 * @name: 1 to 63 bytes, copied; need not be unique
 * @parent: charged with all that this group is charged; NULL: none. It lives on until this group ends.
 * @limit_bytes: most bytes the group may be charged; 0: no limit
 *
 * Ownership: the caller's, until stook_group_put().
 * Return: the group, or NULL with errno EINVAL (name), ENFILE (STOOK_GROUPS_MAX exist) or ENOMEM.
 * MT-safe, not signal-safe.
 */
STOOK_PUBLIC struct stook_group *stook_group_create(const char *name, struct stook_group *parent, uint64_t limit_bytes);

/*
 * stook_group_enter() - charge what this thread allocates from now on to a group
 * @or_null: a group that has not been put, or NULL: leave; then the process's own group counts, if it has one
 *     (STOOK_GROUP_LIMIT, stook-env(7)), else nobody
 *
 * The thread keeps the group alive while it is inside. A thread that ends inside leaves it then; but where the process
 * had 32 keys of thread-specific data before its first group (glibc), it keeps the group for ever: leave before.
 * Leaving without having entered does nothing.
 * Return: the group the thread was in, NULL if none: enter that again to end a nested stay. A group that ended
 * meanwhile is not entered: the thread then is in none.
 * MT-safe; signal-safe if the handler enters back what this returned.
 */
STOOK_PUBLIC struct stook_group *stook_group_enter(struct stook_group *or_null);

/*
 * stook_group_set_limit() - another limit
 * @bytes: 0: none. A limit below the usage is accepted: nothing is taken away, but nothing more is given until
 *     enough is freed; though what is freed on a CPU, up to 128 KiB, may be allocated there again.
 * Return: 0; -EINVAL: NULL. MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_group_set_limit(struct stook_group *group, uint64_t bytes);

/* Bytes of live objects charged to the group and to groups below it: exact while no thread is inside a call; 0 for NULL. Signal-safe. */
STOOK_PUBLIC uint64_t stook_group_usage(const struct stook_group *group);

struct stook_group_stats {
        size_t   stats_size;            /* in: sizeof(struct stook_group_stats) */
        char     name[64];
        uint64_t limit_bytes;           /* 0: none */
        uint64_t usage_bytes;           /* as stook_group_usage() */
        uint64_t stock_bytes;           /* charged in advance, in the stocks of CPUs */
        uint64_t peak_bytes;            /* highest sum of the two so far */
        uint64_t limit_events;          /* charges that met this group's limit, stocks already given back */
        uint64_t refusals;              /* allocations that failed for it, after the callback */
};

/* Return: 0; -EINVAL: NULL, or stats_size unknown. MT-safe, signal-safe. */
STOOK_PUBLIC int stook_group_get_stats(const struct stook_group *group, struct stook_group_stats *stats);

/*
 * stook_group_on_limit() - be told before an allocation is refused
 * @callback: called with the group whose limit is met, the bytes wanted and @data, in the thread that allocates, which
 *     may be in a signal handler; what it allocates is charged to nobody. If it frees enough (a cache of the program's
 *     own), the allocation succeeds after all. NULL: nobody is told.
 * Not called for STOOK_NOWAIT and *_nolock allocations. Set it before the group is used by other threads. For a NULL
 * group nothing is done.
 */
STOOK_PUBLIC void stook_group_on_limit(struct stook_group *group,
                                       void (*callback)(struct stook_group *group, size_t wanted, void *data), void *data);

/*
 * stook_group_put() - the caller needs the group no more
 * It lives on until its last object is freed, the last thread has left it and the last group below it ended; the
 * handle must not be used any more. NULL is fine. Putting what has ended already is reported. MT-safe, not signal-safe.
 */
STOOK_PUBLIC void stook_group_put(struct stook_group *group);

/*
 * stook_cache_alloc_group() - an object charged to a group named here, whatever group the thread is in
 * @cache: made with STOOK_ACCOUNT
 * @flags: STOOK_ZERO, STOOK_NOWAIT (no limit callback), or 0
 * @group: has not been put; NULL: charge nobody
 * Return: the object, or NULL with errno ENOMEM (no memory, or over a limit), EINVAL (flags; cache NULL, or without
 * STOOK_ACCOUNT; STOOK_ZERO with a constructor). MT-safe, signal-safe.
 */
STOOK_PUBLIC void *stook_cache_alloc_group(struct stook_cache *cache, unsigned flags, struct stook_group *group);

#ifdef __cplusplus
}
#endif
#endif
