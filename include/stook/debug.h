/*
 * <stook/debug.h> - reports of misuse
 */
#ifndef STOOK_DEBUG_H
#define STOOK_DEBUG_H

#include <stddef.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

enum stook_fault {
        STOOK_FAULT_FOREIGN = 1,        /* pointer outside all of our memory */
        STOOK_FAULT_NOT_LIVE,           /* in our memory, but no object lives there */
        STOOK_FAULT_INTERIOR,           /* not the start of an object */
        STOOK_FAULT_WRONG_CACHE,        /* an object of another cache */
        STOOK_FAULT_DOUBLE_FREE,        /* already free */
        STOOK_FAULT_OBJECTS_LEFT,       /* destroy: objects still allocated */
        STOOK_FAULT_CORRUPT,            /* an invariant of the heap does not hold */
        STOOK_FAULT_RCU,                /* a wait for a grace period that could never end */
};

struct stook_report {
        size_t           report_size;   /* sizeof(struct stook_report) */
        enum stook_fault fault;
        const char      *text;          /* one line, without newline: what is printed */
        const void      *object;        /* the pointer the report is about */
        const char      *cache_name;    /* the cache called for or, failing that, the object's; may be NULL */
        const void      *slab;          /* start of the slab the pointer lies in, or NULL */
        size_t           offset;        /* of the pointer in the slab, bytes */
};

/*
 * stook_on_report() - be called at each report, before the library aborts or goes on
 * @call: NULL to stop; it may run in any thread, in a signal handler too, and must not call the library
 */
STOOK_PUBLIC void stook_on_report(void (*call)(const struct stook_report *report, void *data), void *data);

/* Checks all invariants of a quiescent cache; each fault found is reported. Return: faults found; -EINVAL: cache NULL. */
STOOK_PUBLIC int stook_cache_validate(struct stook_cache *cache);

#ifdef __cplusplus
}
#endif
#endif
