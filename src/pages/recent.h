/*
 * Purpose: the large object that was freed last, beside the bins. A program that allocates and
 * frees a buffer of one size again and again gets it back without the lock, and without a search.
 * Place: span.c puts and takes. purge.c flushes it to the bins at each step that is due, so it ages
 *  there. A take that finds nothing else has it flushed, too.
 * How: it is put there only if the last request for a large object was of its size, and goes to the
 *  bins with the next one of another size. Kept for longer it is in the way where sizes are mixed,
 *  because it is not joined with its neighbours: big_mixed took 21.0 MiB instead of 17.3.
 * Invariant: I1 the span is MOVING and dirty, and in no other place; a child of fork finds it among
 *  the descriptors, if it has to make the bins anew (pages_fork.c).
 *  I2 it is one that may stay (policy/limit.h) when it is put: below 1 MiB, and nothing
 *  that a give would have purged.
 * Concurrency: one word for each node. To change it is to own what was in it. M1: its release
 *  in put pairs with the acquire in take, flush and the next put.
 */
#ifndef STOOK_RECENT_H
#define STOOK_RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STOOK_RECENT_LEAST ((size_t)128 << 10)  /* about where malloc begins to take spans */

struct stook_pages_node;
struct stook_span;

/* True: @span, a dirty one in hands, was put. The one before it goes to the bins. */
bool stook_recent_put(struct stook_pages_node *node, struct stook_span *span);
/*
 * STOOK_RECENT_LEAST @bytes or more are asked for. Return: the span, in hands, if it has so many;
 * else NULL, and it goes to the bins.
 */
struct stook_span *stook_recent_take(struct stook_pages_node *node, size_t bytes);
/* To the bins. False: there was none. */
bool stook_recent_flush(struct stook_pages_node *node);
/* Its size; 0: there is none. Racy. */
size_t stook_recent_bytes(const struct stook_pages_node *node);

#endif
