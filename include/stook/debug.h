/*
 * <stook/debug.h> - reports of misuse
 *
 * A report is a line on standard error, and indented lines with what else is known. Then the
 * process aborts. But "objects left", "leak" and what a check of the heap finds end no process: the
 * call fails, or the process goes on. With STOOK_ON_FAULT=log the process always goes on, and the
 * call that was misused has done nothing.
 */
#ifndef STOOK_DEBUG_H
#define STOOK_DEBUG_H

#include <stddef.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Debug modes, as cache flags: or'ed into `flags` of struct stook_cache_args, besides those of
 * <stook/cache.h>. STOOK_DEBUG=LETTERS,CACHE in the environment does the same, by the letters
 * below, without a change of the program: stook-env(7). A cache with a mode has no sheaves, and is
 * never shared. Its objects take more memory, and every call more time. What is found at fault is
 * reported, and never handed out again.
 */
/* F: the state of each object, at each step; and the sizes that frees name. */
#define STOOK_CACHE_CHECK      (UINT64_C(1) << 16)
/* Z: red zones of at least 16 bytes before and behind each object. */
#define STOOK_CACHE_RED_ZONE   (UINT64_C(1) << 17)
/* P: poison in free objects. Not where a constructor or a reader wants their content. */
#define STOOK_CACHE_POISON     (UINT64_C(1) << 18)
/* U: where an object was allocated and freed: thread, time and call stack. */
#define STOOK_CACHE_STORE_USER (UINT64_C(1) << 19)
/* T: a line on standard error for each allocation and each free. */
#define STOOK_CACHE_TRACE      (UINT64_C(1) << 20)
/* A: the cache is one of those whose allocations may be made to fail. */
#define STOOK_CACHE_MAY_FAIL   (UINT64_C(1) << 21)
/* Q: freed objects wait in a quarantine: 1 MiB of all caches, if STOOK_DEBUG does not say more. */
#define STOOK_CACHE_QUARANTINE (UINT64_C(1) << 22)

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
        STOOK_FAULT_INJECTED,           /* an allocation was made to fail: STOOK_FAIL */
        STOOK_FAULT_MISMATCH,           /* freed by a call that does not belong to the one before */
        STOOK_FAULT_USE_AFTER_FREE,     /* an access stopped: the object was free */
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
        const char      *heap_name;     /* the heap that was misused (heap.h); else NULL */
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
 * stook_set_output() - have what the library writes to standard error go to a function
 * @write: gets each piece of text, which is not ended by a 0: reports with all of their lines, what
 *         the library says of variables, the figures of STOOK_PRINT. It is called in any thread,
 *         also in a signal handler, and in a child that checks the heap (stook_validate_all()). It
 *         must return, and must not call the library. NULL: standard error.
 * @data: passed to @write; it stays the caller's
 * Threads: MT-safe, signal-safe. A text on its way in another thread may still go to the old place.
 */
STOOK_PUBLIC void stook_set_output(void (*write)(const char *text, size_t bytes, void *data),
                                   void *data);

/*
 * Which allocations are made to fail. They are those of caches with STOOK_CACHE_MAY_FAIL, of caches
 * that STOOK_FAIL names, and of malloc's large objects if STOOK_FAIL names them. The terms hold in
 * this order. They are those of the kernel's fault injection.
 */
struct stook_fail_terms {
        size_t   terms_size;            /* sizeof(struct stook_fail_terms) */
        uint64_t space;                 /* none fails until so many bytes were allocated */
        uint32_t interval;              /* only each interval-th may fail; at least 1 */
        uint32_t probability;           /* percent of those that do; 0 to 100 */
        int64_t  times;                 /* so many fail at most; negative: no limit; 0: none */
};

/*
 * stook_set_fail() - choose which allocations fail from now on
 * @terms: copied; counting begins anew. NULL: none fails.
 * Return: 0; -EINVAL: terms_size unknown, interval 0, or a probability above 100.
 * Threads: MT-safe, signal-safe. An allocation beside the call may see old and new terms.
 */
STOOK_PUBLIC int stook_set_fail(const struct stook_fail_terms *terms);

/*
 * stook_fail_count() - how many allocations were made to fail
 * Return: since the start of the process, or of a forked child's parent.
 * Threads: MT-safe, signal-safe.
 */
STOOK_PUBLIC uint64_t stook_fail_count(void);

/*
 * stook_cache_validate() - check all invariants of a cache
 * No other thread may use the cache during the call. Each fault found is reported.
 * Return: faults found; or
 *   -EINVAL  cache NULL
 *   -EBUSY   another thread is inside the cache's barns and does not leave
 *   -EDEADLK see stook_cache_create()
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_cache_validate(struct stook_cache *cache);

/*
 * stook_leak_check() - report objects that nothing in the program leads to any more
 * A copy of the process is searched, while other threads go on: data, stacks, thread storage, what
 * the program mapped, and all objects. A word that could be an address within an object counts as a
 * pointer to it. What only registers of other threads lead to counts as lost, and so does an object
 * whose address is kept in another form. Looked at are objects of caches with mode U
 * (STOOK_DEBUG), and large objects of malloc's. Each group of objects that were allocated by the
 * same calls is reported on standard error, but for those below functions that STOOK_SUPPRESS
 * names.
 * Return: objects that are lost, at most INT_MAX; or
 *   -ENODATA no cache has mode U
 *   -EAGAIN  the system makes no process, or no pipe to it
 *   -EDEADLK called in a callback of stook_cache_for_each(); it is reported
 *   -ENOMEM  the library could not be started
 *   -EIO     the search failed: no memory, or memory cannot be read
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_leak_check(void);

/*
 * stook_validate_all() - check the whole heap while other threads use it
 * All caches, malloc's too, large objects and the pages, as they are at one moment: in a child that
 * is forked for it. Each fault found is reported, by the child: a function of stook_on_report() is
 * called there. Costs a fork() and a walk over the heap; the calling thread waits, others go on.
 * The child ends by _exit(); its end gives the program a SIGCHLD.
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
