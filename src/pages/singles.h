/*
 * Purpose: free spans of one page that wait beside the bins. Slabs of a page that become empty in
 * random order lie beside free pages sooner or later. To join each with its neighbours at once
 * takes spans out of the middle of bins, and waits for memory at every step. A page that waits is
 * a bit. Those that lie beside each other are joined in one go, lowest first.
 * Place: span.c puts chains of slabs here, and takes single pages from here, lowest first. A thread
 * that looks into the bins has all of them joined first: stook_pages_lock does it. So larger spans
 * are found as if no page ever waited.
 * How: a tree of words, three levels of 64 ways, over a window of 64 GiB of addresses. A span
 * outside of it goes to the bins at once. So does one for whose bit there is no room yet; the next
 * span that is taken makes it.
 * Invariants:
 *  I1 a span that waits is MOVING, dirty and one page long, and is in no other place. The pagemap
 *     leads to it. A child of fork finds it among the descriptors, if it has to make the bins anew
 *     (pages_fork.c).
 *  I2 the words of pages are what counts. `some` of each level and `bytes` follow from them, and
 *     are made anew after a jump out of a call (stook_singles_mend).
 * Concurrency: the lock of the node, but for the window and the levels, which are made without it.
 *  M1: the release of a level's address pairs with each acquiring load of it: a level of zeros.
 * Failure: no memory for a level: the span is not put.
 */
#ifndef STOOK_SINGLES_H
#define STOOK_SINGLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stook_pages_node;
struct stook_span;

#define STOOK_SINGLES_WAYS 64           /* as many as a word has bits */

struct stook_singles_level {
        uint64_t some;                  /* bit i: some page waits below way i */
        union {
                uint64_t pages[STOOK_SINGLES_WAYS];                     /* of the lowest level */
                struct stook_singles_level *below[STOOK_SINGLES_WAYS];  /* atomic; NULL: none yet */
        };
};

struct stook_singles {
        uintptr_t base;                 /* atomic: where the window begins; 0: there is none yet */
        size_t    bytes;                /* lock; stored atomically, read racily without it */
        /* Atomic: first and last address without room since room was made last; 0: none. */
        uintptr_t wanted, wanted_last;
        struct stook_singles_level root;
};

/*
 * Under the lock. True: @span, in hands, dirty and one page long, waits. False: there is no room
 * for its bit. It is wanted, and nothing else changed.
 */
bool stook_singles_put(struct stook_singles *singles, struct stook_span *span);
/* Without the lock: makes room for a bit if it is wanted and can be had. */
void stook_singles_make_room_wanted(struct stook_singles *singles);
static inline void stook_singles_make_room(struct stook_singles *singles)
{
        if (__atomic_load_n(&singles->wanted, __ATOMIC_RELAXED))
                stook_singles_make_room_wanted(singles);
}
/* Under the lock: up to @n of them, lowest first, in hands. Return: how many. */
unsigned stook_singles_take(struct stook_singles *singles, unsigned n, struct stook_span **spans);
/* Under the lock: all of them to the bins. */
void stook_singles_join(struct stook_pages_node *node);
/* How many bytes wait. Racy. */
size_t stook_singles_bytes(const struct stook_singles *singles);

/*
 * Under the lock, after a call was jumped out of: what follows from the words is made anew.
 * @forget: the words are cleared first.
 */
void stook_singles_mend(struct stook_singles *singles, bool forget);
/* Quiescent: I1 and I2 hold. */
bool stook_singles_are_sound(const struct stook_singles *singles);

#endif
