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

/* How this process and this thread run. Return: 0; -EINVAL: mode_size unknown. */
STOOK_PUBLIC int stook_mode(struct stook_mode *mode);

/*
 * stook_trim() - give free memory back to the system
 * Empties the caches' slots and barns and purges free spans, but keeps about @keep_bytes of them.
 * Return: bytes returned to the system. Not signal-safe.
 */
STOOK_PUBLIC size_t stook_trim(size_t keep_bytes);

/* One round of ageing, for programs that idle: purges what has been free for long. Return: 0. Not signal-safe. */
STOOK_PUBLIC int stook_maintain(void);

/* "MAJOR.MINOR.PATCH" */
STOOK_PUBLIC const char *stook_version(void);

#ifdef __cplusplus
}
#endif
#endif
