/*
 * Purpose: a slab's descriptor and the state of its parts. All transitions of a part that other
 * threads can see are here. Plain changes are elsewhere: slab_birth.c and slab_fill.c write parts
 * of a slab that is not published yet; slab_fork.c mends parts while no other thread runs.
 *
 * A slab is cut into parts of 64 objects; the last part may have fewer. A part's state is a pair of
 * words, changed by one double-word compare-and-swap, or by one of the second word alone (S9):
 *
 *      lo:  generation (56 bits) | flags (8 bits)
 *      hi:  bits; bit i is set while object i of the part is free in the slab: neither in a sheaf
 *           nor with a user (bits without an object are always set)
 *
 * There is no count, no list and no link: the number of free objects is the number of set bits, and
 * nothing is written into a free object.
 *
 * States of a part, by flags:
 *   full       none      no free object; on no list
 *   listed     LISTED    its slab is on a list of its node; the holder of that list's lock may take
 *   claimed    CLAIM     the owner of the claim must list the part or release the slab
 *   listed and claimed   the owner of the claim must see whether the whole slab is empty
 *   released   RELEASED  the slab is empty and is being given back, or was given back
 *
 * Transitions. "Lock" is the lock of the list of the slab's node.
 *              free k objects (any thread)  take k objects         settle (lock and claim)
 *  full        -> claimed                   -                      -
 *  listed      stays listed; if now all     lock; nothing left:    -
 *              free and surplus: + CLAIM    -> full
 *  claimed     stays claimed                owner of the claim;    -> listed; none free: -> full;
 *                                           nothing left: -> full  slab empty, surplus: -> released
 *  listed and  stays so                     lock; nothing left:    claim dropped;
 *  claimed                                  -> claimed             slab empty, surplus: -> released
 *  released    refused, reported            -                      -
 *
 * Surplus: the slab's list is so long that an empty slab is not kept (stook_slabs_surplus).
 * All free: every bit of the part is set.
 *
 * The holder of the lock also releases a slab whose parts are all listed, unclaimed and all free
 * (stook_slab_retire).
 *
 * Invariants (modelled in tests/proof/models/slab.pml):
 *  S1 Bits are set by any thread, but only from 0 to 1. Bits are cleared by one thread at a time:
 *     the holder of the lock if the part is listed, the owner of the claim if it is not. So a
 *     taker's bits cannot vanish before its compare-and-swap.
 *  S2 The claim is set in the compare-and-swap that makes it necessary. A thread that freed objects
 *     and did not get the claim must not touch the descriptor afterwards: the slab may have been
 *     released.
 *  S3 A part whose claim is set is released by the owner of the claim only.
 *  S4 A part with free objects is listed or claimed.
 *  S5 LISTED changes under the lock only, and together with `listed` and the list.
 *  S6 A free of an object whose bit is set already changes nothing and is reported. So each object
 *     is in at most one of these places: its slab, a sheaf, a user's hands.
 *  S7 The generation grows with each life of a part, also when its memory serves another slab. A
 *     thread that frees goes by these steps (modelled in tests/proof/models/slab_lives.pml):
 *       1. it reads where the parts are (`parts`), and how many. It goes by no part for which
 *          there is no room at that place;
 *       2. it looks at the pagemap: does the object lie in this slab? Else it follows nothing, for
 *          the descriptor may serve another span;
 *       3. it reads the part;
 *       4. it looks at the pagemap and at `parts` again. If both are unchanged, it has read the
 *          part of the slab that the object lies in;
 *       5. it changes that same part by compare-and-swap. This fails if the slab was released
 *          meanwhile, because the generation or the flags have changed.
 *  S8 A part whose objects are all free is all ones, at any size: bits without an object are never
 *     cleared. So a free of such an address is refused like a second free.
 *  S9 A part is full (no object is free), mixed, or all free. A free that finds a part mixed and
 *     leaves it mixed may compare and change the bits alone. At that instant the part is listed or
 *     claimed (S4), and so it stays. All other steps compare the bits, too, and fail. Nothing else
 *     is needed: the objects that are being freed keep the slab alive, and with it the generation.
 *     In place of the second look at the pagemap (S7, step 4) it compares the descriptor's key,
 *     which is written before the bits of a life. In a released slab all bits are set, also while
 *     its parts are a free block (slab_birth.c), so the free is refused, whatever the key's place
 *     serves by then.
 *     S7 then says less of a double free or a late free. Such a free may have read the place, the
 *     bits and the key in different lives of the descriptor. It may find the same bits in a later
 *     life of the parts, perhaps of another cache. There it frees an object that is out, as a
 *     double free does whose object was handed out again. Or it sets the bit of an object in a full
 *     part, which is found again when the part's other objects are freed. It never changes anything
 *     else than the bits of a part: the word `parts` says where the parts are and how many fit
 *     there, so that both are read at once.
 * Concurrency: M1: every change of a part is acquire-release, except while the process has one
 *  thread (base/alone.h). So what the last user did to an object comes before its free, and all use
 *  of a slab's objects comes before the release of the slab.
 *  There is no state between two steps. A thread that vanishes in between (a fork's child, a jump
 *  out of a handler) leaves a claim, the lock, or objects that it had taken. The state itself needs
 *  no repair.
 */
#ifndef STOOK_SLAB_STATE_H
#define STOOK_SLAB_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/alone.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/pair.h"
#include "pages/pagemap.h"
#include "pages/span.h"
#include "slab/slab.h"

#define STOOK_PART_OBJECTS 64           /* as many as a word has bits */
#define STOOK_SLAB_PARTS   64           /* as many as `listed` and `pending` have bits */

_Static_assert(STOOK_SLAB_OBJECTS_MAX == STOOK_PART_OBJECTS * STOOK_SLAB_PARTS,
               "a slab is at most 64 parts");

#define STOOK_PART_LISTED     UINT64_C(1)
#define STOOK_PART_CLAIM      UINT64_C(2)
#define STOOK_PART_RELEASED   UINT64_C(4)
#define STOOK_PART_FLAGS      UINT64_C(0xff)
#define STOOK_PART_GENERATION UINT64_C(0x100)           /* one life */

/* In struct stook_span. Const while the slab lives, except for the parts and what is marked. */
struct stook_slab {
        uint64_t listed;                /* lock: bit p: part p is LISTED. 0: on no list */
        struct stook_slabs *slabs;
        /*
         * Where the parts are, the span's own two or a block of slab_birth.c, and how many fit
         * there: stook_parts_at.
         */
        uintptr_t parts;
        uint64_t pending;               /* atomic: bit p: the claim of part p is on pending */
        /*
         * Atomic: slab_birth.c writes it, before the bits (release). What frees by the bits alone
         * reads it, after the bits (acquire): stook_slab_key.
         */
        uint64_t key;
        uint16_t objects;
        uint8_t  part_count;
        uint8_t  node;
        uint8_t  kept_first;            /* 1: the first object is kept back, as if it were none */
        uint8_t  made_at;               /* pairs before the bits of constructed objects; 0: none */
};
_Static_assert(sizeof(struct stook_slab) <= STOOK_SPAN_SLAB_BYTES,
               "a slab's descriptor lies in its span's");

STOOK_INLINE struct stook_slab *stook_slab_of(struct stook_span *span)
{
        return (struct stook_slab *)(void *)span->slab;
}

STOOK_INLINE struct stook_span *stook_slab_span(const struct stook_slab *slab)
{
        return stook_container_of((char (*)[STOOK_SPAN_SLAB_BYTES])(uintptr_t)slab,
                                  struct stook_span, slab);
}

/*
 * The word `parts`: an address | the logarithm of the room. It is one word, because a late free
 * reads it beside changes of it (S9). While the descriptor serves no slab, the place has 0: a room
 * of 1, in which there is no part. A slab has room for two at least.
 */
#define STOOK_PARTS_ROOM ((uintptr_t)7)
_Static_assert(STOOK_SLAB_PARTS == 1 << 6 && _Alignof(struct stook_pair) > STOOK_PARTS_ROOM,
               "the logarithm fits below a pair's address");
_Static_assert(STOOK_SPAN_PAIRS >= 2, "0 has a room of 1, a slab's parts have more");

STOOK_INLINE struct stook_pair *stook_parts_at(uintptr_t parts)
{
        return (struct stook_pair *)(parts & ~STOOK_PARTS_ROOM);
}

STOOK_INLINE bool stook_parts_have_room(uintptr_t parts, unsigned p)
{
        return !((p | 1) >> (parts & STOOK_PARTS_ROOM));
}

STOOK_INLINE struct stook_pair *stook_slab_parts(const struct stook_slab *slab)
{
        return stook_parts_at(slab->parts);
}

STOOK_INLINE struct stook_pair *stook_slab_part(const struct stook_slab *slab, unsigned p)
{
        return stook_slab_parts(slab) + p;
}

/*
 * The bits of constructed objects, a word for each part. They lie behind the parts. NULL: the cache
 * has no constructor.
 */
STOOK_INLINE uint64_t *stook_slab_made(const struct stook_slab *slab)
{
        return slab->made_at ? (uint64_t *)(stook_slab_parts(slab) + slab->made_at) : NULL;
}

/*
 * Tells in one comparison whether an address lies in this slab, and the slab is of full size and of
 * that cache:
 *      address + (index of the cache << STOOK_ENTRY_CACHE_SHIFT) - key < bytes of a slab
 * An address has no bit from 48 on, so a difference in the upper bits is never below a slab's size.
 */
#define STOOK_SLAB_KEY_SMALLER (UINT64_C(1) << (STOOK_ENTRY_CACHE_SHIFT - 1))

STOOK_INLINE uint64_t stook_slab_key(unsigned cache_index, uintptr_t start, bool smaller)
{
        return ((uint64_t)cache_index << STOOK_ENTRY_CACHE_SHIFT) + start +
               (smaller ? STOOK_SLAB_KEY_SMALLER : 0);
}

/* The slab at @e, which is an element of a node's list. */
STOOK_INLINE struct stook_slab *stook_slab_listed_at(struct stook_list *e)
{
        return stook_slab_of(stook_container_of(e, struct stook_span, list));
}

/* The slab at @link, which is an element of a pending stack. */
STOOK_INLINE struct stook_slab *stook_slab_pending_at(struct stook_link *link)
{
        return stook_slab_of(stook_container_of(link, struct stook_span, link));
}

STOOK_INLINE char *stook_slab_base(const struct stook_slab *slab)
{
        return (char *)stook_slab_span(slab)->start;
}

/* Where object @bit of part @p is, of a cache with objects at @stride. */
STOOK_INLINE char *stook_slab_object(const struct stook_slab *slab, uint32_t stride, unsigned p,
                                     unsigned bit)
{
        return stook_slab_base(slab) + (size_t)(p * STOOK_PART_OBJECTS + bit) * stride;
}

/* Bits of part @p, which the slab has, in a slab of @objects of which @kept_first are kept back. */
STOOK_INLINE uint64_t stook_objects_of_part(uint32_t objects, uint32_t kept_first, unsigned p)
{
        uint32_t n = objects - p * STOOK_PART_OBJECTS;
        uint64_t kept = kept_first & (uint64_t)!p;

        return (n >= STOOK_PART_OBJECTS ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1) & ~kept;
}

/*
 * The bits of part @p that stand for objects. The others are always set (S8), as is that of an
 * object that is kept back.
 */
STOOK_INLINE uint64_t stook_part_objects(const struct stook_slab *slab, unsigned p)
{
        return stook_objects_of_part(slab->objects, slab->kept_first, p);
}

STOOK_INLINE uint64_t stook_part_flags(struct stook_pair part)
{
        return part.lo & STOOK_PART_FLAGS;
}

/* The parts with one of @flags. Quiescent, or the slab is the caller's. */
STOOK_INLINE uint64_t stook_slab_parts_with(const struct stook_slab *slab, uint64_t flags)
{
        uint64_t parts = 0;

        for (unsigned p = 0; p < slab->part_count; p++)
                if (stook_slab_part(slab, p)->lo & flags)
                        parts |= UINT64_C(1) << p;
        return parts;
}

/* The free objects of part @p. */
STOOK_INLINE uint64_t stook_part_bits(const struct stook_slab *slab, unsigned p)
{
        return __atomic_load_n(&stook_slab_part(slab, p)->hi, __ATOMIC_ACQUIRE) &
               stook_part_objects(slab, p);
}

STOOK_INLINE bool stook_part_cas(const struct stook_slabs *slabs, struct stook_pair *part,
                                 struct stook_pair *old, struct stook_pair new)
{
        if (STOOK_LIKELY(stook_two_words_cas(part, old, new)))
                return true;
        stook_count(slabs->counters, STOOK_STAT_cmpxchg_double_fail, 1);
        return false;
}

/*
 * Free objects of the listed parts. With the lock it is a lower bound: bits of listed parts are
 * only set meanwhile. A fill asks it of some slabs while it holds the lock, so it is made fast: the
 * bits without an object are all set (S8), and are taken off at the end.
 */
STOOK_INLINE uint32_t stook_slab_free_listed(const struct stook_slab *slab)
{
        unsigned last = slab->part_count - 1u;
        uint64_t left = slab->listed;
        uint32_t n = 0, none;

        none = (left >> last & 1 ? (last + 1) * STOOK_PART_OBJECTS - slab->objects : 0) +
               (uint32_t)(left & slab->kept_first);
        while (left) {
                uint64_t counts = 0;

                for (unsigned i = 0; left && i < STOOK_COUNTS; i++, left &= left - 1) {
                        unsigned p = (unsigned)__builtin_ctzll(left);
                        const struct stook_pair *part = stook_slab_part(slab, p);

                        counts += stook_byte_counts(__atomic_load_n(&part->hi, __ATOMIC_ACQUIRE));
                }
                n += stook_sum_of_bytes(counts);
        }
        return n - none;
}

/* Free objects of all parts. */
STOOK_INLINE uint32_t stook_slab_free_objects(struct stook_slab *slab)
{
        uint32_t n = 0;

        for (unsigned p = 0; p < slab->part_count; p++)
                n += stook_popcount(stook_part_bits(slab, p));
        return n;
}

/* ---- free ---- */

enum stook_free_answer {
        STOOK_FREED,
        STOOK_FREED_CLAIMED,            /* the caller owns the claim of the part: slab_partial.c */
        /* Nothing changed: */
        STOOK_FREE_TWICE,               /* *@mask is now the bits that were set already */
        STOOK_FREE_BEHIND,              /* the slab is smaller than its kind: it has no such part */
        STOOK_FREE_NOT_LIVE,            /* the slab is gone */
};

/*
 * Does the pagemap lead from @object to the slab, and to the cache, of @entry (without the page
 * number)?
 */
STOOK_INLINE bool stook_slab_is_entry(const void *object, uint64_t entry)
{
        return (stook_pagemap_get((uintptr_t)object) & ~STOOK_ENTRY_PAGE_MASK) == entry;
}

/* Racily: the slab's list is longer than an empty slab is kept in. */
bool stook_slabs_surplus(const struct stook_slabs *slabs, const struct stook_slab *slab);

/*
 * Sets the bits *@mask of part @p of a slab of @slabs, to which the pagemap entry of @object, any
 * of those objects, led (S7). After FREED the slab is not to be touched (S2). Where the parts lie
 * in the descriptor, only its second cache line is touched. If the free is a wrong one, what names
 * the node there may be another user's. Then the compare-and-swap fails.
 */
STOOK_INLINE enum stook_free_answer stook_part_free(const struct stook_slabs *slabs,
                                                    struct stook_slab *slab, unsigned p,
                                                    uint64_t *mask, const void *object)
{
        uint64_t entry = (uint64_t)slabs->cache_index << STOOK_ENTRY_CACHE_SHIFT |
                         (uintptr_t)stook_slab_span(slab);
        uintptr_t parts = __atomic_load_n(&slab->parts, __ATOMIC_ACQUIRE);
        unsigned count = __atomic_load_n(&slab->part_count, __ATOMIC_ACQUIRE);
        struct stook_pair *part = stook_parts_at(parts) + p, old, new;

        /* Not live: then the words that were read may be another span's. */
        if (STOOK_UNLIKELY(!stook_slab_is_entry(object, entry)))
                return STOOK_FREE_NOT_LIVE;
        if (STOOK_UNLIKELY(p >= count))
                return STOOK_FREE_BEHIND;
        if (STOOK_UNLIKELY(!stook_parts_have_room(parts, p)))
                return STOOK_FREE_NOT_LIVE;
        old = stook_pair_read(part);
        do {
                if (STOOK_UNLIKELY(!stook_slab_is_entry(object, entry) ||
                                   (old.lo & STOOK_PART_RELEASED) ||
                                   __atomic_load_n(&slab->parts, __ATOMIC_RELAXED) != parts))
                        return STOOK_FREE_NOT_LIVE;
                if (STOOK_UNLIKELY(old.hi & *mask)) {
                        *mask &= old.hi;
                        return STOOK_FREE_TWICE;
                }
                new.hi = old.hi | *mask;
                new.lo = old.lo;
                if (!stook_part_flags(old))
                        new.lo |= STOOK_PART_CLAIM;
                else if (STOOK_UNLIKELY(!~new.hi) && stook_part_flags(old) == STOOK_PART_LISTED &&
                         stook_slabs_surplus(slabs, slab))
                        new.lo |= STOOK_PART_CLAIM;
        } while (!stook_part_cas(slabs, part, &old, new));
        return STOOK_LIKELY(new.lo == old.lo) ? STOOK_FREED : STOOK_FREED_CLAIMED;
}

/* What frees by the bits alone go by, many times in a row. */
struct stook_free_some {
        uint64_t entry;                 /* the cache's part of pagemap entries */
        uint32_t slab_bytes;            /* of a slab of full size */
        bool     alone;                 /* as for stook_word_cas */
};

/*
 * The same for the most frequent case (S9): some objects of the part are free, and @mask leaves
 * some out. The pagemap entry of @object led to @slab before, and @slab to @part. @slab is of full
 * size. @objects: the bits of the part that stand for objects then. False: nothing changed,
 * stook_part_free finds out why.
 */
STOOK_INLINE bool stook_part_free_some(const struct stook_free_some *by,
                                       const struct stook_slab *slab, struct stook_pair *part,
                                       uint64_t objects, uint64_t mask, const void *object)
{
        uint64_t *bits = &part->hi, old = __atomic_load_n(bits, __ATOMIC_ACQUIRE);

        if (STOOK_UNLIKELY(!(old & objects)) || STOOK_UNLIKELY(old & mask) ||
            STOOK_UNLIKELY(!~(old | mask)))
                return false;
        if (STOOK_UNLIKELY((uintptr_t)object + by->entry -
                                   __atomic_load_n(&slab->key, __ATOMIC_RELAXED) >=
                           by->slab_bytes))
                return false;
        return stook_word_cas(bits, old, old | mask, by->alone);
}

/* ---- take ---- */

/*
 * Takes up to @want objects of part @p, which is listed and the lock held (@held: LISTED), or is
 * not listed and its claim the caller's (@held: CLAIM). If no object is left, the flag @held is
 * cleared in the same step. @order: which objects; NULL: the lowest addresses.
 * Return: their bits; *@taken: how many they are; *@left: objects are left, so the flag stands.
 */
STOOK_INLINE uint64_t stook_part_take(struct stook_slab *slab, unsigned p, uint32_t want,
                                      uint64_t held, const uint8_t *order, uint32_t *taken,
                                      bool *left)
{
        struct stook_pair old = stook_pair_read(stook_slab_part(slab, p)), new;
        uint64_t objects = stook_part_objects(slab, p), mask;

        do {
                mask = old.hi & objects;
                *taken = stook_popcount(mask);
                if (*taken > want) {
                        *taken = want;
                        mask = STOOK_UNLIKELY(order != NULL) ? stook_first_bits(order, mask, want) :
                                                               stook_lowest_bits(mask, want);
                }
                new.hi = old.hi & ~mask;
                new.lo = new.hi & objects ? old.lo : old.lo & ~held;
        } while (!stook_part_cas(slab->slabs, stook_slab_part(slab, p), &old, new));
        *left = (new.hi & objects) != 0;
        return mask;
}

/* Lock held: takes exactly @mask, all of them free, of part @p, which is listed. As above. */
STOOK_INLINE bool stook_part_take_exactly(struct stook_slab *slab, unsigned p, uint64_t mask)
{
        struct stook_pair old = stook_pair_read(stook_slab_part(slab, p)), new;
        uint64_t objects = stook_part_objects(slab, p);

        do {
                new.hi = old.hi & ~mask;
                new.lo = new.hi & objects ? old.lo : old.lo & ~STOOK_PART_LISTED;
        } while (!stook_part_cas(slab->slabs, stook_slab_part(slab, p), &old, new));
        return (new.hi & objects) != 0;
}

/* ---- settle, release ---- */

/*
 * Lock held. Is the slab empty: are all parts all free, listed and unclaimed, but for part @p,
 * whose claim is the caller's? @p: STOOK_SLAB_PARTS if the caller has no claim. The bits are read
 * first: the claim was set in the step that set the last bit, so all bits set and no claim is what
 * stays, for a take wants the lock.
 */
STOOK_INLINE bool stook_slab_empty_but_claim(struct stook_slab *slab, unsigned p)
{
        for (unsigned i = 0; i < slab->part_count; i++) {
                uint64_t bits = __atomic_load_n(&stook_slab_part(slab, i)->hi, __ATOMIC_ACQUIRE);
                uint64_t flags = __atomic_load_n(&stook_slab_part(slab, i)->lo, __ATOMIC_ACQUIRE);

                flags &= STOOK_PART_FLAGS;
                if (~bits || (i == p ? !(flags & STOOK_PART_CLAIM) : flags != STOOK_PART_LISTED))
                        return false;
        }
        return true;
}

/*
 * Lock held, the slab empty as above: nothing changes its parts any more. A take wants the lock, a
 * free finds its bit set, and a claim is set by a free only.
 */
STOOK_INLINE void stook_slab_mark_released(struct stook_slab *slab)
{
        for (unsigned i = 0; i < slab->part_count; i++) {
                uint64_t *lo = &stook_slab_part(slab, i)->lo;

                __atomic_store_n(lo, (*lo & ~STOOK_PART_FLAGS) | STOOK_PART_RELEASED,
                                 __ATOMIC_RELEASE);
        }
}

enum stook_settle {
        STOOK_SETTLED,                  /* not to be touched any more */
        STOOK_SETTLED_LIST,             /* LISTED now: enter it into `listed` and the list */
        STOOK_SETTLED_RELEASE,          /* released: take it off the list, give the pages back */
};

/* Lock held, the claim of part @p is the caller's. @surplus: an empty slab is not kept. */
STOOK_INLINE enum stook_settle stook_part_settle(struct stook_slab *slab, unsigned p, bool surplus)
{
        struct stook_pair old = stook_pair_read(stook_slab_part(slab, p)), new;
        uint64_t objects = stook_part_objects(slab, p);
        enum stook_settle answer;

        do {
                if (surplus && !~old.hi && stook_slab_empty_but_claim(slab, p)) {
                        stook_slab_mark_released(slab);
                        return STOOK_SETTLED_RELEASE;
                }
                answer = STOOK_SETTLED;
                new.hi = old.hi;
                new.lo = old.lo & ~STOOK_PART_CLAIM;
                if (!(old.lo & STOOK_PART_LISTED) && (old.hi & objects)) {
                        new.lo |= STOOK_PART_LISTED;
                        answer = STOOK_SETTLED_LIST;
                }
        } while (!stook_part_cas(slab->slabs, stook_slab_part(slab, p), &old, new));
        return answer;
}

/*
 * Lock held, slab on the list. True: it was empty, with no claim on any part; it is released now,
 * take it off the list.
 */
STOOK_INLINE bool stook_slab_retire(struct stook_slab *slab)
{
        if (!stook_slab_empty_but_claim(slab, STOOK_SLAB_PARTS))
                return false;
        stook_slab_mark_released(slab);
        return true;
}

#endif
