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

/* The range that @key is in; first and last become its bounds. */
static void *move_to(struct stook_maple_cursor *cursor, uint64_t key)
{
        struct stook_maple *tree = cursor->tree;
        struct mplace place;
        unsigned index;

        if (cursor->node && key >= cursor->min && key <= cursor->max &&
            mtree_same_version(tree, cursor->version)) {
                place.leaf = cursor->node;
                place.min = cursor->min;
                place.max = cursor->max;
                index = cursor->index + 1u;
                /* Key 0 is only in the first entry; an unused pivot plus 1 is 0, too. */
                if (!key || index >= MNODE_ENTRIES ||
                    mnode_first(place.leaf, index, place.min) != key)
                        index = mnode_find_wide(place.leaf, key);
                if (MTREE_LIKELY(stook_mplace_read(tree, &place, index)))
                        goto found;
        }
        cursor->version = mtree_version_for_walk(tree);
        stook_mplace_seek(tree, key, &place);
        cursor->node = place.leaf;
        cursor->min = place.min;
        cursor->max = place.max;
found:
        cursor->index = (unsigned char)place.index;
        cursor->first = place.first;
        cursor->last = place.last;
        cursor->status = place.leaf  ? STOOK_MAPLE_CURSOR_ACTIVE :
                         place.entry ? STOOK_MAPLE_CURSOR_ROOT : STOOK_MAPLE_CURSOR_NONE;
        return place.entry;
}

static void *ended(struct stook_maple_cursor *cursor, enum stook_maple_status status)
{
        cursor->status = (unsigned char)(mtree_root(cursor->tree) ? status :
                                         STOOK_MAPLE_CURSOR_NONE);
        return NULL;
}

static bool nowhere(const struct stook_maple_cursor *cursor)
{
        return cursor->status == STOOK_MAPLE_CURSOR_START ||
               cursor->status == STOOK_MAPLE_CURSOR_ERROR;
}

/* @here: a cursor that is nowhere may find the range at `first`, too. @gaps: finds gaps, too. */
static void *upwards(struct stook_maple_cursor *cursor, uint64_t max, bool here, bool gaps)
{
        bool begin = nowhere(cursor);
        void *entry;

        if (begin ? cursor->first > max : cursor->last >= max)
                return ended(cursor, STOOK_MAPLE_CURSOR_OVERFLOW);
        entry = move_to(cursor, begin ? cursor->first : cursor->last + 1);
        if (begin && !here) {
                if (cursor->last >= max)
                        return ended(cursor, STOOK_MAPLE_CURSOR_OVERFLOW);
                entry = move_to(cursor, cursor->last + 1);
        }
        while (!entry && !gaps) {
                if (cursor->last >= max)
                        return ended(cursor, STOOK_MAPLE_CURSOR_OVERFLOW);
                entry = move_to(cursor, cursor->last + 1);
        }
        return entry;
}

static void *downwards(struct stook_maple_cursor *cursor, uint64_t min, bool here, bool gaps)
{
        bool begin = nowhere(cursor);
        void *entry;

        if (begin ? cursor->first < min : cursor->first <= min)
                return ended(cursor, STOOK_MAPLE_CURSOR_UNDERFLOW);
        entry = move_to(cursor, begin ? cursor->first : cursor->first - 1);
        if (begin && !here) {
                if (cursor->first <= min)
                        return ended(cursor, STOOK_MAPLE_CURSOR_UNDERFLOW);
                entry = move_to(cursor, cursor->first - 1);
        }
        while (!entry && !gaps) {
                if (cursor->first <= min)
                        return ended(cursor, STOOK_MAPLE_CURSOR_UNDERFLOW);
                entry = move_to(cursor, cursor->first - 1);
        }
        return entry;
}

STOOK_PUBLIC void *stook_maple_cursor_walk(struct stook_maple_cursor *cursor)
{
        return move_to(cursor, cursor->first);
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

STOOK_PUBLIC void stook_maple_cursor_pause(struct stook_maple_cursor *cursor)
{
        if (nowhere(cursor))
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
