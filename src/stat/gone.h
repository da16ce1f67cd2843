/*
 * Purpose: what is remembered of caches that were destroyed, for statistics at the end of a
 * process. Caches of one name and object size share an entry. The last entry takes what finds no
 * place.
 * Place: cache adds, at the end of a destroy; inspect reads.
 * Concurrency: writers hold the registry mutex. Readers hold nothing: an entry is whole before the
 *  count says so (M1), and its numbers are read one by one, relaxed.
 */
#ifndef STOOK_GONE_H
#define STOOK_GONE_H

#include "stat/counter.h"

#define STOOK_GONE_MAX 64               /* entries; arbitrary */

struct stook_gone {
        char     name[64];              /* const, as the next four */
        uint64_t object_size, stride, objects_per_slab, slab_bytes;
        uint64_t caches;                /* that the entry has taken */
        uint64_t slabs_peak, objects_peak;      /* the highest of them */
        uint64_t counted[STOOK_STAT_COUNT];     /* sums */
};

/* @one: a cache; `caches` is not read. */
void stook_gone_add(const struct stook_gone *one);
unsigned stook_gone_count(void);
/* @at below stook_gone_count(); its numbers as @stats. Return: caches of the entry. */
uint64_t stook_gone_get(unsigned at, struct stook_cache_stats *stats);

#endif
