/*
 * Purpose: stands in for libstook under the maple tree: counts nodes, refuses the n-th allocation,
 * poisons what is freed, and lets a test say when readers have left.
 */
#ifndef TESTS_MAPLE_FAKE_CACHE_H
#define TESTS_MAPLE_FAKE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

extern size_t fake_live; /* nodes that were allocated and not freed; those in sheaves, too */
extern size_t fake_waiting;             /* of them: given to free_rcu, their readers not gone yet */
/* nodes taken out, singly, in bulk or from sheaves, since the test set it to 0 */
extern size_t fake_taken;
extern long fake_fail_in; /* the n-th request from now on fails, and all after it; 0: none */
extern long   fake_requests;            /* requests since the test set it to 0 */
extern bool   fake_no_rcu;              /* no RCU was chosen */
extern bool   fake_rcu_full;            /* free_rcu has no place for nodes */

/* All readers leave: what waits is freed. */
void fake_grace(void);

#endif
