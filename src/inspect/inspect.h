/*
 * Purpose: what the files of inspect ask of each other, and what life/start.c names of them.
 */
#ifndef STOOK_INSPECT_H
#define STOOK_INSPECT_H

#include <stddef.h>
#include <stook/stats.h>
#include "barn/sheaf.h"
#include "cache/cache.h"

/* ---- snapshot.c ---- */
/* Of all caches in one walk: sums[index], as stook_sheaf_sum(). */
void stook_snapshot_sums(struct stook_sheaf_sums *sums, unsigned count);
/*
 * One cache's figures from counters and sums that were already taken. Relaxed reads, any thread,
 * any instruction; exact when no thread is in a call on the cache. Fills everything but stats_size.
 * @sums: of the cache's sheaves.
 */
void stook_snapshot_cache(const struct stook_cache *cache, const struct stook_sheaf_sums *sums,
                          struct stook_cache_stats *stats);

/* ---- heap_stats.c ---- */

/* Racy, unless the registry mutex is held. Fills everything. */
struct stook_heap;
struct stook_heap_stats;
void stook_snapshot_heap(const struct stook_heap *heap, struct stook_heap_stats *stats);

/* ---- print.c ---- */
/*
 * Gives the text to @put in pieces of whole lines. Any instruction, no lock held, nothing
 * allocated; figures of other threads' calls that are under way may be off.
 */
void stook_print_stats(void (*put)(const char *text, size_t bytes, void *data), void *data);

/* ---- what works by constructors and destructors alone ---- */
/*
 * No call leads there, and of an archive a linker takes only what is called. So life/start.c names
 * a function of each file, and a program that is linked to libstook.a has them, too.
 */
void stook_check_end(void);             /* validate.c: damage to debugged objects, at exit */
void stook_leak_end(void);              /* leak.c: STOOK_LEAKS */
void stook_print_end(void);             /* print.c: STOOK_PRINT */
void stook_stats_page_unload(void);     /* stats_page.c: STOOK_STATS */

#endif
