/*
 * <stook/maple.h> - maple trees: ranges of 64-bit keys to pointers
 *
 * A maple tree maps inclusive ranges [first, last] of uint64_t to entries. Ranges do not overlap.
 * An entry is a pointer that is not NULL; NULL is a gap. Neighbouring gaps are always one gap.
 * Neighbouring ranges with the same entry stay two. Nodes are 256 bytes and hold up to 16 ranges
 * (10 children in trees with gap tracking), so trees are flat. An empty tree has no node at all,
 * nor has one that holds an entry at key 0 alone. These calls are in libstook-maple: link with
 * -lstook-maple -lstook (pkg-config stook-maple, CMake stook::maple).
 *
 * There are two families of calls. The simple ones take a tree and keys:
 *
 *      struct stook_maple tree = STOOK_MAPLE_INIT(0);
 *
 *      stook_maple_store(&tree, 10, 19, entry);
 *      stook_maple_load(&tree, 15) == entry;
 *
 * Cursors (struct stook_maple_cursor) stand somewhere in a tree. They walk it both ways, and
 * prepare a store so that it cannot fail:
 *
 *      STOOK_MAPLE_CURSOR(cursor, &tree, 10, 19);
 *
 *      stook_maple_lock(&tree);
 *      if (!stook_maple_cursor_preallocate(&cursor, entry))          // all that can fail
 *              stook_maple_cursor_store_prealloc(&cursor, entry);    // does not fail
 *      stook_maple_unlock(&tree);
 *
 * Threads: what may run at the same time depends on the flags of the tree.
 *
 *   flags                simple calls                 cursors
 *   0                    take the tree's lock         the caller holds the lock
 *                                                     (stook_maple_lock)
 *   EXTERNAL_LOCK        the caller locks, as for any unsynchronised structure; readers may share
 *   RCU                  writes take the lock;        writing: the caller holds the lock;
 *                        reads: a read section        reading: the lock or a read section
 *   RCU | EXTERNAL_LOCK  writes: the caller locks; reads: a read section, or the caller's lock
 *
 * A read section is one of the RCU implementation that the process uses (<stook/rcu.h>). The caller
 * holds it around the call and around its use of the entry:
 *
 *      stook_rcu_use(&stook_urcu_memb);                        // once, before the first write
 *
 *      urcu_memb_read_lock();                                  // in a registered thread
 *      struct route *route = stook_maple_load(&tree, address);
 *      ...
 *      urcu_memb_read_unlock();
 *
 *      void *old;
 *      if (!stook_maple_erase(&tree, address, &old))           // a writer, which owns its entries
 *              stook_cache_free_rcu(routes, old);
 *
 * The tree's own lock knows its holder: a thread may make simple calls while it holds the lock.
 * A cursor must not write to a tree with a lock of its own without holding that lock. Such a write
 * ends the process if the library was built with assertions. A lock of the caller's can be
 * registered, and is then checked in every build (stook_maple_set_external_lock()).
 * No call here is signal-safe.
 *
 * What readers of an RCU tree see (they take no lock, store nothing, and never wait for a writer;
 * at most they search one leaf again):
 *  - Nodes that readers can reach are never changed, with two exceptions. One store may replace the
 *    pointer of an entry or of a child. And a range may be added in the gap at the end of a leaf,
 *    also by one store that readers see. Where other bounds change, the writer makes new
 *    nodes, up to the lowest node in which a change of one pointer is enough, or up to the root.
 *    That one store makes the write visible as a whole, with all its splits, merges and spanned
 *    subtrees. So for every key a reader finds the old entry or the new one, never neither, and
 *    bounds and entry that belong together.
 *  - A call that begins after a write has returned sees it. A walk over many ranges (find, next,
 *    for_each) sees each range as it is when the walk gets there. A range that stays where it is
 *    during the walk is met exactly once.
 *  - Nodes that were replaced are freed by stook_cache_free_rcu().
 *
 * Errors: writes return 0 or -errno. After any failure the tree is as it was. Pointers whose two
 * low bits are 10 and that are below 4096 are reserved and refused (-EINVAL), except the
 * placeholder.
 * Sources: the maple tree of Liam R. Howlett and Matthew Wilcox (Linux 6.1 on), from its
 * documentation; the code is Stook's.
 */
#ifndef STOOK_MAPLE_H
#define STOOK_MAPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stook_sheaf;

/* Flags of a tree, for its whole life; STOOK_MAPLE_RCU until stook_maple_set_rcu(). */
#define STOOK_MAPLE_GAPS          1u    /* keep track of gaps: for alloc and empty_area */
#define STOOK_MAPLE_RCU           2u    /* readers without locks */
#define STOOK_MAPLE_EXTERNAL_LOCK 4u    /* the caller locks; no call takes a lock */

/*
 * An entry that takes its range and that readers do not see. It is stored and erased as others are.
 *   as for a gap     load, load_range, find, find_after, next, prev; the cursors' find, next and
 *                    their reverses
 *   as for an entry  insert, overlaps, alloc, empty_area; erase and cursor_replace tell it; the
 *                    cursors' walk and range calls return it
 */
#ifdef __cplusplus
#define STOOK_MAPLE_PLACEHOLDER (reinterpret_cast<void *>(uintptr_t{ 2 }))
#else
#define STOOK_MAPLE_PLACEHOLDER ((void *)(uintptr_t)2)
#endif

/*
 * A tree. Embed it. Its fields are the library's. It must not be copied or moved while in use.
 */
struct stook_maple {
        uintptr_t root;                 /* atomic: readers begin here */
        unsigned  flags;                /* atomic: STOOK_MAPLE_*; stored under the lock */
        unsigned  wrapped;              /* lock: alloc_cyclic handed out the last key */
        bool    (*held)(const void *lock);  /* const while others use the tree; or NULL */
        const void *external;           /* the same: what it is asked about */
        uint64_t  spare[6];
        uint64_t  version;              /* atomic: writes so far; stored under the lock */
        void     *deferred;             /* lock: nodes that the cache could not take yet */
        const void *holder;             /* atomic: the thread that has the lock */
        uint64_t  lock[6];              /* the C library's mutex, or less; 0: free */
};

#define STOOK_MAPLE_INIT(flags) \
        { 0, (flags), 0, NULL, NULL, { 0, 0, 0, 0, 0, 0 }, 0, NULL, NULL, \
          { 0, 0, 0, 0, 0, 0 } }

/*
 * stook_maple_init() - what STOOK_MAPLE_INIT does, for a tree that is not static
 * @flags: STOOK_MAPLE_* or'ed
 * Return: 0; -EINVAL: an unknown flag.
 */
STOOK_PUBLIC int stook_maple_init(struct stook_maple *tree, unsigned flags);

/*
 * stook_maple_destroy() - forget all ranges and give the nodes back
 * The entries are the caller's. The tree is empty afterwards and may be used again. The caller
 * makes sure that no other thread uses the tree. Readers of an RCU tree that are still inside may
 * finish.
 */
STOOK_PUBLIC void stook_maple_destroy(struct stook_maple *tree);

/*
 * stook_maple_lock(), stook_maple_unlock() - take and release the tree's own lock
 * Not recursive. They do nothing for a tree with STOOK_MAPLE_EXTERNAL_LOCK.
 */
STOOK_PUBLIC void stook_maple_lock(struct stook_maple *tree);
STOOK_PUBLIC void stook_maple_unlock(struct stook_maple *tree);

/*
 * stook_maple_set_external_lock() - register the lock of a tree with STOOK_MAPLE_EXTERNAL_LOCK
 * @held: tells whether the calling thread holds @lock. It must not use the tree. NULL: forget the
 *        lock.
 * From then on a write, or an empty_area, without the lock ends the process with a line on standard
 * error. Without a registered lock nothing is checked. No other thread uses the tree during the
 * call.
 * Return: 0; -EINVAL: the tree has a lock of its own.
 */
STOOK_PUBLIC int stook_maple_set_external_lock(struct stook_maple *tree,
                                               bool (*held)(const void *lock), const void *lock);

/*
 * stook_maple_set_rcu() - switch STOOK_MAPLE_RCU on or off
 * A tree without readers is written to faster without: fill it first, then switch RCU on.
 * Takes the lock; with an external one the caller holds it. On: from the return on other threads
 * may read in read sections. Off: no thread is in a call that reads without the lock, or begins one
 * before it is on again. Cursors of readers are paused. What was preallocated for the other
 * state may not be enough.
 * Return: 0; -ENOTSUP, -ENOMEM, for on: as stook_maple_store().
 */
STOOK_PUBLIC int stook_maple_set_rcu(struct stook_maple *tree, bool on);

/* ---- simple calls ---- */

/* stook_maple_load() - the entry whose range has @key in it; NULL: a gap, a placeholder */
STOOK_PUBLIC void *stook_maple_load(struct stook_maple *tree, uint64_t key);

/*
 * stook_maple_load_range() - the same, with the bounds
 * @first, @last: out: the range of the entry, of the gap, or of the placeholder
 */
STOOK_PUBLIC void *stook_maple_load_range(struct stook_maple *tree, uint64_t key, uint64_t *first,
                                          uint64_t *last);

/*
 * stook_maple_overlaps() - whether any key of [first, last] has an entry, placeholders included
 * Return: so; false: all of it is a gap, or last < first.
 */
STOOK_PUBLIC bool stook_maple_overlaps(struct stook_maple *tree, uint64_t first, uint64_t last);

/*
 * stook_maple_store() - map [first, last] to an entry, over whatever is there
 * @entry: NULL makes a gap
 * Ranges that reach over an end of [first, last] keep what is outside.
 * Return: 0; or
 *   -EINVAL  last < first, or a reserved pointer
 *   -ENOMEM  no memory
 *   -ENOTSUP an RCU tree, and stook_rcu_use() named no implementation
 * All writes below have these errors besides their own.
 */
STOOK_PUBLIC int stook_maple_store(struct stook_maple *tree, uint64_t first, uint64_t last,
                                   void *entry);

/*
 * stook_maple_insert() - store where nothing is yet
 * @entry: not NULL
 * Return: as stook_maple_store(); or
 *   -EEXIST  not all of the range is a gap
 *   -EINVAL  @entry NULL, too
 */
STOOK_PUBLIC int stook_maple_insert(struct stook_maple *tree, uint64_t first, uint64_t last,
                                    void *entry);

/*
 * stook_maple_erase() - remove the whole range that has @key in it
 * @old: out: its entry, which is the caller's, never NULL; untouched on failure. Or NULL
 * Return: 0; or
 *   -ENOENT  @key has no entry
 *   -ENOMEM  an RCU tree, and no memory
 *   -ENOTSUP an RCU tree, and stook_rcu_use() named no implementation
 */
STOOK_PUBLIC int stook_maple_erase(struct stook_maple *tree, uint64_t key, void **old);

/*
 * stook_maple_alloc() - store an entry in the lowest gap of @size keys within [min, max]
 * stook_maple_alloc_top() - in the highest
 * @start: out: the first key of the range stored
 * Return: as stook_maple_store(); or
 *   -EBUSY   there is no such gap, also where [min, max] has fewer than @size keys
 *   -EINVAL  size 0, min > max, entry NULL, or a tree without STOOK_MAPLE_GAPS, too
 */
STOOK_PUBLIC int stook_maple_alloc(struct stook_maple *tree, void *entry, uint64_t size,
                                   uint64_t min, uint64_t max, uint64_t *start);
STOOK_PUBLIC int stook_maple_alloc_top(struct stook_maple *tree, void *entry, uint64_t size,
                                       uint64_t min, uint64_t max, uint64_t *start);

/*
 * stook_maple_alloc_cyclic() - store an entry at the lowest free key, going round
 * It looks within [max(lo, *next), hi], then within [lo, hi].
 * @next: in: where to begin; out: the key found, plus 1 (0 after the last key of all: the next call
 *        then reports the wrap)
 * @start: out: the key found
 * Return: 0; 1: the search wrapped around; or as stook_maple_alloc().
 */
STOOK_PUBLIC int stook_maple_alloc_cyclic(struct stook_maple *tree, void *entry, uint64_t lo,
                                          uint64_t hi, uint64_t *next, uint64_t *start);

/*
 * stook_maple_empty_area() - the lowest gap of @size keys within [min, max]; nothing is stored
 * stook_maple_empty_area_rev() - the highest
 * Takes the lock, in RCU trees, too. Another thread may store there as soon as it is let go, unless
 * the caller holds it.
 * @start: out: the first key of the gap's lowest, or highest, @size keys
 * Return: 0; -EBUSY: there is none, also where [min, max] has fewer than @size keys; -EINVAL:
 * size 0, min > max, or a tree without STOOK_MAPLE_GAPS.
 */
STOOK_PUBLIC int stook_maple_empty_area(struct stook_maple *tree, uint64_t size, uint64_t min,
                                        uint64_t max, uint64_t *start);
STOOK_PUBLIC int stook_maple_empty_area_rev(struct stook_maple *tree, uint64_t size, uint64_t min,
                                            uint64_t max, uint64_t *start);

/*
 * stook_maple_find() - the first entry at or after *key, and not after max
 * stook_maple_find_after() - the same, but NULL when *key is 0: for loops
 * @key: in: where to begin; out: the last key of the entry's range, plus 1, which is 0 at the end
 *       of the key space. Untouched when NULL is returned.
 * Return: the entry; NULL: there is none.
 */
STOOK_PUBLIC void *stook_maple_find(struct stook_maple *tree, uint64_t *key, uint64_t max);
STOOK_PUBLIC void *stook_maple_find_after(struct stook_maple *tree, uint64_t *key, uint64_t max);

/*
 * stook_maple_next() - the entry of the next range after the one that has @key in it, up to max
 * stook_maple_prev() - the entry of the range before it, down to min
 * Return: the entry; NULL: there is none.
 */
STOOK_PUBLIC void *stook_maple_next(struct stook_maple *tree, uint64_t key, uint64_t max);
STOOK_PUBLIC void *stook_maple_prev(struct stook_maple *tree, uint64_t key, uint64_t min);

/*
 * What the loops below assign to their variable. In C++ a void * does not become another pointer by
 * itself.
 */
#ifdef __cplusplus
#define STOOK_MAPLE_AS(entry, found) static_cast<decltype(entry)>(found)
#else
#define STOOK_MAPLE_AS(entry, found) (found)
#endif

/*
 * stook_maple_for_each() - entries in order
 * @entry: a variable, a pointer of any type
 * @key: a uint64_t variable: where to begin, and then one past the current entry
 */
#define stook_maple_for_each(tree, entry, key, max) \
        for (entry = STOOK_MAPLE_AS(entry, stook_maple_find((tree), &(key), (max))); entry; \
             entry = STOOK_MAPLE_AS(entry, stook_maple_find_after((tree), &(key), (max))))

/*
 * stook_maple_dup() - make @to a copy of @from, node by node, with the same entries
 * @to: empty, with the same flags as @from
 * Takes the locks of both, of each that has one which this thread does not hold: that of the tree
 * with the lower address first, so that two threads may copy both ways.
 * Return: 0; -EINVAL: @to is not empty, or its flags differ; -ENOMEM: no memory, @to is empty.
 */
STOOK_PUBLIC int stook_maple_dup(struct stook_maple *from, struct stook_maple *to);

/* stook_maple_empty() - whether a tree has no entry, and no placeholder */
STOOK_PUBLIC bool stook_maple_empty(const struct stook_maple *tree);

/* stook_maple_height() - levels of nodes; 0 for a tree without a node */
STOOK_PUBLIC unsigned stook_maple_height(const struct stook_maple *tree);

/* stook_maple_nodes() - nodes of a tree, 256 bytes each; it walks the tree */
STOOK_PUBLIC size_t stook_maple_nodes(struct stook_maple *tree);

/*
 * stook_maple_validate() - check every node
 * Order and bounds of pivots, single gaps, fill, gap tracking, depth.
 * Return: faults found. Each is printed to standard error.
 */
STOOK_PUBLIC int stook_maple_validate(struct stook_maple *tree);

/* What stook_maple_dump() writes. */
enum stook_maple_format {
        STOOK_MAPLE_TEXT,               /* an indented line for each node and range */
        STOOK_MAPLE_DOT                 /* a picture: pipe it into `dot -Tsvg` */
};

/*
 * stook_maple_dump() - write a tree to a stream
 * Return: 0; -EINVAL: unknown format; -EIO: the stream has an error.
 */
STOOK_PUBLIC int stook_maple_dump(struct stook_maple *tree, FILE *stream,
                                  enum stook_maple_format format);

/* ---- cursors ---- */

/* Where a cursor stands. */
enum stook_maple_status {
        /* nowhere yet: the next call begins at first */
        STOOK_MAPLE_CURSOR_START,
        /* on the range [first, last] of a node, or on the range just written */
        STOOK_MAPLE_CURSOR_ACTIVE,
        /* on key 0 of a tree that holds nothing else and has no node */
        STOOK_MAPLE_CURSOR_ROOT,
        /* on a gap of a tree without a node */
        STOOK_MAPLE_CURSOR_NONE,
        /* paused: the next call goes on beside [first, last] */
        STOOK_MAPLE_CURSOR_PAUSE,
        /* went up to max and found nothing; [first, last] is the range that max is in */
        STOOK_MAPLE_CURSOR_OVERFLOW,
        /* went down to min and found nothing; [first, last] is the range that min is in */
        STOOK_MAPLE_CURSOR_UNDERFLOW,
        /* a write failed, and changed nothing; the next call begins at first */
        STOOK_MAPLE_CURSOR_ERROR
};

/*
 * A place in a tree, the kernel's ma_state. It lives on the stack of its one user. first and last
 * are the range to be worked on, and then the range found. The other fields are the library's.
 *
 * Where a call begins. Walks and stores work on [first, last]. From START and ERROR, find and
 * find_rev begin at first, itself included; next and prev begin beside the range that first is in.
 * In every other status the cursor stands on the range [first, last], and all four go on beside it,
 * up or down.
 * What a call leaves:
 *   something found    ACTIVE, or ROOT; [first, last] is its range. (A range that begins after max
 *                      is not found.)
 *   nothing found      OVERFLOW upwards, UNDERFLOW downwards, NONE in an empty tree; [first, last]
 *                      is the range that the limit is in, or the one the cursor stood on if that
 *                      reaches to the limit
 *   walk               ACTIVE on a range or a gap, ROOT, NONE
 *   empty_area         ACTIVE, or as it was
 *   a write            ACTIVE, [first, last] being what was written; ERROR, and they are as they
 *                      were
 *
 * Between its calls, writes to the tree may overtake a cursor: by the same thread, by other threads
 * while the lock is released, or in RCU trees at any time. The next call then finds its place again
 * by first and last.
 * A reader without the lock calls stook_maple_cursor_pause() before its read section ends. A cursor
 * that was last used under the lock needs no pause before the lock is released. The next call may
 * hold the lock again, or be in a read section.
 */
struct stook_maple_cursor {
        struct stook_maple *tree;
        uint64_t first, last;
        void    *node;                  /* the leaf; NULL: to be found again */
        uint64_t min, max;              /* the leaf's bounds */
        uint64_t version;
        unsigned char status, index;    /* index: which of the leaf's entries */
        unsigned char needed;           /* nodes that preallocate found necessary */
        unsigned char at;               /* which entry of the node above the leaf is */
        struct stook_sheaf *sheaf;      /* prefilled nodes */
        void    *spare_node;            /* one more */
        void    *expected;              /* nodes for stook_maple_cursor_expect(), a list */
        uint64_t expected_left;         /* how many */
        void    *above;                 /* the node above the leaf, or NULL */
        uint64_t spare[5];
};

#define STOOK_MAPLE_CURSOR_INIT(tree, first, last) \
        { (tree), (first), (last), NULL, 0, 0, 0, STOOK_MAPLE_CURSOR_START, 0, 0, 0, NULL, NULL, \
          NULL, 0, NULL, { 0, 0, 0, 0, 0 } }
#define STOOK_MAPLE_CURSOR(name, tree, first, last) \
        struct stook_maple_cursor name = STOOK_MAPLE_CURSOR_INIT(tree, first, last)

/*
 * stook_maple_cursor_set() - move a cursor: the next call begins at [first, last]
 * What was preallocated stays.
 */
STOOK_PUBLIC void stook_maple_cursor_set(struct stook_maple_cursor *cursor, uint64_t first,
                                         uint64_t last);

/*
 * stook_maple_cursor_move() - move a cursor that may stay in its leaf
 * Does what stook_maple_cursor_set() does, and the cursor remembers its leaf. So the next call that
 * looks needs no walk from the root if `first` is in that leaf. A reader moves a cursor within one
 * read section.
 */
STOOK_PUBLIC void stook_maple_cursor_move(struct stook_maple_cursor *cursor, uint64_t first,
                                          uint64_t last);

/*
 * stook_maple_cursor_pause() - to be called before a read section ends in the middle of a walk
 * Before a lock is released it may be left out.
 */
STOOK_PUBLIC void stook_maple_cursor_pause(struct stook_maple_cursor *cursor);

/* stook_maple_cursor_reset() - back to START, with first and last as they are */
STOOK_PUBLIC void stook_maple_cursor_reset(struct stook_maple_cursor *cursor);

/*
 * stook_maple_cursor_finish() - give back what was preallocated, or expected
 * Every preallocation needs it, or a store. The cursor may be used again.
 */
STOOK_PUBLIC void stook_maple_cursor_finish(struct stook_maple_cursor *cursor);

/* stook_maple_cursor_status() - where a cursor stands */
STOOK_PUBLIC enum stook_maple_status
stook_maple_cursor_status(const struct stook_maple_cursor *cursor);

/*
 * stook_maple_cursor_dump() - write where a cursor stands, and what it holds, to a stream
 * For people. It does not look at the tree's nodes.
 * Return: 0; -EIO: the stream has an error.
 */
STOOK_PUBLIC int stook_maple_cursor_dump(const struct stook_maple_cursor *cursor, FILE *stream);

/*
 * stook_maple_cursor_walk() - the entry at first
 * first and last become its whole range, or the whole gap.
 * Return: the entry; NULL: a gap.
 */
STOOK_PUBLIC void *stook_maple_cursor_walk(struct stook_maple_cursor *cursor);

/*
 * stook_maple_cursor_erase() - erase the range that has first in it
 * [first, last] becomes that range.
 * Return: as stook_maple_erase().
 */
STOOK_PUBLIC int stook_maple_cursor_erase(struct stook_maple_cursor *cursor, void **old);

/*
 * stook_maple_cursor_store() - stook_maple_store() of [first, last]
 * Uses preallocated nodes first, and gives the rest back.
 * Return: as stook_maple_store().
 */
STOOK_PUBLIC int stook_maple_cursor_store(struct stook_maple_cursor *cursor, void *entry);

/*
 * stook_maple_cursor_replace() - stook_maple_cursor_store() that tells what was there
 * @old: out: the entry that `first` had; NULL: a gap. Untouched on failure.
 */
STOOK_PUBLIC int stook_maple_cursor_replace(struct stook_maple_cursor *cursor, void *entry,
                                            void **old);

/*
 * stook_maple_cursor_expect() - get all nodes that loading a known number of entries needs
 * @n: how many; at most 2^30
 * Then n calls of stook_maple_cursor_store() cannot fail for want of memory, if each stores an
 * entry above all that is in the tree. There may be gaps between them. Stores in another order take
 * from the same nodes, and may need more.
 * The cursor holds the nodes until stook_maple_cursor_finish(), which gives the rest back: next to
 * nothing after a large load with a gap before each entry, half of the nodes after one without.
 * Return: 0; -ENOMEM: no memory, and the cursor holds what it held before; -EINVAL: n too large, or
 * an RCU tree: its stores replace nodes. Switch RCU on after the load (stook_maple_set_rcu()).
 */
STOOK_PUBLIC int stook_maple_cursor_expect(struct stook_maple_cursor *cursor, uint64_t n);

/*
 * stook_maple_cursor_preallocate() - get all nodes that storing @entry in [first, last] needs at
 *     worst
 * Return: 0; -EINVAL, -ENOMEM, -ENOTSUP as stook_maple_store(), and the cursor holds what it held
 * before.
 */
STOOK_PUBLIC int stook_maple_cursor_preallocate(struct stook_maple_cursor *cursor, void *entry);

/*
 * stook_maple_cursor_store_prealloc() - the store that was preallocated
 * Cannot fail if three things are as they were at the preallocation: [first, last], the tree, and
 * whether the entry is NULL. What is left of the nodes is given back.
 * Return: 0; otherwise the caller made a mistake: -ENOMEM: more nodes are needed than were
 * preallocated; -EINVAL as stook_maple_store().
 */
STOOK_PUBLIC int stook_maple_cursor_store_prealloc(struct stook_maple_cursor *cursor, void *entry);

/*
 * stook_maple_cursor_preallocated() - nodes that the last preallocate found necessary
 * They are held for it; the cursor may hold more.
 */
STOOK_PUBLIC unsigned stook_maple_cursor_preallocated(const struct stook_maple_cursor *cursor);

/*
 * stook_maple_cursor_find() - the next entry upwards that does not begin after max
 * stook_maple_cursor_find_rev() - the next entry downwards that does not end before min
 * From START the entry at first counts, too.
 * Return: the entry; NULL: there is none.
 */
STOOK_PUBLIC void *stook_maple_cursor_find(struct stook_maple_cursor *cursor, uint64_t max);
STOOK_PUBLIC void *stook_maple_cursor_find_rev(struct stook_maple_cursor *cursor, uint64_t min);

/*
 * stook_maple_cursor_find_range(), stook_maple_cursor_find_range_rev() - the same with gaps
 * Return: for a gap NULL, with status ACTIVE or NONE.
 */
STOOK_PUBLIC void *stook_maple_cursor_find_range(struct stook_maple_cursor *cursor, uint64_t max);
STOOK_PUBLIC void *stook_maple_cursor_find_range_rev(struct stook_maple_cursor *cursor,
                                                     uint64_t min);

/*
 * stook_maple_cursor_next() - the entry after the current range, not beginning after max
 * stook_maple_cursor_prev() - the entry before it, not ending before min
 * Return: the entry; NULL: there is none.
 */
STOOK_PUBLIC void *stook_maple_cursor_next(struct stook_maple_cursor *cursor, uint64_t max);
STOOK_PUBLIC void *stook_maple_cursor_prev(struct stook_maple_cursor *cursor, uint64_t min);

/*
 * stook_maple_cursor_next_range(), stook_maple_cursor_prev_range() - the range after or before the
 *     current one, gaps, too
 * Return: for a gap NULL, with status ACTIVE or NONE.
 */
STOOK_PUBLIC void *stook_maple_cursor_next_range(struct stook_maple_cursor *cursor, uint64_t max);
STOOK_PUBLIC void *stook_maple_cursor_prev_range(struct stook_maple_cursor *cursor, uint64_t min);

/*
 * stook_maple_cursor_empty_area() - look for the lowest gap of @size keys within [min, max]
 * stook_maple_cursor_empty_area_rev() - for the highest
 * The caller holds the lock, in RCU trees, too. On success [first, last] is the place, of exactly
 * @size keys, at the low end of the gap, or at its high end. It is ready to be stored to.
 * Return: as stook_maple_empty_area().
 */
STOOK_PUBLIC int stook_maple_cursor_empty_area(struct stook_maple_cursor *cursor, uint64_t size,
                                               uint64_t min, uint64_t max);
STOOK_PUBLIC int stook_maple_cursor_empty_area_rev(struct stook_maple_cursor *cursor, uint64_t size,
                                                   uint64_t min, uint64_t max);

/*
 * stook_maple_cursor_empty_area_next() - go on with the search, upwards
 * stook_maple_cursor_empty_area_prev() - downwards
 * The lowest place of @size keys above `last`, up to max; the highest below `first`, down to min.
 * (From START and ERROR: from `first` on.) For callers that found a place and cannot use it.
 * Return: as stook_maple_cursor_empty_area(); on failure the cursor stays where it is.
 */
STOOK_PUBLIC int stook_maple_cursor_empty_area_next(struct stook_maple_cursor *cursor,
                                                    uint64_t size, uint64_t max);
STOOK_PUBLIC int stook_maple_cursor_empty_area_prev(struct stook_maple_cursor *cursor,
                                                    uint64_t size, uint64_t min);

/*
 * stook_maple_cursor_alloc_cyclic() - stook_maple_alloc_cyclic() by a cursor
 * The caller holds the lock, in RCU trees, too. On success [first, last] is the key found.
 * Return: as stook_maple_alloc_cyclic().
 */
STOOK_PUBLIC int stook_maple_cursor_alloc_cyclic(struct stook_maple_cursor *cursor, void *entry,
                                                 uint64_t lo, uint64_t hi, uint64_t *next);

/*
 * stook_maple_cursor_for_each() - entries in order, up to max
 * stook_maple_cursor_for_each_rev() - entries backwards, down to min
 * @entry: a variable, a pointer of any type
 * In the loop first and last are the entry's range. The loop may store and erase there, also by the
 * same cursor, and goes on beside what was written.
 */
#define stook_maple_cursor_for_each(cursor, entry, max) \
        while ((entry = STOOK_MAPLE_AS(entry, stook_maple_cursor_find((cursor), (max)))) != NULL)
#define stook_maple_cursor_for_each_rev(cursor, entry, min) \
        while ((entry = STOOK_MAPLE_AS(entry, stook_maple_cursor_find_rev((cursor), \
                                                                          (min)))) != NULL)

#ifdef __cplusplus
}
#endif
#endif
