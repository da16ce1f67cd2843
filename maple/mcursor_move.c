/*
 * Purpose: cursors that look: walk, find, next, prev and their kin.
 *
 * Place: on mplace.c. A cursor remembers its leaf and the leaf's bounds; a step within the leaf costs no walk. To leave the
 * leaf it walks down from the root to the key beside the leaf: the levels above are in the processor's cache, and a way
 * up that could be stale does not exist.
 * Invariant: the leaf is used only while it is surely the one its keys are in:
 *  without RCU the tree's version must be the one of when the leaf was found (every write raises it);
 *  with RCU this thread must not have written since, and the leaf must not be dead after the slot was read (M2 in
 *  mnode.h). It is memory all the same: who has the lock is the only writer, and others are in a read section that lasts.
 */
#include "mcursor.h"

/* The range that @key is in; first and last become its bounds. */
static void *move_to(struct stook_cursor *cursor, uint64_t key)
{
        struct stook_maple *tree = cursor->tree;
        struct mplace place;
        unsigned slot;

        if (cursor->node && key >= cursor->min && key <= cursor->max &&
            cursor->version == mtree_version(tree)) {
                place.leaf = cursor->node;
                place.min = cursor->min;
                place.max = cursor->max;
                slot = cursor->slot + 1u;
                /* Key 0 is no slot's but the first one's; unused pivots plus 1 are 0. */
                if (!key || slot >= MNODE_SLOTS || mnode_first(place.leaf, slot, place.min) != key)
                        slot = mnode_find_wide(place.leaf, key);
                if (MTREE_LIKELY(stook_mplace_read(tree, &place, slot)))
                        goto found;
        }
        cursor->version = mtree_version(tree);
        stook_mplace_seek(tree, key, &place);
        cursor->node = place.leaf;
        cursor->min = place.min;
        cursor->max = place.max;
found:
        cursor->slot = (unsigned char)place.slot;
        cursor->first = place.first;
        cursor->last = place.last;
        cursor->status = place.leaf ? STOOK_CURSOR_ACTIVE : place.entry ? STOOK_CURSOR_ROOT : STOOK_CURSOR_NONE;
        return place.entry;
}

static void *ended(struct stook_cursor *cursor, enum stook_cursor_status status)
{
        cursor->status = (unsigned char)(mtree_root(cursor->tree) ? status : STOOK_CURSOR_NONE);
        return NULL;
}

static bool nowhere(const struct stook_cursor *cursor)
{
        return cursor->status == STOOK_CURSOR_START || cursor->status == STOOK_CURSOR_ERROR;
}

/* @here: from nowhere, the range at first counts, too. @gaps: a gap is something found. */
static void *upwards(struct stook_cursor *cursor, uint64_t max, bool here, bool gaps)
{
        bool begin = nowhere(cursor);
        void *entry;

        if (begin ? cursor->first > max : cursor->last >= max)
                return ended(cursor, STOOK_CURSOR_OVERFLOW);
        entry = move_to(cursor, begin ? cursor->first : cursor->last + 1);
        if (begin && !here) {
                if (cursor->last >= max)
                        return ended(cursor, STOOK_CURSOR_OVERFLOW);
                entry = move_to(cursor, cursor->last + 1);
        }
        while (!entry && !gaps) {
                if (cursor->last >= max)
                        return ended(cursor, STOOK_CURSOR_OVERFLOW);
                entry = move_to(cursor, cursor->last + 1);
        }
        return entry;
}

static void *downwards(struct stook_cursor *cursor, uint64_t min, bool here, bool gaps)
{
        bool begin = nowhere(cursor);
        void *entry;

        if (begin ? cursor->first < min : cursor->first <= min)
                return ended(cursor, STOOK_CURSOR_UNDERFLOW);
        entry = move_to(cursor, begin ? cursor->first : cursor->first - 1);
        if (begin && !here) {
                if (cursor->first <= min)
                        return ended(cursor, STOOK_CURSOR_UNDERFLOW);
                entry = move_to(cursor, cursor->first - 1);
        }
        while (!entry && !gaps) {
                if (cursor->first <= min)
                        return ended(cursor, STOOK_CURSOR_UNDERFLOW);
                entry = move_to(cursor, cursor->first - 1);
        }
        return entry;
}

STOOK_PUBLIC void *stook_cursor_walk(struct stook_cursor *cursor)
{
        return move_to(cursor, cursor->first);
}

STOOK_PUBLIC void *stook_cursor_find(struct stook_cursor *cursor, uint64_t max)
{
        return upwards(cursor, max, true, false);
}

STOOK_PUBLIC void *stook_cursor_find_range(struct stook_cursor *cursor, uint64_t max)
{
        return upwards(cursor, max, true, true);
}

STOOK_PUBLIC void *stook_cursor_next(struct stook_cursor *cursor, uint64_t max)
{
        return upwards(cursor, max, false, false);
}

STOOK_PUBLIC void *stook_cursor_next_range(struct stook_cursor *cursor, uint64_t max)
{
        return upwards(cursor, max, false, true);
}

STOOK_PUBLIC void *stook_cursor_find_rev(struct stook_cursor *cursor, uint64_t min)
{
        return downwards(cursor, min, true, false);
}

STOOK_PUBLIC void *stook_cursor_find_range_rev(struct stook_cursor *cursor, uint64_t min)
{
        return downwards(cursor, min, true, true);
}

STOOK_PUBLIC void *stook_cursor_prev(struct stook_cursor *cursor, uint64_t min)
{
        return downwards(cursor, min, false, false);
}

STOOK_PUBLIC void *stook_cursor_prev_range(struct stook_cursor *cursor, uint64_t min)
{
        return downwards(cursor, min, false, true);
}

STOOK_PUBLIC void stook_cursor_set(struct stook_cursor *cursor, uint64_t first, uint64_t last)
{
        mcursor_leave(cursor, STOOK_CURSOR_START);
        cursor->first = first;
        cursor->last = last;
}

STOOK_PUBLIC void stook_cursor_pause(struct stook_cursor *cursor)
{
        if (nowhere(cursor))
                cursor->node = NULL;
        else
                mcursor_leave(cursor, STOOK_CURSOR_PAUSE);
}

STOOK_PUBLIC void stook_cursor_reset(struct stook_cursor *cursor)
{
        mcursor_leave(cursor, STOOK_CURSOR_START);
}

STOOK_PUBLIC enum stook_cursor_status stook_cursor_status(const struct stook_cursor *cursor)
{
        return (enum stook_cursor_status)cursor->status;
}
