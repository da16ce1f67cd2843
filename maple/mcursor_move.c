/*
 * Purpose: cursors that look: walk, find, next, prev and their kin.
 *
 * Place: on mplace.c. A cursor remembers its leaf and the leaf's bounds, so a step within the leaf
 * costs no walk. To leave the leaf it walks down from the root to the key beside the leaf. The
 * levels above are in the processor's cache. And there is no way up that could be stale. Invariant:
 * the cursor uses the leaf only while it is surely the one that its keys are in:
 *  - the leaf must not be freed, by the tree's version or by the reader's section (mtree.h);
 *  - with RCU it must not be dead after the entry was read, either (M2 in mnode.h).
 */
#include "mcursor.h"

#define ALWAYS static inline __attribute__((always_inline))

/* The leaf may be read: it is the one that the cursor found, and has not been freed. */
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

enum way { NO_WAY, UP, DOWN };

/*
 * The range that @key is in; first and last become its bounds. @ahead: the way that the cursor
 * goes; the leaf beside its new one is asked for.
 */
static __attribute__((noinline))
void *move_to(struct stook_maple_cursor *cursor, uint64_t key, enum way ahead)
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
        if (ahead != NO_WAY && place.leaf)
                mplace_prefetch(tree, &place, ahead == UP);
        return stand_on(cursor, &place);
}

/* The gap at @index, which was just read, ends before a range, and still is a gap. */
static inline bool is_inner_gap(struct mnode *leaf, unsigned index)
{
        return index + 1 < MNODE_ENTRIES && mnode_entry(leaf, MNODE_LEAF, index + 1) &&
               !mnode_entry(leaf, MNODE_LEAF, index);
}

/*
 * The range above the cursor's, if the leaf has it, else by move_to(). The cursor is at `index` if
 * that entry ends where the cursor's range does. Then this is not the leaf's last entry, unless
 * `last` is the last key of all: unused pivots are (I2 of mnode.h). The last gap of a leaf is left
 * to move_to(), too, because it may be appended to now (M5 of mnode.h).
 */
ALWAYS void *step_up(struct stook_maple_cursor *cursor)
{
        struct mnode *leaf = cursor->node;
        unsigned index = cursor->index + 1u;
        uint64_t last;
        void *entry;

        if (cursor->status == STOOK_MAPLE_CURSOR_ACTIVE && has_leaf(cursor) &&
            index < MNODE_ENTRIES && mnode_pivot(leaf, index - 1) == cursor->last) {
                entry = mnode_entry(leaf, MNODE_LEAF, index);
                last = mnode_last(leaf, MNODE_LEAF, index, cursor->max);
                if ((entry || is_inner_gap(leaf, index)) && MTREE_LIKELY(mnode_alive(leaf))) {
                        cursor->index = (unsigned char)index;
                        cursor->first = cursor->last + 1;
                        cursor->last = last;
                        return entry;
                }
        }
        return move_to(cursor, cursor->last + 1, UP);
}

/* The range below the cursor's. The cursor is at `index` if the entry before ends below it. */
ALWAYS void *step_down(struct stook_maple_cursor *cursor)
{
        struct mnode *leaf = cursor->node;
        unsigned index = cursor->index;
        uint64_t last = cursor->first - 1, first;
        void *entry;

        if (cursor->status == STOOK_MAPLE_CURSOR_ACTIVE && has_leaf(cursor) && index &&
            mnode_pivot(leaf, index - 1) == last) {
                first = mnode_first(leaf, index - 1, cursor->min);
                entry = mnode_entry(leaf, MNODE_LEAF, index - 1);
                if (MTREE_LIKELY(mnode_alive(leaf))) {
                        cursor->index = (unsigned char)(index - 1);
                        cursor->first = first;
                        cursor->last = last;
                        return entry;
                }
        }
        return move_to(cursor, last, DOWN);
}

static __attribute__((noinline))
void *ended(struct stook_maple_cursor *cursor, enum stook_maple_status status)
{
        cursor->status = (unsigned char)(mtree_root(cursor->tree) ? status :
                                         STOOK_MAPLE_CURSOR_NONE);
        return NULL;
}

/*
 * @here: a cursor that is nowhere may find the range at `first`, too; else it begins beside that.
 * @gaps: finds gaps and placeholders, too.
 */
ALWAYS void *upwards(struct stook_maple_cursor *cursor, uint64_t max, bool here, bool gaps)
{
        void *entry;

        if (MTREE_UNLIKELY(mcursor_nowhere(cursor))) {
                if (cursor->first > max)
                        return ended(cursor, STOOK_MAPLE_CURSOR_OVERFLOW);
                entry = move_to(cursor, cursor->first, NO_WAY);
                if (here && (gaps || mtree_seen(entry)))
                        return entry;
        }
        do {
                if (MTREE_UNLIKELY(cursor->last >= max))
                        return ended(cursor, STOOK_MAPLE_CURSOR_OVERFLOW);
                entry = step_up(cursor);
        } while (!gaps && !mtree_seen(entry));
        return entry;
}

ALWAYS void *downwards(struct stook_maple_cursor *cursor, uint64_t min, bool here, bool gaps)
{
        void *entry;

        if (MTREE_UNLIKELY(mcursor_nowhere(cursor))) {
                if (cursor->first < min)
                        return ended(cursor, STOOK_MAPLE_CURSOR_UNDERFLOW);
                entry = move_to(cursor, cursor->first, NO_WAY);
                if (here && (gaps || mtree_seen(entry)))
                        return entry;
        }
        do {
                if (MTREE_UNLIKELY(cursor->first <= min))
                        return ended(cursor, STOOK_MAPLE_CURSOR_UNDERFLOW);
                entry = step_down(cursor);
        } while (!gaps && !mtree_seen(entry));
        return entry;
}

STOOK_PUBLIC void *stook_maple_cursor_walk(struct stook_maple_cursor *cursor)
{
        return move_to(cursor, cursor->first, NO_WAY);
}

STOOK_PUBLIC void *stook_maple_cursor_find(struct stook_maple_cursor *cursor, uint64_t max)
{
        return upwards(cursor, max, true, false);
}

STOOK_PUBLIC void *stook_maple_cursor_find_range(struct stook_maple_cursor *cursor, uint64_t max)
{
        return upwards(cursor, max, true, true);
}

STOOK_PUBLIC void *stook_maple_cursor_next(struct stook_maple_cursor *cursor, uint64_t max)
{
        return upwards(cursor, max, false, false);
}

STOOK_PUBLIC void *stook_maple_cursor_next_range(struct stook_maple_cursor *cursor, uint64_t max)
{
        return upwards(cursor, max, false, true);
}

STOOK_PUBLIC void *stook_maple_cursor_find_rev(struct stook_maple_cursor *cursor, uint64_t min)
{
        return downwards(cursor, min, true, false);
}

STOOK_PUBLIC void *stook_maple_cursor_find_range_rev(struct stook_maple_cursor *cursor,
                                                     uint64_t min)
{
        return downwards(cursor, min, true, true);
}

STOOK_PUBLIC void *stook_maple_cursor_prev(struct stook_maple_cursor *cursor, uint64_t min)
{
        return downwards(cursor, min, false, false);
}

STOOK_PUBLIC void *stook_maple_cursor_prev_range(struct stook_maple_cursor *cursor, uint64_t min)
{
        return downwards(cursor, min, false, true);
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
