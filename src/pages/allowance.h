/*
 * Purpose: how much free memory a node may keep, and what is purged at once.
 * Place: the policy of purge.c, which does what is said here; recent.c asks, too.
 *
 * Words, in bytes of a node:
 *   retaken    purged, and taken again lately: it was missed, so its purge was in vain
 *   swing      by how much the bytes in use went up and down lately (swing.h)
 *   recurring  what is expected to be taken again: the whole swing once half of it was retaken,
 *              else what was retaken. It is kept for up to three times the decay time, because to
 *              purge it and fault it in again costs more than all else that an allocation does
 *   shrinking  less than two thirds of what was in use at most lately (swing.h) are in use: the
 *              process may be done, and make no more calls
 *   replacing  large objects are freed, and others are allocated, one in turn (replace.h). Such a
 *              process does not shrink, though little may be in use between the two
 *   allowance  dirty bytes that may stay until they are old: an eighth of what is in use, or
 *              1 MiB, and the larger of retaken and recurring. In a process that does not
 *              shrink, and writes large objects (density.h), it is as much as is in use; while
 *              it replaces them, as much as was in use at most lately, but no more than twice
 *              what was in use with the last one
 *   aged       a thread ages this heap whether or not the process makes calls. Then nothing is
 *              purged at once while no more lies free than was in use at most lately
 * Concurrency: any thread. What is read is atomic, relaxed: an answer may be old when it comes.
 */
#ifndef STOOK_PAGES_ALLOWANCE_H
#define STOOK_PAGES_ALLOWANCE_H

#include <stdbool.h>
#include <stddef.h>
#include "pages/pages_node.h"

/* A free span from here on is purged at once, above the allowance. */
#define STOOK_PURGE_BIG   ((size_t)1 << 20)
/* The same above twice the allowance: spans between slabs that live on. */
#define STOOK_PURGE_SMALL ((size_t)64 << 10)

/*
 * Half of the swing is enough to count all of it. The other half escaped the purge; without it,
 * each phase purges a rest.
 */
size_t stook_pages_recurring(const struct stook_pages_node *node);

/* The larger of retaken and recurring: what was missed may swing more slowly than swing.h sees. */
size_t stook_pages_missed(const struct stook_pages_node *node);

bool stook_pages_is_shrinking(const struct stook_pages_node *node);

/*
 * A program that frees and allocates the same megabytes in turn keeps them while it does so. One
 * that is idle after a spike does not.
 */
size_t stook_pages_allowance(const struct stook_pages_node *node);

/*
 * What a purge leaves: all that may stay, because objects that are replaced are taken again, though
 * in other sizes. In a process that is shrinking it leaves only what was missed, because there may
 * be no further call.
 */
size_t stook_pages_left_by_purge(const struct stook_pages_node *node);

/* @bytes more may be dirty until they are old. */
bool stook_pages_may_keep(const struct stook_pages_node *node, size_t bytes);

/* Dirty bytes above which some are purged at once. */
size_t stook_pages_kept_at_once(const struct stook_pages_node *node);

/*
 * With so many bytes @dirty, a free span of how many bytes or more is purged at once? The more lies
 * free, the smaller the bound. Spans of any size are purged only if more than two thirds of what is
 * in use lies free, or little of a spike is left. Each purge costs a system call, and spans still
 * grow while objects are freed in random order; at the end of a spike few are left, and no further
 * call may come.
 */
size_t stook_pages_worth(const struct stook_pages_node *node, size_t dirty);

#endif
