/*
 * Purpose: nodes taken before a write begins, so that the write itself cannot fail.
 *
 * Place: used by writes, cursors and dup; uses only libstook's public interface. One node
 * is an allocation, more are a prefilled sheaf. A bulk load needs more than a sheaf can hold; its
 * nodes are a list, by their heads. Taking nodes out takes no lock and no system call.
 * Failure: stook_mreserve_fill() leaves the reserve with what it held, or more.
 */
#ifndef STOOK_MRESERVE_H
#define STOOK_MRESERVE_H

#include "mtree.h"

struct mreserve {
        struct stook_sheaf *sheaf;      /* or NULL */
        void *one;                      /* or NULL */
        void *list;                     /* or NULL */
        uint64_t listed;                /* nodes in it */
};

/* Fills the reserve to at least @n nodes. Return: 0; -ENOMEM. */
int stook_mreserve_fill(struct mreserve *reserve, unsigned n);

/* A node of undefined content. The caller knows that the reserve has one. */
struct mnode *stook_mreserve_take(struct mreserve *reserve);

unsigned stook_mreserve_left(const struct mreserve *reserve);

/* Gives back what is left, except the list. */
void stook_mreserve_return(struct mreserve *reserve);

/* Fills the list to at least @n nodes. Return: 0; -ENOMEM, and it has what it had. */
int stook_mreserve_list(struct mreserve *reserve, uint64_t n);
/* Gives the list back, but for @keep nodes. */
void stook_mreserve_unlist(struct mreserve *reserve, uint64_t keep);

/* @n nodes or none, into an array: for dup. Return: 0; -ENOMEM. */
int stook_mnode_alloc_bulk(unsigned n, void **nodes);

/*
 * Nodes can be freed after their readers. Return: 0; -ENOTSUP: no RCU was chosen; -ENOMEM.
 */
int stook_mnode_can_retire(void);

#endif
