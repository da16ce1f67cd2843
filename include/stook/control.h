/*
 * <stook/control.h> - the process's heap as a whole
 */
#ifndef STOOK_CONTROL_H
#define STOOK_CONTROL_H

#include <stddef.h>
#include <stdint.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stook_mode {
        size_t      mode_size;          /* in: sizeof(struct stook_mode) */
        const char *backend;            /* "rseq" or "locked" */
        const char *index;              /* "mm_cid", "cpu_id" or "hash" */
        const char *registration;       /* "libc", "own" or "none": who registered this thread's rseq area */
        const char *thp;                /* "system", "always" or "never" */
        uint32_t    nodes;
        uint32_t    slots;              /* slots there may be */
        uint32_t    slots_ready;        /* slots filled so far */
        uint32_t    page_bytes;
};

/* How this process and this thread run. Return: 0; -EINVAL: NULL, or mode_size unknown; -ENOMEM: there is no heap. */
#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"       /* g++ says it of a function that is called as a structure is */
#endif
STOOK_PUBLIC int stook_mode(struct stook_mode *mode);
#if defined(__cplusplus) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/*
 * stook_trim() - give free memory back to the system
 * Empties the caches' slots and barns and purges free spans, but keeps about @keep_bytes of them.
 * Return: bytes returned to the system. Not signal-safe.
 */
STOOK_PUBLIC size_t stook_trim(size_t keep_bytes);

/*
 * stook_maintain() - one round of ageing and draining, for programs that idle
 * Gives back what caches keep and nobody needs, in all slots, those of CPUs that are gone too; purges what has been
 * free for longer than STOOK_DECAY_MS; hands partly filled sheaves that wait for readers to RCU. Where memory is scarce
 * (pressure stall information, or memory.high of the cgroup) it does what stook_trim(0) does. What it finds is judged
 * by what the round before saw: call it a few times a second, or once in a while. Nothing needs it for correctness.
 * Return: 0. Not signal-safe.
 */
STOOK_PUBLIC int stook_maintain(void);

/*
 * stook_maintenance_thread() - have a thread do that
 * @on: 1: start it, unless it runs; 0: stop it, and wait for its end
 * The thread blocks all signals and sleeps an eighth of STOOK_DECAY_MS between rounds, longer while there is nothing to
 * do. It hands nothing to RCU. The child of a fork has none until it calls this, stook_maintain() or stook_trim().
 * STOOK_MAINTENANCE=1 starts it with the program.
 * Return: 0; -EINVAL: @on is neither; -EAGAIN, -ENOMEM: no thread could be had. Not signal-safe.
 */
STOOK_PUBLIC int stook_maintenance_thread(int on);

/* "MAJOR.MINOR.PATCH" */
STOOK_PUBLIC const char *stook_version(void);

#ifdef __cplusplus
}
#endif
#endif
