/*
 * Purpose: the shape of a maple tree's node, 256 bytes aligned to 256, and looking for a key in
 * one.
 *
 * Place: the lowest file of the maple tree; includes nothing of it. There are three kinds of nodes.
 * Leaves are on level 0. Above them are inner nodes or, in trees that track gaps, inner nodes with
 * the largest gap below each child. The level comes from the height in the root word. So a walk
 * knows a node's kind before it touches the node.
 *
 * A node has entries (the kernel says slots). Those of a leaf are what is stored at its ranges, 16
 * at most. Those of an inner node are its children, 16 at most, or 10 with gaps.
 *
 * There are no parent pointers. A walk for writing keeps the path. So a node can be replaced
 * without a store to any of its children, and its content depends only on its range.
 *
 * Invariants:
 *  I1 entry i of n ends at pivot[i], for i < n - 1. The last entry ends where the node ends, which
 *     only the parent tells.
 *  I2 pivot[i] is UINT64_MAX for i >= n - 1. So the number of pivots below a key, over all of them,
 *     is the number of its entry, and min(pivot[i], end of the node) is the end of entry i for
 *     every i. Entries i >= n are NULL.
 *  I3 pivots ascend strictly. Two NULLs are never neighbours, even in two leaves.
 *  I4 a node that is not the root has at least `least` entries; a root above level 0 has at least
 *     2.
 * Concurrency: in RCU trees readers walk through nodes without locks. They may read pivots, also
 *  entries, M1, and the head, M2. Counts and gaps are protected by the tree's lock. A pivot in use
 *  never changes. An unused one, of a leaf, may come into use by an append, M5.
 *  M1: the release store of an entry (or of the root) pairs with the acquire load in a walk: the
 *      reader sees the content of the node that the entry points to.
 *  M2: the head becomes DEAD by a release store after the store that unlinked the node. It pairs
 *      with the acquire load in mnode_alive(): a reader that finds the node alive has read
 *      entries that were current when the call began.
 *  M5: an append (mwrite_leaf.c) puts a range into the gap at the end of a leaf, by stores to the
 *      pivot that ends the range, and then to its entry, M1. A reader that sees the entry sees that
 *      pivot. So it reads the pivot again after the entry, and searches again if its key is above.
 *      The gap may have had an entry a moment before, which ended where the leaf ends: an exact fit
 *      took it. So a reader that has read an entry, and then the pivot, reads the entry once more
 *      (mnode_still): where it has changed, the pivot may be another entry's.
 *      Between the two stores the gap has two entries. Calls that report gaps see to it that it
 *      is one: stook_mplace_whole_gap().
 *      A pivot is one word, and its values are UINT64_MAX and then the end of a range. A search
 *      that saw an old one finds an entry too low, never one too high.
 */
#ifndef STOOK_MNODE_H
#define STOOK_MNODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define MNODE_TSAN 1
#else
#define MNODE_TSAN 0
#endif

#define MNODE_BYTES      256
#define MNODE_ENTRIES     16            /* of leaves and plain inner nodes */
#define MNODE_GAP_ENTRIES 10            /* of inner nodes that track gaps */
/* In head: the node was replaced. The rest of head is then a link of the deferred list. */
#define MNODE_DEAD       UINT64_C(1)

/* 4 children at least, and addresses for no more than 2^49 nodes: no tree can become higher. */
#define MNODE_LEVELS     25

enum mnode_kind { MNODE_LEAF, MNODE_INNER, MNODE_INNER_GAPS };

struct mnode {
        uint64_t head;                  /* atomic M2: entries in use << 1, or DEAD */
        union {
                uint64_t pivot[MNODE_GAP_ENTRIES - 1];
                struct {
                        uint64_t pivot[MNODE_ENTRIES - 1];
                        void    *entry[MNODE_ENTRIES];          /* atomic M1 */
                } wide;
                struct {
                        uint64_t pivot[MNODE_GAP_ENTRIES - 1];
                        void    *entry[MNODE_GAP_ENTRIES];      /* atomic M1 */
                        uint64_t gap[MNODE_GAP_ENTRIES];        /* lock */
                } gaps;
                char bytes[MNODE_BYTES - 8];
        };
};
_Static_assert(sizeof(struct mnode) == MNODE_BYTES, "a node is four cache lines");

struct mnode_shape {
        unsigned char entries, least;
};

/* Least fill: entries / 2 - 2; with gaps entries / 2 - 1. */
static inline struct mnode_shape mnode_shape(enum mnode_kind kind)
{
        return kind == MNODE_INNER_GAPS ? (struct mnode_shape){ MNODE_GAP_ENTRIES, 4 }
                                        : (struct mnode_shape){ MNODE_ENTRIES, 6 };
}

static inline uint64_t *mnode_pivots(struct mnode *node)
{
        return node->wide.pivot;
}

/* M5. The same for all kinds. */
static inline uint64_t mnode_pivot(const struct mnode *node, size_t i)
{
        return __atomic_load_n(node->wide.pivot + i, __ATOMIC_RELAXED);
}

static inline void **mnode_entries(struct mnode *node, enum mnode_kind kind)
{
        return kind == MNODE_INNER_GAPS ? node->gaps.entry : node->wide.entry;
}

/*
 * Entries in use. The caller knows that the node is alive, or reads a garbled number and finds out
 * later.
 */
static inline unsigned mnode_count(const struct mnode *node)
{
        return (unsigned)(__atomic_load_n(&node->head, __ATOMIC_RELAXED) >> 1) & 31;
}

static inline void mnode_set_count(struct mnode *node, unsigned count)
{
        __atomic_store_n(&node->head, (uint64_t)count << 1, __ATOMIC_RELAXED);
}

/* M2. The load of an entry was an acquire, so this load comes after it. */
static inline bool mnode_alive(const struct mnode *node)
{
        return !(__atomic_load_n(&node->head, __ATOMIC_ACQUIRE) & MNODE_DEAD);
}

/* M1 */
static inline void *mnode_entry(struct mnode *node, enum mnode_kind kind, size_t i)
{
        return __atomic_load_n(mnode_entries(node, kind) + i, __ATOMIC_ACQUIRE);
}

/* M5: @entry was read before its end (mnode_last), and is there after it, too. */
static inline bool mnode_still(const struct mnode *leaf, size_t i, const void *entry)
{
        return __atomic_load_n(leaf->wide.entry + i, __ATOMIC_RELAXED) == entry;
}

/* M1 */
static inline void mnode_publish(void **entry, void *what)
{
        __atomic_store_n(entry, what, __ATOMIC_RELEASE);
}

/* The end of entry i of a node that ends at @max (I2). An acquire, for mnode_still. */
static inline uint64_t mnode_last(struct mnode *node, enum mnode_kind kind, size_t i,
                                  uint64_t max)
{
        uint64_t pivot;

        if (i + 1 >= mnode_shape(kind).entries)
                return max;
        pivot = __atomic_load_n(node->wide.pivot + i, __ATOMIC_ACQUIRE);
        return pivot < max ? pivot : max;
}

/* The beginning of entry i of a node that begins at @min. */
static inline uint64_t mnode_first(struct mnode *node, size_t i, uint64_t min)
{
        return i ? mnode_pivot(node, i - 1) + 1 : min;
}

/*
 * Narrows [min, max], which the node spans, to its entry @index. It has no branch, because where a
 * key goes cannot be predicted. For the first entry it reads the head in place of a pivot, for the
 * last one the word behind the pivots, and then takes neither.
 */
static inline void mnode_narrow(const struct mnode *node, enum mnode_kind kind, unsigned index,
                                uint64_t *min, uint64_t *max)
{
        const uint64_t *words = (const uint64_t *)node;
        uint64_t before = __atomic_load_n(words + index, __ATOMIC_RELAXED);
        uint64_t end = __atomic_load_n(words + index + 1, __ATOMIC_RELAXED);

        end = index + 1u < mnode_shape(kind).entries ? end : UINT64_MAX;
        *min = index ? before + 1 : *min;
        *max = end < *max ? end : *max;
}

/*
 * Copies all of a node, 16 bytes at a time. A memcpy of constant size becomes an instruction that
 * takes longer to start than this takes as a whole.
 */
static inline void mnode_copy(struct mnode *to, const struct mnode *from)
{
        typedef long long pair __attribute__((vector_size(16), aligned(8)));
        const pair *in = (const pair *)from;
        pair *out = (pair *)to;

        out[0] = in[0];
#pragma GCC unroll 16
        for (unsigned i = 1; i < MNODE_BYTES / sizeof(pair); i++)
                out[i] = in[i];
}

/* Asks for all four lines at once, so that a node costs one memory latency. */
static inline void mnode_prefetch(const struct mnode *node)
{
        const char *at = (const char *)node;

        __builtin_prefetch(at);
        __builtin_prefetch(at + 64);
        __builtin_prefetch(at + 128);
        __builtin_prefetch(at + 192);
}

/*
 * A pivot as a search reads it, M5. To the compiler it is a plain load, which a compare can have as
 * its operand; atomic loads make a search half as long again. TSan gets the atomic load.
 */
static inline uint64_t mnode_searched(const uint64_t *pivot)
{
        return MNODE_TSAN ? __atomic_load_n(pivot, __ATOMIC_RELAXED) : *pivot;
}

/*
 * Which entry is @key's: the number of pivots below it (I2). It has no branch, because where a key
 * goes cannot be predicted. One step of a binary search comes first, then all compares that are
 * left, at once: they do not wait for each other, as those of more steps would. (Measured at 1,000
 * ranges, each lookup waiting for the one before: 19 ns; four steps 30 ns.)
 */
static inline unsigned mnode_find_wide(const struct mnode *node, uint64_t key)
{
        const uint64_t *p = node->wide.pivot;
        unsigned n = mnode_searched(p + 7) < key ? 8 : 0;

        p += n;
        n += (mnode_searched(p) < key) + (mnode_searched(p + 1) < key);
        n += (mnode_searched(p + 2) < key) + (mnode_searched(p + 3) < key);
        n += (mnode_searched(p + 4) < key) + (mnode_searched(p + 5) < key);
        return n + (mnode_searched(p + 6) < key);
}

/*
 * M5. After entry @index of a leaf was read: @key may be above its end, because the search saw old
 * pivots. It is true in vain for some keys of a full leaf's last entry: what is read then is the
 * word behind the pivots.
 */
static inline bool mnode_passed(const struct mnode *leaf, unsigned index, uint64_t key)
{
        const uint64_t *words = (const uint64_t *)leaf;

        return __atomic_load_n(words + index + 1, __ATOMIC_RELAXED) < key;
}

static inline unsigned mnode_find_gaps(const struct mnode *node, uint64_t key)
{
        const uint64_t *p = node->gaps.pivot;
        unsigned n;

        n = (p[0] < key) + (p[1] < key) + (p[2] < key);
        n += (p[3] < key) + (p[4] < key) + (p[5] < key);
        n += (p[6] < key) + (p[7] < key) + (p[8] < key);
        return n;
}

static inline unsigned mnode_find(const struct mnode *node, enum mnode_kind kind, uint64_t key)
{
        return kind == MNODE_INNER_GAPS ? mnode_find_gaps(node, key) : mnode_find_wide(node, key);
}

#endif
