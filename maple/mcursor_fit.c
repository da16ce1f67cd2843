/*
 * Purpose: cursors that look for room: empty_area, its reverse, both resumed; alloc_cyclic.
 *
 * Place: on mgap.c, and alloc_cyclic on mcursor_write.c. The caller holds the lock.
 */
#include <errno.h>
#include "mcursor.h"

static int empty_area(struct stook_maple_cursor *cursor, uint64_t size, uint64_t min, uint64_t max,
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

STOOK_PUBLIC int stook_maple_cursor_empty_area(struct stook_maple_cursor *cursor, uint64_t size,
                                               uint64_t min, uint64_t max)
{
        return empty_area(cursor, size, min, max, false);
}

STOOK_PUBLIC int stook_maple_cursor_empty_area_rev(struct stook_maple_cursor *cursor, uint64_t size,
                                                   uint64_t min, uint64_t max)
{
        return empty_area(cursor, size, min, max, true);
}

/* "Place above `last`" is in no gap if there is no key above it. */
STOOK_PUBLIC int stook_maple_cursor_empty_area_next(struct stook_maple_cursor *cursor,
                                                    uint64_t size, uint64_t max)
{
        if (mcursor_nowhere(cursor))
                return empty_area(cursor, size, cursor->first, max, false);
        if (cursor->last >= max && size && mtree_gaps(cursor->tree))
                return -EBUSY;
        return empty_area(cursor, size, cursor->last + 1, max, false);
}

STOOK_PUBLIC int stook_maple_cursor_empty_area_prev(struct stook_maple_cursor *cursor,
                                                    uint64_t size, uint64_t min)
{
        if (mcursor_nowhere(cursor))
                return empty_area(cursor, size, min, cursor->first, true);
        if (cursor->first <= min && size && mtree_gaps(cursor->tree))
                return -EBUSY;
        return empty_area(cursor, size, min, cursor->first - 1, true);
}

STOOK_PUBLIC int stook_maple_cursor_alloc_cyclic(struct stook_maple_cursor *cursor, void *entry,
                                                 uint64_t lo, uint64_t hi, uint64_t *next)
{
        struct stook_maple *tree = cursor->tree;
        int wrapped, error;
        uint64_t key;

        stook_mtree_check_holder(tree);
        if (!mtree_gaps(tree) || !entry || mtree_reserved(entry) || lo > hi)
                return -EINVAL;
        wrapped = stook_mfit_cyclic(tree, lo, hi, *next, &key);
        if (wrapped < 0)
                return wrapped;
        stook_maple_cursor_set(cursor, key, key);
        error = stook_maple_cursor_store(cursor, entry);
        if (error)
                return error;
        stook_mfit_cyclic_stored(tree, key);
        *next = key + 1;
        return wrapped;
}
