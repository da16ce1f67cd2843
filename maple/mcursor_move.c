/*
 * Purpose: cursors that look: walk, find, next, prev and their kin.
 *
 * Place: on mplace.c. A cursor remembers its leaf, the leaf's bounds, and the node above. So a step
 * within the leaf costs no walk. Nor does a step to the leaf beside it, if the same node is above
 * both. Else the cursor walks down from the root. Invariant: the cursor uses a leaf only while it
 * is surely the one that its keys are in:
 *  - neither the leaf nor the node above must be freed, by the tree's version or by the reader's
 *    section (mtree.h);
 *  - with RCU the leaf must not be dead after the entry was read, either (M2 in mnode.h).
 * The node above may be dead. It then has the leaves that it had when it was replaced. Each of them
 * is dead, too, or is still in the tree, and with the same bounds: it was made for them.
 */
#include "mcursor.h"

#define ALWAYS static inline __attribute__((always_inline))

/* The leaf and the node above may be read: the cursor found them, and they have not been freed. */
static inline bool has_leaf(const struct stook_maple_cursor *cursor)
{
        return cursor->node && mtree_same_version(cursor->tree, cursor->version);
}

/* The cursor stands on what @place has. */
static inline void *stand_on(struct stook_maple_cursor *cursor, const struct mplace *place)
{
        cursor->index = (unsigned char)place->index;
        cursor->first = place->first;
        cursor->last = place->last;
        cursor->status = place->leaf  ? STOOK_MAPLE_CURSOR_ACTIVE :
                         place->entry ? STOOK_MAPLE_CURSOR_ROOT : STOOK_MAPLE_CURSOR_NONE;
        return place->entry;
}

/*
 * Asks for the leaf above, or below, if the same node is above both. A program that goes on that
 * way does not wait for it.
 */
static inline void prefetch_beside(const struct stook_maple_cursor *cursor, bool up)
{
        enum mnode_kind kind = mtree_kind(cursor->tree, 1);
        unsigned at = up ? cursor->at + 1u : cursor->at - 1u;
        struct mnode *leaf = NULL;

        if (cursor->above && at < mnode_shape(kind).entries)
                leaf = mnode_entry(cursor->above, kind, at);
        if (leaf)
                mnode_prefetch(leaf);
}

/*
 * The cursor's leaf becomes the one that begins, or ends, with @key. False: another node is above
 * that leaf; or the leaf is the last of the node, or the first, whose far bound is no pivot.
 */
static inline bool go_beside(struct stook_maple_cursor *cursor, uint64_t key, bool up)
{
        enum mnode_kind kind = mtree_kind(cursor->tree, 1);
        unsigned at = up ? cursor->at + 1u : cursor->at - 1u, pivot = up ? at : at - 1;
        struct mnode *above = cursor->above;
        uint64_t end;

        if ((up ? cursor->max + 1 : cursor->min - 1) != key || !has_leaf(cursor) || !above ||
            pivot >= mnode_shape(kind).entries - 1u)
                return false;
        end = mnode_pivot(above, pivot);
        if (end == UINT64_MAX)
                return false;
        cursor->min = up ? key : end + 1;
        cursor->max = up ? end : key;
        cursor->at = (unsigned char)at;
        cursor->node = mnode_entry(above, kind, at);
        prefetch_beside(cursor, up);
        return true;
}

/* The range that @key is in; first and last become its bounds. */
static __attribute__((noinline))
void *move_to(struct stook_maple_cursor *cursor, uint64_t key)
{
        struct stook_maple *tree = cursor->tree;
        struct mplace place;

        if (key >= cursor->min && key <= cursor->max && has_leaf(cursor)) {
                place.leaf = cursor->node;
                place.min = cursor->min;
                place.max = cursor->max;
                mplace_find(tree, &place, key);
                if (mnode_alive(place.leaf))
                        return stand_on(cursor, &place);
        }
        cursor->version = mtree_version_for_walk(tree);
        stook_mplace_seek(tree, key, &place);
        cursor->node = place.leaf;
        cursor->min = place.min;
        cursor->max = place.max;
        cursor->above = place.above;
        cursor->at = (unsigned char)place.at;
        if (key < cursor->first || key > cursor->last)
                prefetch_beside(cursor, key > cursor->last);
        return stand_on(cursor, &place);
}

/*
 * The cursor stands on entry @index of its leaf, which begins at @first. Where gaps are not asked
 * for, it goes over one to the range above, unless that begins behind @max. False: to be looked for
 * by move_to(). With RCU the last gap of a leaf is, because it may be appended to now (M5 of
 * mnode.h). So is a gap that got an entry before the range above it was read.
 */
ALWAYS bool read_up(struct stook_maple_cursor *cursor, size_t index, uint64_t first, uint64_t max,
                    bool gaps, void **found)
{
        struct mnode *leaf = cursor->node;
        void *entry = mnode_entry(leaf, MNODE_LEAF, index), *above = NULL;
        uint64_t last;

        if (!entry) {
                if (index + 1 < MNODE_ENTRIES)
                        above = mnode_entry(leaf, MNODE_LEAF, index + 1);
                if (above ? mnode_entry(leaf, MNODE_LEAF, index) != NULL : mtree_rcu(cursor->tree))
                        return false;
                if (above && !gaps && mnode_pivot(leaf, index) < max) {
                        first = mnode_pivot(leaf, index++) + 1;
                        entry = above;
                }
        }
        last = mnode_last(leaf, MNODE_LEAF, index, cursor->max);
        if (MTREE_UNLIKELY(!mnode_alive(leaf) || !mnode_still(leaf, index, entry)))
                return false;
        cursor->index = (unsigned char)index;
        cursor->first = first;
        cursor->last = last;
        *found = entry;
        return true;
}

/* The same downwards: the entry ends at @last. */
ALWAYS bool read_down(struct stook_maple_cursor *cursor, size_t index, uint64_t last, uint64_t min,
                      bool gaps, void **found)
{
        struct mnode *leaf = cursor->node;
        void *entry = mnode_entry(leaf, MNODE_LEAF, index);
        uint64_t first = mnode_first(leaf, index, cursor->min);

        if (!entry && !gaps && index && first > min) {
                entry = mnode_entry(leaf, MNODE_LEAF, --index);
                last = first - 1;
                first = mnode_first(leaf, index, cursor->min);
        }
        if (MTREE_UNLIKELY(!mnode_alive(leaf)))
                return false;
        cursor->index = (unsigned char)index;
        cursor->first = first;
        cursor->last = last;
        *found = entry;
        return true;
}

/*
 * A step within the leaf. False: the cursor is where it was. It stands on entry `index` if that
 * ends where the cursor's range does. Then this is not the leaf's last entry, unless `last` is the
 * last key of all: unused pivots are (I2 of mnode.h).
 */
ALWAYS bool step(struct stook_maple_cursor *cursor, uint64_t limit, bool up, bool gaps,
                 void **found)
{
        struct mnode *leaf = cursor->node;
        size_t index = cursor->index;

        if (cursor->status != STOOK_MAPLE_CURSOR_ACTIVE || !has_leaf(cursor))
                return false;
        if (up)
                return index + 1 < MNODE_ENTRIES && mnode_pivot(leaf, index) == cursor->last &&
                       cursor->last < limit &&
                       read_up(cursor, index + 1, cursor->last + 1, limit, gaps, found);
        return index && mnode_pivot(leaf, index - 1) == cursor->first - 1 &&
               cursor->first > limit &&
               read_down(cursor, index - 1, cursor->first - 1, limit, gaps, found);
}

static void *ended(struct stook_maple_cursor *cursor, bool up)
{
        cursor->status = !mtree_root(cursor->tree) ? STOOK_MAPLE_CURSOR_NONE :
                         up ? STOOK_MAPLE_CURSOR_OVERFLOW : STOOK_MAPLE_CURSOR_UNDERFLOW;
        return NULL;
}

/*
 * M5. False: what was just read at the edge of a leaf may be a part of its last gap, or a range
 * that an append put below the edge after the search.
 */
static inline bool is_whole(const struct stook_maple_cursor *cursor, const void *entry)
{
        return !mtree_rcu(cursor->tree) ||
               (entry && cursor->last == mnode_last(cursor->node, MNODE_LEAF, cursor->index,
                                                    cursor->max));
}

static __attribute__((noinline))
void *go(struct stook_maple_cursor *cursor, uint64_t limit, bool up, bool here, bool gaps)
{
        uint64_t key;
        void *entry;

        if (mcursor_nowhere(cursor)) {
                if (up ? cursor->first > limit : cursor->first < limit)
                        return ended(cursor, up);
                entry = move_to(cursor, cursor->first);
                if (here && (gaps || mtree_seen(entry)))
                        return entry;
        }
        do {
                if (up ? cursor->last >= limit : cursor->first <= limit)
                        return ended(cursor, up);
                key = up ? cursor->last + 1 : cursor->first - 1;
                if (go_beside(cursor, key, up) &&
                    (up ? read_up(cursor, 0, key, limit, gaps, &entry)
                        : read_down(cursor, mnode_find_wide(cursor->node, key), key, limit, gaps,
                                    &entry)) &&
                    is_whole(cursor, entry))
                        cursor->status = STOOK_MAPLE_CURSOR_ACTIVE;
                else
                        entry = move_to(cursor, key);
        } while (!gaps && !mtree_seen(entry));
        return entry;
}

/*
 * @here: a cursor that is nowhere may find the range at `first`, too; else it begins beside that.
 * @gaps: finds gaps and placeholders, too.
 */
ALWAYS void *look(struct stook_maple_cursor *cursor, uint64_t limit, bool up, bool here, bool gaps)
{
        void *entry;

        while (MTREE_LIKELY(step(cursor, limit, up, gaps, &entry)))
                if (gaps || mtree_seen(entry))
                        return entry;
        return go(cursor, limit, up, here, gaps);
}

STOOK_PUBLIC void *stook_maple_cursor_walk(struct stook_maple_cursor *cursor)
{
        return move_to(cursor, cursor->first);
}

STOOK_PUBLIC void *stook_maple_cursor_find(struct stook_maple_cursor *cursor, uint64_t max)
{
        return look(cursor, max, true, true, false);
}

STOOK_PUBLIC void *stook_maple_cursor_find_range(struct stook_maple_cursor *cursor, uint64_t max)
{
        return look(cursor, max, true, true, true);
}

STOOK_PUBLIC void *stook_maple_cursor_next(struct stook_maple_cursor *cursor, uint64_t max)
{
        return look(cursor, max, true, false, false);
}

STOOK_PUBLIC void *stook_maple_cursor_next_range(struct stook_maple_cursor *cursor, uint64_t max)
{
        return look(cursor, max, true, false, true);
}

STOOK_PUBLIC void *stook_maple_cursor_find_rev(struct stook_maple_cursor *cursor, uint64_t min)
{
        return look(cursor, min, false, true, false);
}

STOOK_PUBLIC void *stook_maple_cursor_find_range_rev(struct stook_maple_cursor *cursor,
                                                     uint64_t min)
{
        return look(cursor, min, false, true, true);
}

STOOK_PUBLIC void *stook_maple_cursor_prev(struct stook_maple_cursor *cursor, uint64_t min)
{
        return look(cursor, min, false, false, false);
}

STOOK_PUBLIC void *stook_maple_cursor_prev_range(struct stook_maple_cursor *cursor, uint64_t min)
{
        return look(cursor, min, false, false, true);
}

STOOK_PUBLIC void stook_maple_cursor_set(struct stook_maple_cursor *cursor, uint64_t first,
                                         uint64_t last)
{
        mcursor_leave(cursor, STOOK_MAPLE_CURSOR_START);
        cursor->first = first;
        cursor->last = last;
}

STOOK_PUBLIC void stook_maple_cursor_move(struct stook_maple_cursor *cursor, uint64_t first,
                                          uint64_t last)
{
        cursor->status = STOOK_MAPLE_CURSOR_START;
        cursor->first = first;
        cursor->last = last;
}

STOOK_PUBLIC void stook_maple_cursor_pause(struct stook_maple_cursor *cursor)
{
        if (mcursor_nowhere(cursor))
                cursor->node = NULL;
        else
                mcursor_leave(cursor, STOOK_MAPLE_CURSOR_PAUSE);
}

STOOK_PUBLIC void stook_maple_cursor_reset(struct stook_maple_cursor *cursor)
{
        mcursor_leave(cursor, STOOK_MAPLE_CURSOR_START);
}

STOOK_PUBLIC enum stook_maple_status
stook_maple_cursor_status(const struct stook_maple_cursor *cursor)
{
        return (enum stook_maple_status)cursor->status;
}
