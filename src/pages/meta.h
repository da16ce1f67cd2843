/*
 * Purpose: storage for descriptors, sheaves, barns and caches: never from a cache, so nothing
 * recurses. An atomic bump in ranges of its own, committed in small steps, and for
 * descriptors one tagged free stack. No lock at all, never unmapped, content zero when new.
 * Concurrency: any thread, any instruction.
 * Failure: NULL.
 */
#ifndef STOOK_META_H
#define STOOK_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"

struct stook_link;
struct stook_span;

void stook_meta_start(void);

/* The last page of the first range, zeroed, for ever. At start only, once. */
void *stook_meta_last_page(void);

/*
 * @bytes of zeroed memory for ever, aligned to 64 or to @align (a power of two, 64 KiB at most).
 * They are rounded up to 64, or to whole pages where @align is a page or more.
 */
void *stook_meta_bump(size_t bytes, size_t align);

/*
 * Address space without memory, from what was reserved for metadata; its pages are not to be huge.
 * @align: a power of two, a page or more. At start only. NULL: refused.
 */
void *stook_meta_reserve(size_t bytes, size_t align);

/* The address space that was reserved ahead, and has no memory, goes: space_limit.c. */
void stook_meta_give_back(void);

/*
 * A span descriptor, and back. Zeroed, but for three fields: `link` is stale, `kind` is UNUSED
 * until the caller sets it, and `pair` keeps its generations (span.h).
 */
struct stook_span *stook_meta_span_new(void);
void stook_meta_span_free(struct stook_span *span);

/*
 * Calls @each for every descriptor whose kind is not UNUSED. Quiescent: for a fork's child,
 * validation and tools.
 */
void stook_meta_span_for_each(void (*each)(struct stook_span *span, void *data), void *data);

size_t stook_meta_bytes(void);

/* ---- what readers outside the process look at (life/root.h) ---- */

#define STOOK_META_RANGES 24

struct stook_meta_range {
        uintptr_t base;                 /* written at start, or before `state` is 2 */
        uintptr_t size;                 /* the same; atomic: it may become less */
        uintptr_t bump;                 /* atomic: meta.c I1 */
        uintptr_t enabled;              /* meta.c M1 */
        uint32_t  state;                /* 0 free, 1 being made, 2 usable */
};
extern struct stook_meta_range stook_meta_ranges[STOOK_META_RANGES] STOOK_HIDDEN;

/* Atomic: the newest struct stook_span_block; blocks are pushed, never removed. */
extern struct stook_link *stook_span_blocks STOOK_HIDDEN;

#endif
