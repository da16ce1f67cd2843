/*
 * Purpose: from an address of ours to the span it lies in and the cache it belongs to.
 * Entries stand for 4 KiB each, whatever the system's page size. There are two levels: the table of
 * ranges (source.h), and each range's array of entries. In the fast case, an address of the first
 * range, an entry is one load.
 *
 * An entry:  63..51 cache index (0: no slab) | 47..7 span descriptor | 6..0 minus the slab's page
 *
 * The page is the slab's start >> 12, of which seven bits are enough. So all pages of a slab have
 * the same entry. (With a page's number in the slab instead, an offset takes an instruction more.)
 * Its negative is there because an offset is a sum then: a difference takes a copy of the address.
 *
 * Place: called by every layer that has an address. The lookups of ranges beyond the first, and all
 * that writes entries, are in range.c.
 *
 * So a free finds the cache, and the object's offset in its slab, without touching the descriptor.
 * Spans that are no slab have entries with cache index 0, at their first and last page only. Pages
 * in between hold 0, or a stale entry with cache index 0: it leads to the descriptor of a span that
 * once began or ended there. See I2.
 *
 * Invariants:
 *  I1 an entry with a cache index belongs to a live slab: it is written before the first object is
 *     handed out and cleared before the span is given back.
 *  I2 an entry without one proves nothing until the descriptor agrees (kind, start).
 *  I3 an address range once ours stays ours; lookups of foreign addresses return 0.
 * Concurrency: the owner of the span writes (release), any thread reads (relaxed: the reader holds
 *  a pointer that was handed to it after the write).
 */
#ifndef STOOK_PAGEMAP_H
#define STOOK_PAGEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"
#include "os/os.h"

#define STOOK_MAP_SHIFT 12                      /* an entry stands for 4 KiB */
#define STOOK_MAP_PAGE ((size_t)1 << STOOK_MAP_SHIFT)
/* A slab is at most 512 KiB: 7 bits of page number. */
#define STOOK_SLAB_MAP_PAGES_MAX 128
#define STOOK_SLAB_BYTES_MAX (STOOK_SLAB_MAP_PAGES_MAX * STOOK_MAP_PAGE)
#define STOOK_ENTRY_CACHE_SHIFT 51
#define STOOK_ENTRY_SPAN_MASK UINT64_C(0x0000ffffffffff80)
#define STOOK_ENTRY_PAGE_MASK UINT64_C(0x7f)

struct stook_span;

/*
 * The first range: the huge one, with the ranges of all nodes, or the first piece. `bytes` is how
 * far it has been used: the map behind it is readable up to there, and grows only (on several nodes
 * all of it is readable from the start). A thread that takes address space writes it (M1: release),
 * any thread reads it.
 */
struct stook_range {
        uintptr_t  base;                        /* const after start */
        uintptr_t  bytes;                       /* atomic, grows */
        /* Const: entries[(addr - base) >> STOOK_MAP_SHIFT]. */
        uint64_t  *entries;
};
extern struct stook_range stook_range;

uint64_t stook_pagemap_lookup_piece(uintptr_t addr);

/* The nodes' ranges, into which the huge range is cut. Const after start. */
extern struct stook_node_ranges {
        uint32_t shift;                         /* each is 1 << shift bytes; or _UNCUT */
        uint8_t  node[STOOK_NODES_MAX];         /* of each in turn, by address */
} stook_node_ranges;
#define STOOK_NODES_UNCUT 63                    /* there are no such parts */

unsigned stook_address_node_of_piece(uintptr_t addr);

/*
 * How far the map of the one huge range reaches, for the hot paths. It is a plain read of one word
 * that only grows: an atomic read would be an instruction of its own there. TSan gets the atomic.
 */
#if STOOK_TSAN
#define STOOK_RANGE_BYTES __atomic_load_n(&stook_range.bytes, __ATOMIC_RELAXED)
#else
#define STOOK_RANGE_BYTES stook_range.bytes
#endif

/* The node whose memory an address of ours is. Not ours: any. */
STOOK_INLINE unsigned stook_address_node(uintptr_t addr)
{
        uintptr_t off = addr - stook_range.base;

        if (STOOK_LIKELY(off < __atomic_load_n(&stook_range.bytes, __ATOMIC_RELAXED)))
                return stook_node_ranges.node[off >> stook_node_ranges.shift];
        return stook_address_node_of_piece(addr);
}

/* The entry of an address; 0: not ours, or nothing there. */
STOOK_INLINE uint64_t stook_pagemap_get(uintptr_t addr)
{
        uintptr_t off = addr - stook_range.base;

        if (STOOK_LIKELY(off < __atomic_load_n(&stook_range.bytes, __ATOMIC_RELAXED)))
                return __atomic_load_n(&stook_range.entries[off >> STOOK_MAP_SHIFT],
                                       __ATOMIC_RELAXED);
        return stook_pagemap_lookup_piece(addr);
}

/*
 * For a loop of lookups: the first range as it is now, in variables of the caller. The range grows
 * only, so an old copy just has more addresses looked up in the table of ranges.
 */
STOOK_INLINE struct stook_range stook_pagemap_range(void)
{
        return (struct stook_range){ stook_range.base,
                                     __atomic_load_n(&stook_range.bytes, __ATOMIC_RELAXED),
                                     stook_range.entries };
}

/* As stook_pagemap_get. */
STOOK_INLINE uint64_t stook_pagemap_get_in(const struct stook_range *range, uintptr_t addr)
{
        uintptr_t off = addr - range->base;

        if (STOOK_LIKELY(off < range->bytes))
                return __atomic_load_n(&range->entries[off >> STOOK_MAP_SHIFT], __ATOMIC_RELAXED);
        return stook_pagemap_lookup_piece(addr);
}

/* Of each page of the slab of @span, which begins at @start. */
STOOK_INLINE uint64_t stook_entry_of_slab(unsigned cache_index, const struct stook_span *span,
                                          uintptr_t start)
{
        return (uint64_t)cache_index << STOOK_ENTRY_CACHE_SHIFT | (uintptr_t)span |
               (-(start >> STOOK_MAP_SHIFT) & STOOK_ENTRY_PAGE_MASK);
}

STOOK_INLINE unsigned stook_entry_cache(uint64_t entry)
{
        return (unsigned)(entry >> STOOK_ENTRY_CACHE_SHIFT);
}

STOOK_INLINE struct stook_span *stook_entry_span(uint64_t entry)
{
        return (struct stook_span *)(uintptr_t)(entry & STOOK_ENTRY_SPAN_MASK);
}

/* What lies at @addr is soon looked at: its descriptor's first line comes meanwhile. */
STOOK_INLINE void stook_pagemap_fetch(uintptr_t addr)
{
        __builtin_prefetch(stook_entry_span(stook_pagemap_get(addr)), 1);
}

/* Offset of an address in its slab, given the entry of the address. */
STOOK_INLINE uint32_t stook_entry_offset(uint64_t entry, uintptr_t addr)
{
        return (uint32_t)(addr + (entry << STOOK_MAP_SHIFT)) & (STOOK_SLAB_BYTES_MAX - 1);
}

/* True for every address inside a range of ours, live or not. */
bool stook_pagemap_ours(uintptr_t addr);

/*
 * The map of these addresses, which were handed out, becomes resident. A hint: else each page of it
 * is a fault.
 */
void stook_pagemap_prepare(uintptr_t start, size_t bytes);

/* Owner of the address only. */
void stook_pagemap_set(uintptr_t addr, uint64_t entry);

/* Owner of a span: every page of it says "slab of cache @index", or nothing again. */
void stook_pagemap_set_slab(struct stook_span *span, unsigned cache_index);
void stook_pagemap_clear_slab(struct stook_span *span);

#endif
