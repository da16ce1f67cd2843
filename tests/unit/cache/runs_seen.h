/*
 * tests/unit/cache/runs_seen.h - what a program's functions see of a cache's runs
 *
 * Purpose: memory_in and memory_out that note each run of 2 MiB, prove that it comes once and goes
 * once, and may refuse it or map a file there; and objects that know their own number.
 * Place: tests/unit/cache/memory.c and memory_fork.c.
 */
#ifndef STOOK_TEST_RUNS_SEEN_H
#define STOOK_TEST_RUNS_SEEN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stook/stook.h>

#define RUN  ((size_t)2 << 20)
#define RUNS 64

extern struct seen {
        pthread_mutex_t mutex;
        uintptr_t runs[RUNS];           /* those that are in */
        unsigned in, out, refused;
        bool refuse;
        int fd;                         /* -1: nothing is mapped */
} seen;

extern void *objects[2 * RUN / 1000];

/* As before the first run. */
void forget(void);
/* Where seen.runs has the run, or -1. */
int find(uintptr_t run);

/* The arguments of a cache whose runs are seen. */
struct stook_cache_args asking(uint64_t flags);
struct stook_cache *create(size_t size, const struct stook_cache_args *args);
/* All that came has gone. */
void destroy(struct stook_cache *cache);

struct stook_cache_stats stats_of(const struct stook_cache *cache);
size_t bytes_kept(const struct stook_cache *cache);

/* All of objects[] from @from on, to as many as take @bytes. Return: where they end. */
size_t take(struct stook_cache *cache, size_t from, size_t bytes);
void give(struct stook_cache *cache, size_t from, size_t to);

#endif
