/*
 * Purpose: how much free dirty memory a node may keep, and what is purged before it is old.
 * Place: pages/purge.c does what is said here; pages/span_recent.c asks, too. All is a function of
 *  the ledger, and of the bytes that are dirty.
 *
 * Words, in bytes of a node, beside those of ledger.h:
 *   recurring    what is expected to be taken again: the whole swing once half of it refaulted,
 *                else nothing. It is kept for up to three times the decay time, because to purge it
 *                and fault it in again costs more than all else that an allocation does
 *   shrinking    less than two thirds of what was in use at most lately (ledger.h) are in use: the
 *                process may be done, and make no more calls
 *   in turn      large objects are freed, and others are allocated, one in turn (ledger.h). Such a
 *                process does not shrink, though little may be in use between the two
 *   dirty limit  dirty bytes that may stay until they are old: a sixteenth of what is in use, or
 *                1 MiB, and what refaulted or recurs; of a process that shrinks what recurs alone,
 *                because there may be no further call. In a process that does not shrink, and
 *                writes large objects (huge.h), it is as much as is in use; while they come in
 *                turn, as much as was in use at most lately
 *   threaded     a thread ages this heap whether or not the process makes calls. Then nothing is
 *                purged at once while no more lies free than was in use at most lately
 * Concurrency: any thread, relaxed: an answer may be old when it comes.
 */
#ifndef STOOK_DIRTY_H
#define STOOK_DIRTY_H

#include "policy/ledger.h"

/*
 * Half of the swing is enough to count all of it. The other half escaped the purge; without it,
 * each phase purges a rest.
 */
size_t stook_dirty_recurring(const struct stook_ledger *ledger);
/* The larger of refaults and recurring: what refaults may swing more slowly. */
size_t stook_dirty_refaulted(const struct stook_ledger *ledger);
bool stook_dirty_is_shrinking(const struct stook_ledger *ledger);

/*
 * A program that frees and allocates the same megabytes in turn keeps them while it does so. One
 * that is idle after a spike does not.
 */
size_t stook_dirty_limit(const struct stook_ledger *ledger);
/*
 * What a purge leaves: all that may stay, because objects in turn are taken again, though in other
 * sizes. In a process that is shrinking it leaves only what recurs, because there may be no further
 * call.
 */
size_t stook_dirty_left(const struct stook_ledger *ledger);
/* Dirty bytes above which some are purged at once. */
size_t stook_dirty_at_once(const struct stook_ledger *ledger);
/*
 * With so many bytes @dirty, a free span of how many bytes or more is purged at once? The more lies
 * free, the smaller the bound. Spans of any size are purged only if more than two thirds of what is
 * in use lies free, or little of a spike is left. Each purge costs a system call, and spans still
 * grow while objects are freed in random order; at the end of a spike few are left, and no further
 * call may come.
 */
size_t stook_dirty_worth(const struct stook_ledger *ledger, size_t dirty);

/* A thread ages all heaps from here on, or no more. */
void stook_dirty_set_threaded(bool threaded);
bool stook_dirty_is_threaded(void);

/* ---- debt: what is purged whatever its age ---- */

/* @bytes more are with users, while so many are @dirty. @clean: they were without content. */
void stook_debt_take(struct stook_ledger *ledger, size_t dirty, size_t bytes, bool clean);
/* Bytes to purge: each byte pays for both kinds of debt. It is forgotten once little is dirty. */
size_t stook_debt(struct stook_ledger *ledger, size_t dirty);
/* So many bytes are about to be purged. */
void stook_debt_pay(struct stook_ledger *ledger, size_t bytes);

/* ---- the allocation clock ---- */

/* @bytes are handed out: without content, pages that the system has to find; or with. */
void stook_fresh_take(struct stook_ledger *ledger, size_t bytes, bool clean, uint32_t decay_ms);

#endif
