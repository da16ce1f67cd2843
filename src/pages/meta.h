/*
 * Purpose: storage for descriptors, sheaves, barns and caches: never from a cache, so nothing recurses.
 * An atomic bump in a reserved range of its own, committed in small steps, and for descriptors one tagged
 * free stack. No lock at all, never unmapped, content zero when new.
 * Concurrency: any thread, any instruction.
 * Failure: NULL.
 */
#ifndef STOOK_META_H
#define STOOK_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stook_span;

bool stook_meta_start(void);

/* @bytes (rounded up to 64; to whole pages from 4 KiB on) of zeroed memory for ever, aligned to 64 or to @align (power of two <= 64 KiB). */
void *stook_meta_bump(size_t bytes, size_t align);

/* A span descriptor, zeroed but for its stale link; and back. */
struct stook_span *stook_meta_span_new(void);
void stook_meta_span_free(struct stook_span *span);

/* Calls @each for every descriptor ever made (quiescent: fork child, validation, tools). */
void stook_meta_span_for_each(void (*each)(struct stook_span *span, void *data), void *data);

size_t stook_meta_bytes(void);

#endif
