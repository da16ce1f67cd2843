/*
 * <stook/debug.h> - reports of misuse
 *
 * A report is a line on standard error, and indented lines with what else is known. Then the
 * process aborts. With STOOK_ON_FAULT=log the process goes on, and the call that was misused has
 * done nothing.
 */
#ifndef STOOK_DEBUG_H
#define STOOK_DEBUG_H

#include <stddef.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is wrong. */
enum stook_fault {
        STOOK_FAULT_FOREIGN = 1,        /* the pointer is outside all memory of the library */
        STOOK_FAULT_NOT_LIVE,           /* the pointer is in its memory; no object lives there */
        STOOK_FAULT_INTERIOR,           /* the pointer is not the start of an object */
        STOOK_FAULT_WRONG_CACHE,        /* the object is of another cache */
        STOOK_FAULT_DOUBLE_FREE,        /* the object, cache or group is free already */
        STOOK_FAULT_OBJECTS_LEFT,       /* a cache to be destroyed is still in use */
        STOOK_FAULT_CORRUPT,            /* an invariant of the heap does not hold */
        STOOK_FAULT_RCU,                /* a wait for a grace period could never end */
        STOOK_FAULT_DEADLOCK,           /* a call would wait for the call it was made in */
        STOOK_FAULT_OVERRUN,            /* bytes behind an object were written */
        STOOK_FAULT_UNDERRUN,           /* bytes before an object were written */
        STOOK_FAULT_WRITE_AFTER_FREE,   /* an object was written while it was free */
        STOOK_FAULT_WRONG_SIZE,         /* a free names another size than the allocation */
        STOOK_FAULT_LEAK,               /* nothing in the program leads to the object any more */
};

/* What a report says. Pointers are valid during the callback only. */
struct stook_report {
        size_t           report_size;   /* sizeof(struct stook_report) of the library */
        enum stook_fault fault;
        const char      *text;          /* the line that is printed, without its newline */
        const void      *object;        /* the pointer that the report is about; may be NULL */
        const char      *cache_name;    /* the cache of the call, else the object's; may be NULL */
        const void      *slab;          /* start of the slab that the pointer lies in, or NULL */
        size_t           offset;        /* of the pointer in the slab, bytes */
};

/*
 * stook_on_report() - have a function called at each report
 * @call: called before the library aborts or goes on, in any thread, also in a signal handler. It
 *        must not call the library. NULL: no call.
 * @data: passed to @call; it stays the caller's
 * Threads: MT-safe, signal-safe. A report on its way in another thread may still use the old pair.
 */
STOOK_PUBLIC void stook_on_report(void (*call)(const struct stook_report *report, void *data),
                                  void *data);

/*
 * stook_cache_validate() - check all invariants of a cache
 * No other thread may use the cache during the call. Each fault found is reported.
 * Return: faults found; or
 *   -EINVAL  cache NULL
 *   -EBUSY   another thread is inside the cache's barns and does not leave
 *   -EDEADLK called in a callback of stook_cache_for_each(); it is reported
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_cache_validate(struct stook_cache *cache);

/*
 * stook_validate_all() - check the whole heap while other threads use it
 * All caches, malloc's too, and the pages, as they are at one moment: in a child that is forked for
 * it. Each fault found is reported, by the child: a function of stook_on_report() is called there.
 * Costs a fork() and a walk over the heap; the calling thread waits, others go on. The child ends
 * by _exit(); its end gives the program a SIGCHLD.
 * Return: faults found; or
 *   -EDEADLK called in a callback of stook_cache_for_each(); it is reported
 *   -EIO     the child ended before it answered
 *   -EBUSY   another thread was inside a cache's barns
 *   -ENOMEM, -EAGAIN, -EMFILE, -ENFILE   there is no child, or no pipe to it
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_validate_all(void);

#ifdef __cplusplus
}
#endif
#endif
