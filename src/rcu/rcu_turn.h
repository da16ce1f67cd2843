/*
 * Purpose: callbacks of which one at a time is on its way; see rcu_turn.c.
 * Place: rcu layer only.
 */
#ifndef STOOK_RCU_TURN_H
#define STOOK_RCU_TURN_H

#include <stdbool.h>
#include <stdint.h>
#include <stook/rcu.h>
#include "base/tagged_stack.h"

/* What the implementation is given. Its memory is never given back. */
struct stook_rcu_asked {
        struct stook_rcu_head head;
        struct stook_rcu_turn *turn;    /* const once asked for */
        struct stook_link *batch;       /* the turn's owner: objects that wait for the callback */
        uint32_t serial;                /* atomic; the turn's owner writes, late callbacks read */
};

/* All zero: free. */
struct stook_rcu_turn {
        uint64_t word;                  /* atomic: rcu_turn.c M1 */
        struct stook_rcu_asked *now;    /* atomic, likewise; NULL: first */
        struct stook_rcu_asked first;
};

/* The turn is free. Racy. */
bool stook_rcu_turn_is_free(const struct stook_rcu_turn *turn);
/* The turn is free, or belongs to a lost call. Racy. */
bool stook_rcu_turn_is_takeable(const struct stook_rcu_turn *turn);

/* ---- the caller is in transit by @ticket ---- */

/*
 * Takes the turn. NULL: it is not to be had. *@gone: what a thread had asked for that this child of
 * a fork does not have, and which has no owner now; NULL: there is none.
 */
struct stook_rcu_asked *stook_rcu_turn_take(struct stook_rcu_turn *turn, uint64_t ticket,
                                            struct stook_rcu_asked **gone);
/* Has @done called for the head. The turn is not the caller's any more. */
void stook_rcu_turn_ask(struct stook_rcu_asked *asked, uint64_t ticket, const struct stook_rcu *rcu,
                        void (*done)(struct stook_rcu_head *head));
/* In the callback: what was asked for with this head. */
struct stook_rcu_asked *stook_rcu_turn_asked(struct stook_rcu_head *head);
/* In the callback: takes the turn. False: the turn was lost. */
bool stook_rcu_turn_begin(struct stook_rcu_asked *asked, uint64_t ticket);
/* In the callback, as owner: takes the turn once more, to ask again. False: the turn was lost. */
bool stook_rcu_turn_again(struct stook_rcu_asked *asked, uint64_t ticket);
/* As owner: frees the turn. False: the turn was lost. */
bool stook_rcu_turn_end(struct stook_rcu_asked *asked, uint64_t ticket);

#endif
