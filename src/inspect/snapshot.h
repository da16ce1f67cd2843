/*
 * Purpose: one cache's figures from counters and sums that were already taken; for snapshot.c and
 * stats_page.c.
 * Concurrency: relaxed reads, any thread, any instruction; exact when no thread is in a call on
 *  the cache.
 */
#ifndef STOOK_SNAPSHOT_H
#define STOOK_SNAPSHOT_H

#include <stook/stats.h>
#include "barn/sheaf.h"
#include "cache/cache.h"

/* Fills everything but stats_size. @sums: of the cache's sheaves. */
void stook_snapshot_cache(const struct stook_cache *cache, const struct stook_sheaf_sums *sums,
                          struct stook_cache_stats *stats);

#endif
