/*
 * <stook/sampling.h> - samples of allocations, started and stopped in the running process
 *
 * A session samples one allocation in so many bytes, at next to no cost, and follows its life. The
 * heap profile of it is stook_profile_write()'s (<stook/stats.h>), or what `stook profile` reads of
 * the process. STOOK_SAMPLE starts one with the process. "MT-safe" and "signal-safe" mean what
 * <stook/cache.h> says.
 */
#ifndef STOOK_SAMPLING_H
#define STOOK_SAMPLING_H

#include <stddef.h>
#include <stdint.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The call stacks of frees, too: lifetimes by pair of stacks. */
#define STOOK_SAMPLING_LIFETIMES 1u

/*
 * A guarded sample lies between pages without access, and loses its own when it is freed. An access
 * beyond one of its ends, or after its free, stops at that instruction. A handler of SIGSEGV then
 * reports it, with the stacks of the fault, of the free and of the allocation, unless the program
 * handles or ignores that signal. At most 64 are in use at a time, of a page less 16 bytes at most.
 */
struct stook_sampling_args {
        size_t   args_size;             /* sizeof(struct stook_sampling_args) */
        uint64_t interval;              /* bytes, 1 to 1 TiB; 0: 2 MiB */
        uint64_t most;                  /* samples kept a second, 1 to 1,000,000; 0: 200 */
        uint64_t guard;                 /* guarded objects a second, to 1,000,000; 0: none */
        uint64_t flags;                 /* STOOK_SAMPLING_*; 0: none */
};

/*
 * stook_sampling_start() - begin a session; one that runs ends
 * @args: what it is to be like; NULL: as all zeros. The library keeps no pointer to it
 * From the return on every allocation of the process may be a sample. Empties the slots of all
 * caches, so it takes some milliseconds. The first session of a process loads the C library's
 * unwinder, which allocates.
 * Return: 0; or
 *   -EINVAL  args_size unknown, a number out of its range, an unknown flag
 *   -ENOMEM  no memory, or the library could not start
 *   -EDEADLK in a callback of stook_cache_for_each(), which is reported
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_sampling_start(const struct stook_sampling_args *args);

/*
 * stook_sampling_stop() - end the session
 * Samples that are alive stay, and are followed to their ends. The profile stays.
 * Return: 0; -ENOTSUP: none runs.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_sampling_stop(void);

struct stook_sampling_stats {
        size_t   stats_size;            /* in: sizeof(struct stook_sampling_stats) */
        uint64_t interval;              /* bytes; 0: no session runs */
        uint64_t marks;                 /* samples since the process started */
        uint64_t kept;                  /* of them: counted in the profile */
        uint64_t in_place;              /* of those: only their allocation is counted */
        uint64_t guarded;               /* of those: between guard pages */
        double   share;                 /* of samples that is kept now, above 0 to 1 */
};

/*
 * stook_sampling_get_stats() - how the session goes
 * @stats: stats_size is set by the caller; the call fills the rest
 * Return: 0; -EINVAL: stats NULL, or stats_size unknown.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_sampling_get_stats(struct stook_sampling_stats *stats);

/*
 * stook_describe() - what is known of an address
 * @pointer: any address, such as that of a fault
 * @text: gets lines of text, ended by 0, of @bytes bytes at most; what does not fit is left out
 * Where the address lies in an object of the heap, or beside one, the text says in which, and how
 * far from its ends. Of a guarded sample it says, too, whether it is freed, and has the stacks of
 * its allocation and free, as addresses (`stook symbolize` names them). For a program's own handler
 * of SIGSEGV.
 * Return: bytes of the text, without the 0; 0: nothing is known of it; -EINVAL: no room for a text.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC int stook_describe(const void *pointer, char *text, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
