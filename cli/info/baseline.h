/*
 * Purpose: a reset of counters without touching the process: what they were at one moment is kept,
 * in memory or in a file, and taken off what they are later.
 */
#ifndef STOOK_CLI_BASELINE_H
#define STOOK_CLI_BASELINE_H

#include "cli/heap/heap.h"

/* Counters of one cache, at one moment. */
struct baseline_cache {
        uint64_t library;               /* address of its root: which copy */
        uint64_t born;
        uint64_t n[STOOK_STAT_COUNT];
};

struct baseline {
        uint32_t pid;
        uint64_t at_ns;                 /* CLOCK_MONOTONIC; of this machine since its start */
        struct baseline_cache *caches;
        size_t   count;
};

/* Notes all counters of a heap. False: no memory. */
bool baseline_add(struct baseline *baseline, const struct heap *heap);
/* Takes them off. Caches that are younger than the baseline stay as they are. */
void baseline_take_off(const struct baseline *baseline, struct heap *heap);
/* Return: 0; -errno: -EBADMSG: no such file, or one that was cut off. */
int  baseline_save(const struct baseline *baseline, const char *path);
int  baseline_load(struct baseline *baseline, const char *path);
void baseline_free(struct baseline *baseline);

/* What a cache's counters rose by since an earlier look, which has them before; 0: not known. */
const struct baseline_cache *baseline_of(const struct baseline *baseline, const struct heap *heap,
                                         const struct heap_cache *cache);

#endif
