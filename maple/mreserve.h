/*
 * Purpose: nodes taken before a write begins, so that the write itself cannot fail.
 *
 * Place: used by writes, cursors and dup; below it is libstook's public interface alone.
 * One node is an allocation, more are a prefilled sheaf. Taking nodes out takes no lock and no system call.
 * Failure: stook_mreserve_fill() leaves the reserve with what it held, or more.
 */
#ifndef STOOK_MRESERVE_H
#define STOOK_MRESERVE_H

#include "mtree.h"

struct mreserve {
        struct stook_sheaf *sheaf;      /* or NULL */
        void *one;                      /* or NULL */
};

/* At least @n nodes. 0, -ENOMEM. */
int stook_mreserve_fill(struct mreserve *reserve, unsigned n);

/* A node of undefined content. The caller knows that there is one. */
struct mnode *stook_mreserve_take(struct mreserve *reserve);

unsigned stook_mreserve_left(const struct mreserve *reserve);

/* Gives back what is left. */
void stook_mreserve_return(struct mreserve *reserve);

/* @n nodes or none, into an array: for dup. 0, -ENOMEM. */
int stook_mnode_alloc_bulk(unsigned n, void **nodes);

/* 0, or -ENOTSUP: nodes could not be freed after their readers, for no RCU was chosen; or -ENOMEM. */
int stook_mnode_can_retire(void);

#endif
