/*
 * <stook/control.h> - the process's heap as a whole
 *
 * "MT-safe" and "signal-safe" mean what <stook/cache.h> says.
 */
#ifndef STOOK_CONTROL_H
#define STOOK_CONTROL_H

#include <stddef.h>
#include <stdint.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How this process and this thread run. Strings are constants of the library. */
struct stook_mode {
        size_t      mode_size;          /* in: sizeof(struct stook_mode) */
        const char *backend;            /* "rseq" or "locked" */
        const char *index;              /* of a thread's slot: "mm_cid", "cpu_id", "hash" */
        const char *registration;       /* this thread's rseq area: "libc", "own", "none" */
        const char *thp;                /* "auto", "auto-dear", "system", "always" or "never" */
        uint32_t    nodes;              /* NUMA nodes */
        uint32_t    slots;              /* slots there may be */
        uint32_t    slots_ready;        /* slots filled so far */
        uint32_t    page_bytes;         /* bytes of the system's page */
};

/*
 * stook_get_mode() - how this process and this thread run
 * @mode: mode_size is set by the caller; the call fills the rest
 * Return: 0; or
 *   -EINVAL  mode NULL, or mode_size unknown
 *   -ENOMEM  the library could not start
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_get_mode(struct stook_mode *mode);

/*
 * stook_trim() - give free memory back to the system
 * @keep_bytes: about so many free bytes are kept
 * Empties the slots and barns of all caches, and purges free spans.
 * Return: bytes returned to the system; 0 in a callback of stook_cache_for_each(), which is
 * reported.
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC size_t stook_trim(size_t keep_bytes);

/*
 * stook_maintain() - one round of maintenance, for programs that idle
 *
 * Gives back what caches keep and no thread used since the round before, in the slots of all CPUs.
 * Purges what has been free for longer than STOOK_DECAY_MS. Submits partly filled sheaves that
 * wait for readers. Where memory is scarce (pressure stall information, or memory.high of the
 * cgroup) it does what stook_trim(0) does. A program calls it a few times a second, or now and
 * then. It is never needed for correctness. Without memory for a start of the library it does
 * nothing.
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC void stook_maintain(void);

/*
 * stook_maintenance_thread() - a thread that calls stook_maintain()
 * @on: 1: start the thread, unless it runs; 0: stop it, and wait for its end
 *
 * The thread blocks all signals. It sleeps an eighth of STOOK_DECAY_MS between rounds, longer
 * while there is nothing to do. It submits nothing to RCU. The child of a fork has no such thread
 * until it calls this, stook_maintain() or stook_trim(). STOOK_MAINTENANCE=1 starts it with the
 * program. Less than a second after the program's last thread it ends, and the process ends as by
 * exit(0). Where /proc cannot be read, it ends as soon as the first thread has.
 * Return: 0; or
 *   -EINVAL  @on is neither 0 nor 1
 *   -EAGAIN  the system gives no thread
 *   -ENOMEM  the library could not start, or no memory for a thread
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_maintenance_thread(int on);

/*
 * stook_on_pressure() - have a function called where memory becomes scarce
 * @callback: a round of maintenance that finds memory scarce (see stook_maintain()) calls it before
 *            it gives back all that lies free, in the thread of that round, with nothing held. It
 *            may use the library. NULL: no call.
 * @data: passed to it; stays the caller's
 * memory.high of the cgroup is a soft limit for the process in this way. Only stook_maintain() and
 * the maintenance thread make rounds.
 * Threads: set it before other threads make rounds. Not signal-safe.
 */
STOOK_PUBLIC void stook_on_pressure(void (*callback)(void *data), void *data);

/*
 * stook_on_no_memory() - have a function called before malloc fails
 * @callback: returns 0: it could do nothing, and the call fails with ENOMEM; else the call tries
 *            once more. It runs in the thread that allocates, one thread at a time: another one's
 *            malloc, and one that the callback makes, fail without it. NULL: no call.
 * @data: passed to it; stays the caller's
 * For all calls of <stook/malloc.h>, and those of the drop-in, that find no memory; not for nolock
 * calls, for those that may be in a signal handler, and where a group's limit is met
 * (stook_group_on_limit()). The program must not jump out of the callback.
 * Threads: set it before other threads allocate. Not signal-safe.
 */
STOOK_PUBLIC void stook_on_no_memory(int (*callback)(void *data), void *data);

/*
 * stook_version() - the version of the library that runs
 * Return: "MAJOR.MINOR.PATCH", a constant.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC const char *stook_version(void);

#ifdef __cplusplus
}
#endif
#endif
