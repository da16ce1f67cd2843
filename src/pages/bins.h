/*
 * Purpose: free spans by size: for each bin (a class of sizes) a heap ordered by address, and a
 * bitmap of the bins that hold any. The best bin that fits gives its lowest span, so that memory in
 * use stays low and together. Bins: exact up to 64 map pages (256 KiB), then eight to a doubling.
 * Invariants:
 *  I1 bit i of the bitmap is set exactly if root[i] is not NULL.
 *  I2 a span in the bins has kind FREE; the heap's links are what it is used for then (`use`,
 *     span.h).
 * Concurrency: the lock of the node.
 * Source of the heap: M. L. Fredman, R. Sedgewick, D. D. Sleator, R. E. Tarjan, "The pairing heap",
 * 1986.
 */
#ifndef STOOK_BINS_H
#define STOOK_BINS_H

#include "pages/span.h"

#define STOOK_BINS_EXACT 64
#define STOOK_BINS (STOOK_BINS_EXACT + 8 * 24)

struct stook_bins {
        uint64_t bitmap[STOOK_BINS / 64];
        struct stook_span *root[STOOK_BINS];
        /* Stored atomically under the lock; read racily without it. */
        size_t bytes, spans;
};

void stook_bins_init(struct stook_bins *bins);
void stook_bins_insert(struct stook_bins *bins, struct stook_span *span);
void stook_bins_remove(struct stook_bins *bins, struct stook_span *span);
/*
 * A span of @bytes or more; NULL: none. If the lowest span of the bin of @bytes fits, it is that
 * one. Else it is the lowest span of the next bin that has any: there, each span fits.
 */
struct stook_span *stook_bins_find(const struct stook_bins *bins, size_t bytes);
/* @bytes: at most STOOK_BINS_EXACT map pages. There is a span of this very size. */
bool stook_bins_has_size(const struct stook_bins *bins, size_t bytes);
/* The lowest span of the bin of the largest sizes; NULL: empty. */
struct stook_span *stook_bins_largest(const struct stook_bins *bins);

#endif
