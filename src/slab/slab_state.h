/*
 * Purpose: a slab's descriptor and its state word: the only place where the word is changed.
 *
 * The word, one compare-and-swap: place of the first object of the free list (slab_link.h) | objects in use |
 * objects handed out so far at least once, "fresh" ones no longer | flags. So fresh - inuse objects are on the
 * list, and objects - fresh were never touched.
 *
 * States, by flags:
 *   full       none        no free object, on no list, in nobody's hands
 *   listed     LISTED      on its node's list
 *   detached   DETACHED    in the hands of a filler, which alone may take
 *   claimed    CLAIM       on no list; who set the flag, or got the slab from `pending`, must list or release it
 *   releasing  RELEASING   empty, nobody's any more but the releaser's
 * CLAIM may also be set besides LISTED (emptied there: to be released) and DETACHED (detached before its
 * claimer came: the filler has the slab, the claimer only takes its claim back). A sixth state is an end:
 *   corrupt    CORRUPT     its list was overwritten: nothing is taken from it, what is freed stays there
 *
 *              take              push a chain            list                    release
 *  full        -                 -> claimed              -                       -
 *  listed      detach, then take same; emptied and       -                       by shrink (lock), if
 *              (lock); or fresh  surplus: + CLAIM                                empty and no CLAIM
 *              ones where it
 *              stands (lock); nothing
 *              left: -> full
 *  detached    same; nothing     same                    -> listed (lock), or    if empty and no CLAIM:
 *              left: -> full                             -> claimed and pending  the filler (lock)
 *  claimed     adopt from        same                    -> listed (lock);       if empty and surplus
 *              pending: detached                         full again: -> full     (lock)
 *  releasing   -                 a fault, reported       -                       -
 *  listed and claimed            same                    claim taken back        if empty and surplus (lock)
 *  detached and claimed          same                    claim taken back by the claimer, list as detached
 *
 * Invariants (modelled: tests/models/slab.pml):
 *  S1 two shared transitions only: take, by the one who detached; push, by anybody. So the list never loses
 *     its first object under a taker's feet: no tag is needed. (The lock's holder may take from a listed slab what
 *     is on no list: objects that were never out.)
 *  S2 CLAIM is set in the compare-and-swap that makes it necessary. A pusher that did not set it never touches
 *     the descriptor after its push: by then it may be another slab's.
 *  S3 a slab whose CLAIM is set is released by nobody but the claimer.
 *  S4 a take that leaves nothing clears DETACHED in its own compare-and-swap; otherwise it is cleared in the
 *     one that sets LISTED or CLAIM. So a slab with free objects always is, or will be, on a list.
 *  S5 LISTED changes only under the node's lock, and with the list.
 * Concurrency: M1: every change of the word is acquire-release: a push publishes its links to the taker, and
 *  all uses of a slab's objects come before its release. `owner` and `list`: whoever detached, or the lock.
 */
#ifndef STOOK_SLAB_STATE_H
#define STOOK_SLAB_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"
#include "pages/span.h"
#include "slab/slab.h"
#include "slab/slab_link.h"

/* In struct stook_span's user area. Const while the slab lives, but for word and owner. */
struct stook_slab {
        uint64_t word;                  /* M1 */
        char    *base;                  /* first object: the span's start */
        uint64_t key;                   /* of links: slab_link.h L1 */
        uint32_t objects;
        uint32_t start;                 /* random order: where in the permutation the slab begins */
        struct stook_slabs *slabs;
        void    *owner;                 /* stook_self of who has it detached: for a child of fork */
};
_Static_assert(sizeof(struct stook_slab) <= STOOK_SPAN_USER_BYTES, "a descriptor lives in its span's");

STOOK_INLINE struct stook_slab *stook_slab_of(struct stook_span *span)
{
        return (struct stook_slab *)span->user;
}

STOOK_INLINE struct stook_span *stook_slab_span(struct stook_slab *slab)
{
        return stook_container_of((char (*)[STOOK_SPAN_USER_BYTES])slab, struct stook_span, user);
}

#define STOOK_SLAB_LISTED    (UINT64_C(1) << 48)
#define STOOK_SLAB_DETACHED  (UINT64_C(1) << 49)
#define STOOK_SLAB_CLAIM     (UINT64_C(1) << 50)
#define STOOK_SLAB_RELEASING (UINT64_C(1) << 51)
#define STOOK_SLAB_CORRUPT   (UINT64_C(1) << 52)
#define STOOK_SLAB_FLAGS     (~UINT64_C(0) << 48)

STOOK_INLINE uint32_t stook_word_head(uint64_t word)  { return word & 0xffff; }
STOOK_INLINE uint32_t stook_word_inuse(uint64_t word) { return word >> 16 & 0xffff; }
STOOK_INLINE uint32_t stook_word_fresh(uint64_t word) { return word >> 32 & 0xffff; }

STOOK_INLINE uint64_t stook_word(uint32_t head, uint32_t inuse, uint32_t fresh, uint64_t flags)
{
        return flags | (uint64_t)fresh << 32 | (uint64_t)inuse << 16 | head;
}

STOOK_INLINE uint64_t stook_slab_word(const struct stook_slab *slab)
{
        return __atomic_load_n(&slab->word, __ATOMIC_ACQUIRE);
}

STOOK_INLINE bool stook_slab_cas(struct stook_slab *slab, uint64_t *old, uint64_t new)
{
        if (STOOK_LIKELY(__atomic_compare_exchange_n(&slab->word, old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)))
                return true;
        stook_count(slab->slabs->counters, STOOK_STAT_cmpxchg_double_fail, 1);
        return false;
}

/* ---- take ---- */

/* Lock held, slab listed: now it is the caller's. */
STOOK_INLINE void stook_slab_detach(struct stook_slab *slab, void *owner)
{
        uint64_t w = stook_slab_word(slab);

        __atomic_store_n(&slab->owner, owner, __ATOMIC_RELAXED);
        while (!stook_slab_cas(slab, &w, w ^ (STOOK_SLAB_LISTED | STOOK_SLAB_DETACHED)))
                ;
}

/* Detached: @listed objects off the list, whose new first one is @head, and @fresh new ones. One try (S4). */
STOOK_INLINE bool stook_slab_take(struct stook_slab *slab, uint64_t *old, uint32_t head, uint32_t listed,
                                  uint32_t fresh, bool *left)
{
        uint32_t inuse = stook_word_inuse(*old) + listed + fresh;
        uint64_t flags = *old & STOOK_SLAB_FLAGS;

        *left = inuse < slab->objects;
        if (!*left)
                flags &= ~STOOK_SLAB_DETACHED;
        return stook_slab_cas(slab, old, stook_word(head, inuse, stook_word_fresh(*old) + fresh, flags));
}

/*
 * Lock held, slab listed: up to @want objects that were never out, where it stands; it is not detached for that. Only
 * while nothing has come back to it: the list is the detacher's to take from (S1). *@left: it is listed still; else
 * the caller takes it off the list. Return: how many, *@from the first one's place in the order; 0: none so.
 */
STOOK_INLINE uint32_t stook_slab_take_listed(struct stook_slab *slab, size_t want, uint32_t *from, bool *left)
{
        uint64_t w = stook_slab_word(slab), flags;
        uint32_t fresh, count;

        do {
                fresh = stook_word_fresh(w);
                if (fresh != stook_word_inuse(w))
                        return 0;
                count = slab->objects - fresh;
                *left = count > want;
                if (*left)
                        count = (uint32_t)want;
                flags = w & STOOK_SLAB_FLAGS;
                if (!*left)
                        flags &= ~STOOK_SLAB_LISTED;
        } while (!stook_slab_cas(slab, &w, stook_word(stook_word_head(w), fresh + count, fresh + count, flags)));
        *from = fresh;
        return count;
}

/* Detached, and its list is unusable: the end of it. */
STOOK_INLINE void stook_slab_condemn(struct stook_slab *slab)
{
        uint64_t w = stook_slab_word(slab);

        while (!stook_slab_cas(slab, &w, stook_word(STOOK_PLACE_NONE, slab->objects, stook_word_fresh(w),
                                                    (w & STOOK_SLAB_CLAIM) | STOOK_SLAB_CORRUPT)))
                ;
}

enum stook_adopt { STOOK_ADOPTED, STOOK_ADOPT_NOTHING, STOOK_ADOPT_LISTED };

/*
 * The claim is the caller's (from pending), the lock is not: to take from the slab without it.
 * NOTHING: there is nothing to take, the claim is taken back. LISTED: the claim stays, push it back.
 */
STOOK_INLINE enum stook_adopt stook_slab_adopt(struct stook_slab *slab, void *owner)
{
        uint64_t w = stook_slab_word(slab), new;
        bool mine;

        do {
                if (w & STOOK_SLAB_LISTED)
                        return STOOK_ADOPT_LISTED;
                mine = !(w & (STOOK_SLAB_DETACHED | STOOK_SLAB_CORRUPT)) && stook_word_inuse(w) < slab->objects;
                new = w & ~STOOK_SLAB_CLAIM;
                if (mine) {
                        __atomic_store_n(&slab->owner, owner, __ATOMIC_RELAXED);
                        new |= STOOK_SLAB_DETACHED;
                }
        } while (!stook_slab_cas(slab, &w, new));
        return mine ? STOOK_ADOPTED : STOOK_ADOPT_NOTHING;
}

/* ---- push ---- */

enum stook_push_answer {
        STOOK_PUSHED,
        STOOK_PUSHED_CLAIMED,           /* the caller must list or release the slab: slab_partial.c */
        STOOK_PUSHED_NOWHERE,           /* corrupt: the objects are left alone */
        STOOK_PUSH_NOT_LIVE,            /* no object of this slab can be out */
        STOOK_PUSH_TOO_MANY,            /* fewer objects are out */
};

/*
 * @count objects, linked from place @first to @last, whose link is written here. @surplus: the node has more
 * slabs on its list than it keeps empty. After the answer PUSHED the slab is not to be touched (S2).
 */
STOOK_INLINE enum stook_push_answer stook_slab_push(struct stook_slab *slab, uint32_t first, void *last,
                                                    uint32_t count, uint32_t link_offset, bool surplus)
{
        uint64_t w = stook_slab_word(slab), key = slab->key, flags;
        uint32_t inuse;

        do {
                inuse = stook_word_inuse(w);
                flags = w & STOOK_SLAB_FLAGS;
                if (STOOK_UNLIKELY(flags & (STOOK_SLAB_RELEASING | STOOK_SLAB_CORRUPT)))
                        return flags & STOOK_SLAB_CORRUPT ? STOOK_PUSHED_NOWHERE : STOOK_PUSH_NOT_LIVE;
                if (STOOK_UNLIKELY(inuse < count))
                        return STOOK_PUSH_TOO_MANY;
                if (!flags || (flags == STOOK_SLAB_LISTED && inuse == count && surplus))
                        flags |= STOOK_SLAB_CLAIM;
                stook_link_write(last, link_offset, key, stook_word_head(w));
        } while (!stook_slab_cas(slab, &w, stook_word(first, inuse - count, stook_word_fresh(w), flags)));
        return (flags & ~w & STOOK_SLAB_CLAIM) ? STOOK_PUSHED_CLAIMED : STOOK_PUSHED;
}

/* ---- list, release ---- */

/* Lock held, slab detached. True: it is listed now, put it on the list; false (@surplus and empty): releasing. */
STOOK_INLINE bool stook_slab_list(struct stook_slab *slab, bool surplus)
{
        uint64_t w = stook_slab_word(slab), new;

        do {
                if (surplus && !stook_word_inuse(w) && !(w & STOOK_SLAB_CLAIM))
                        new = (w & ~STOOK_SLAB_FLAGS) | STOOK_SLAB_RELEASING;
                else
                        new = w ^ (STOOK_SLAB_DETACHED | STOOK_SLAB_LISTED);
        } while (!stook_slab_cas(slab, &w, new));
        return new & STOOK_SLAB_LISTED;
}

/* Slab detached, the lock not to be had. True: push it on pending; false: somebody else's claim sees to it. */
STOOK_INLINE bool stook_slab_postpone(struct stook_slab *slab)
{
        uint64_t w = stook_slab_word(slab);

        while (!stook_slab_cas(slab, &w, (w & ~STOOK_SLAB_DETACHED) | STOOK_SLAB_CLAIM))
                ;
        return !(w & STOOK_SLAB_CLAIM);
}

enum stook_settle {
        STOOK_SETTLED,                  /* not to be touched any more */
        STOOK_SETTLED_LIST,             /* put it on the list */
        STOOK_SETTLED_RELEASE,          /* release it */
        STOOK_SETTLED_UNLIST,           /* take it off the list and release it */
};

/* Lock held, the claim is the caller's. @partial: slabs on the list, @keep: how many may be there with empty ones among them. */
STOOK_INLINE enum stook_settle stook_slab_settle(struct stook_slab *slab, uint32_t partial, uint32_t keep)
{
        uint64_t w = stook_slab_word(slab), new;
        enum stook_settle answer;

        do {
                new = w & ~STOOK_SLAB_CLAIM;
                answer = STOOK_SETTLED;
                if (w & STOOK_SLAB_LISTED) {
                        if (!stook_word_inuse(w) && partial > keep)
                                answer = STOOK_SETTLED_UNLIST;
                } else if (!(w & (STOOK_SLAB_DETACHED | STOOK_SLAB_CORRUPT)) && stook_word_inuse(w) < slab->objects) {
                        if (!stook_word_inuse(w) && partial >= keep)
                                answer = STOOK_SETTLED_RELEASE;
                        else
                                answer = STOOK_SETTLED_LIST;
                }
                if (answer == STOOK_SETTLED_LIST)
                        new |= STOOK_SLAB_LISTED;
                else if (answer != STOOK_SETTLED)
                        new = (w & ~STOOK_SLAB_FLAGS) | STOOK_SLAB_RELEASING;
        } while (!stook_slab_cas(slab, &w, new));
        return answer;
}

/* Lock held, slab listed. True: it was empty and nobody's claim; take it off the list and release it. */
STOOK_INLINE bool stook_slab_retire(struct stook_slab *slab)
{
        uint64_t w = stook_slab_word(slab);

        while ((w & STOOK_SLAB_FLAGS) == STOOK_SLAB_LISTED && !stook_word_inuse(w))
                if (stook_slab_cas(slab, &w, (w & ~STOOK_SLAB_FLAGS) | STOOK_SLAB_RELEASING))
                        return true;
        return false;
}

#endif
