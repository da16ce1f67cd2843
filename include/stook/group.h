/*
 * <stook/group.h> - accounting groups: how much memory is used, for what, and a limit on it
 *
 * A group counts the bytes of objects allocated in its name. It refuses an object that would exceed
 * its limit. A thread enters a group. From then on, what the thread allocates with malloc and from
 * caches made with STOOK_CACHE_ACCOUNT is charged to the group, until any thread frees the object.
 * Groups form trees: what is charged to a group is charged to its ancestors, too.
 *
 * An object is charged the bytes it takes in its slab. In accounted caches that includes 8 bytes
 * that name the group. A large object of malloc is charged its pages. Objects that lie free in
 * sheaves are charged to no group.
 * An object of a prefilled sheaf is charged when it is taken, beyond the limit if need be.
 * Each CPU charges up to 128 KiB in advance, for up to four groups (the precharge). So a pair of
 * charge and uncharge touches no shared memory. stook_group_usage() leaves the precharge out.
 * Before an allocation is refused, precharges are given back. So a limit is exact, except for what
 * other threads allocate at the same moment.
 *
 * The model is the kernel's memory control groups, as users of slabs see them. The first group that
 * is made slows down every malloc of the process by a few nanoseconds: the hot path then does not
 * know whether to charge.
 *
 * "MT-safe" and "signal-safe" mean what <stook/cache.h> says.
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

/* Groups that may exist at a time. A group that was destroyed and has objects left counts. */
#define STOOK_GROUPS_MAX 65534

/*
 * stook_group_create() - make a group
 * @name: 1 to 63 bytes, copied; it need not be unique
 * @parent: is charged all that this group is charged; NULL: none. It lives on until this group
 *          ends.
 * @limit_bytes: most bytes that the group may be charged; 0: no limit
 *
 * Ownership: the caller's, until stook_group_destroy().
 * Return: the group, or NULL with errno
 *   EINVAL  name NULL, empty or too long
 *   EAGAIN  STOOK_GROUPS_MAX groups exist
 *   ENOMEM  no memory
 *   EDEADLK the first group, in a callback of stook_cache_for_each()
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC struct stook_group *stook_group_create(const char *name, struct stook_group *parent,
                                                    uint64_t limit_bytes);

/*
 * stook_group_enter() - charge what this thread allocates from now on to a group
 * @group: one that was not destroyed. NULL leaves: then the process's own group is charged, if
 *         there is one (STOOK_GROUP_LIMIT, stook-env(7)), else no group.
 *
 * The thread keeps the group alive while it is inside. A thread that ends inside leaves the group
 * then. There is one exception: with glibc, if the process had 32 keys of thread-specific data
 * before its first group, such a thread keeps the group for ever. It must leave before it ends.
 * Leaving without having entered does nothing.
 * Return: the group that the thread was in, or NULL. Entering that one again ends a nested stay.
 * A group that has ended is not entered: then the thread is in none.
 * Threads: MT-safe. Signal-safe if the handler, before it returns, enters what this returned.
 */
STOOK_PUBLIC struct stook_group *stook_group_enter(struct stook_group *group);

/*
 * stook_group_set_limit() - another limit
 * @limit_bytes: 0: none. A limit below the usage takes nothing away. It refuses allocations until
 *               enough is freed; but what is freed on a CPU, up to 128 KiB, may be allocated there
 *               again.
 * Return: 0; -EINVAL: group NULL.
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_group_set_limit(struct stook_group *group, uint64_t limit_bytes);

/*
 * stook_group_usage() - bytes of live objects charged to a group and to groups below it
 * Return: bytes; exact while no thread is inside a call; 0 for NULL.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC uint64_t stook_group_usage(const struct stook_group *group);

/*
 * stook_group_current() - the group that this thread has entered
 * Return: the group; NULL: none. The process's own group is entered by nobody.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC struct stook_group *stook_group_current(void);

/*
 * stook_group_for_each() - call a function for every group that has not ended, in no order
 * @each: ends the walk by returning a number other than 0. Groups that were destroyed and have
 *        objects left are shown, too. Pass those, and any group that another thread may destroy,
 *        to stook_group_get_stats() and stook_group_usage() alone.
 * @data: passed to @each
 * Return: what @each returned last, 0 without a group; -EINVAL: @each NULL.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_group_for_each(int (*each)(struct stook_group *group, void *data),
                                      void *data);

/* The figures of a group. */
struct stook_group_stats {
        size_t   stats_size;            /* in: sizeof(struct stook_group_stats) */
        char     name[64];              /* as given at creation */
        uint64_t limit_bytes;           /* 0: none */
        uint64_t usage_bytes;           /* as stook_group_usage() */
        uint64_t precharge_bytes;       /* charged in advance, for CPUs */
        uint64_t peak_bytes;            /* the highest sum of usage and precharge so far */
        uint64_t limit_events;          /* charges that met the limit, precharges given back */
        uint64_t refusals;              /* allocations refused, after the callback */
};

/*
 * stook_group_get_stats() - the figures of a group
 * @stats: stats_size is set by the caller; the call fills the rest
 * Return: 0; -EINVAL: group or stats NULL, or stats_size unknown.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_group_get_stats(const struct stook_group *group,
                                       struct stook_group_stats *stats);

/*
 * stook_group_on_limit() - have a function called before an allocation is refused
 * @callback: gets the group whose limit is met, the bytes wanted, and @data. It runs in the thread
 *            that allocates, which may be in a signal handler. What it allocates is charged to no
 *            group. If it frees enough, the allocation succeeds. NULL: no call.
 * @data: stays the caller's
 * The callback is not called for STOOK_ALLOC_NOWAIT and nolock allocations.
 * Return: 0; -EINVAL: group NULL.
 * Threads: set it before other threads use the group. Not signal-safe.
 */
STOOK_PUBLIC int stook_group_on_limit(struct stook_group *group,
                                      void (*callback)(struct stook_group *group, size_t wanted,
                                                       void *data), void *data);

/*
 * stook_group_destroy() - end the caller's ownership of a group
 * @group: NULL is fine. The caller must not use it any more.
 * The group lives on until its last object is freed, the last thread has left it, and the last
 * group below it has ended. Destroying a group twice is misuse, and is reported.
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC void stook_group_destroy(struct stook_group *group);

/*
 * stook_cache_alloc_group() - an object charged to a group named here
 * @cache: made with STOOK_CACHE_ACCOUNT
 * @flags: allocation flags
 * @group: not destroyed yet; NULL: no group is charged. The thread's own group does not count.
 * Return: the object, or NULL with errno
 *   ENOMEM  no memory, or a limit is met; with STOOK_ALLOC_THISNODE: none on that node
 *   EINVAL  cache NULL or made without STOOK_CACHE_ACCOUNT, an unknown flag, STOOK_ALLOC_ZERO with
 *           a constructor
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC void *stook_cache_alloc_group(struct stook_cache *cache, unsigned flags,
                                           struct stook_group *group);

#ifdef __cplusplus
}
#endif
#endif
