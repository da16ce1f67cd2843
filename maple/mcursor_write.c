/*
 * Purpose: cursors that change: store, preallocate, erase, empty_area.
 *
 * Place: on mwrite.h and mgap.c. The caller holds the lock.
 * The cursor's reserve of nodes lies in its own fields. What a write leaves of it is given back.
 */
#include <errno.h>
#include <stddef.h>
#include "mcursor.h"
#include "mwrite.h"

/*
 * The reserve is used where it lies. A copy of it as a whole would have to wait for two words that
 * were just stored.
 */
#define CURSOR_AT(field)  offsetof(struct stook_maple_cursor, field)
#define RESERVE_AT(field) offsetof(struct mreserve, field)
_Static_assert(CURSOR_AT(spare_node) - CURSOR_AT(sheaf) == RESERVE_AT(one) - RESERVE_AT(sheaf) &&
               !RESERVE_AT(sheaf), "two fields of a cursor are a struct mreserve");

static struct mreserve *reserve_of(struct stook_maple_cursor *cursor)
{
        return (struct mreserve *)&cursor->sheaf;
}

/*
 * After a write: [first, last] is what was written. The next call that needs its leaf walks down.
 */
static int written(struct stook_maple_cursor *cursor, int error)
{
        stook_maple_cursor_finish(cursor);
        mcursor_leave(cursor, error ? STOOK_MAPLE_CURSOR_ERROR : STOOK_MAPLE_CURSOR_ACTIVE);
        return error;
}

STOOK_PUBLIC int stook_maple_cursor_store(struct stook_maple_cursor *cursor, void *entry)
{
        struct mwrite write;
        int error = stook_mwrite_prepare(&write, cursor->tree, cursor->first, cursor->last, entry,
                                         MWRITE_STORE);

        if (!error && write.nodes)
                error = stook_mreserve_fill(reserve_of(cursor), write.nodes);
        if (!error)
                stook_mwrite_commit(&write, reserve_of(cursor));
        return written(cursor, error);
}

STOOK_PUBLIC int stook_maple_cursor_preallocate(struct stook_maple_cursor *cursor, void *entry)
{
        struct mwrite write;
        int error = stook_mwrite_prepare(&write, cursor->tree, cursor->first, cursor->last, entry,
                                         MWRITE_STORE);

        if (!error)
                error = stook_mreserve_fill(reserve_of(cursor), write.nodes);
        if (error)
                mcursor_leave(cursor, STOOK_MAPLE_CURSOR_ERROR);
        else
                cursor->needed = (unsigned char)write.nodes;
        return error;
}

STOOK_PUBLIC int stook_maple_cursor_store_prealloc(struct stook_maple_cursor *cursor, void *entry)
{
        struct mwrite write;
        int error = stook_mwrite_prepare(&write, cursor->tree, cursor->first, cursor->last, entry,
                                         MWRITE_STORE);

        if (!error && write.nodes > stook_mreserve_left(reserve_of(cursor)))
                error = -ENOMEM;
        if (!error)
                stook_mwrite_commit(&write, reserve_of(cursor));
        return written(cursor, error);
}

STOOK_PUBLIC unsigned stook_maple_cursor_preallocated(const struct stook_maple_cursor *cursor)
{
        return cursor->needed;
}

STOOK_PUBLIC void stook_maple_cursor_finish(struct stook_maple_cursor *cursor)
{
        if (cursor->spare_node || cursor->sheaf)
                stook_mreserve_return(reserve_of(cursor));
        cursor->needed = 0;
}

STOOK_PUBLIC void *stook_maple_cursor_erase(struct stook_maple_cursor *cursor)
{
        void *entry = stook_maple_cursor_walk(cursor);
        int error;

        if (!entry)
                return NULL;
        error = stook_maple_cursor_store(cursor, NULL);
        if (!error)
                return entry;
        errno = -error;
        return NULL;
}

static int empty_area(struct stook_maple_cursor *cursor, uint64_t min, uint64_t max, uint64_t size,
                      bool highest)
{
        struct stook_maple *tree = cursor->tree;
        uint64_t first;
        bool found;

        stook_mtree_check_holder(tree);
        if (!mtree_gaps(tree) || !size || min > max)
                return -EINVAL;
        found = highest ? stook_mgap_highest(tree, min, max, size, &first)
                        : stook_mgap_lowest(tree, min, max, size, &first);
        if (!found)
                return -EBUSY;
        mcursor_leave(cursor, STOOK_MAPLE_CURSOR_ACTIVE);
        cursor->first = first;
        cursor->last = first + (size - 1);
        return 0;
}

STOOK_PUBLIC int stook_maple_cursor_empty_area(struct stook_maple_cursor *cursor, uint64_t min,
                                               uint64_t max, uint64_t size)
{
        return empty_area(cursor, min, max, size, false);
}

STOOK_PUBLIC int stook_maple_cursor_empty_area_rev(struct stook_maple_cursor *cursor, uint64_t min,
                                                   uint64_t max, uint64_t size)
{
        return empty_area(cursor, min, max, size, true);
}
