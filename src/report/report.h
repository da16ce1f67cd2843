/*
 * Purpose: report misuse: one line on stderr, stable text, without an allocation; then abort, or go
 * on where STOOK_ON_FAULT=report says so.
 * Text:  stook: FAULT: pointer 0x... (cache NAME, slab 0x... offset N)[: detail]
 * Parts that are not known (NULL) are left out. FAULT is one of
 *        foreign pointer, pointer to no live object, interior pointer, wrong cache, double free,
 *        objects left, corrupted, endless wait, deadlock
 * Concurrency: any thread, any instruction; each report is one write.
 */
#ifndef STOOK_REPORT_H
#define STOOK_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stook/debug.h>
#include "base/compiler.h"

/* Any of cache_name, slab, detail may be NULL. Returns only where reports do not abort. */
STOOK_COLD void stook_report_fault(enum stook_fault fault, const void *object,
                                   const char *cache_name, const void *slab, size_t offset,
                                   const char *detail);

/* The same for results of a search (validation, objects left at destroy). Always returns. */
STOOK_COLD void stook_report_found(enum stook_fault fault, const void *object,
                                   const char *cache_name, const void *slab, size_t offset,
                                   const char *detail);

/* An invariant of ours does not hold: file-independent label, e.g. "slab I2". Always aborts. */
STOOK_COLD _Noreturn void stook_report_impossible(const char *label);

/*
 * For stook_rank_set_report (base/rank.h): this thread waits for @wanted and holds @held. Aborts.
 */
#if STOOK_LOCK_RANKS
STOOK_COLD _Noreturn void stook_report_rank(const char *held, const char *wanted);
#endif

#define stook_assert(cond, label) \
        do { if (STOOK_UNLIKELY(!(cond))) stook_report_impossible(label); } while (0)

enum stook_on_fault { STOOK_ON_FAULT_ABORT, STOOK_ON_FAULT_REPORT };
extern uint32_t stook_report_policy STOOK_HIDDEN;        /* atomic, enum stook_on_fault */
void stook_report_set_policy(enum stook_on_fault policy);

/* After a report of misuse the process lives on. */
STOOK_INLINE bool stook_report_goes_on(void)
{
        return __atomic_load_n(&stook_report_policy, __ATOMIC_RELAXED) != STOOK_ON_FAULT_ABORT;
}

uint64_t stook_report_count(void);

/*
 * Formats into @buffer without libc: %s %p %u (uint64_t) %x (uint64_t) %%; always terminated.
 * Returns bytes written.
 */
size_t stook_report_format(char *buffer, size_t bytes, const char *format, ...);

#endif
