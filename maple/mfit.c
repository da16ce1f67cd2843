/*
 * Purpose: stores an entry where there is room: alloc, alloc_top, alloc_cyclic.
 *
 * Place: searches (mgap.c), then stores, both under the lock.
 */
#include <errno.h>
#include "mtree.h"

static int checked(const struct stook_maple *tree, const void *entry, uint64_t size, uint64_t min,
                   uint64_t max)
{
        if (!mtree_gaps(tree) || !entry || mtree_reserved(entry) || !size || min > max)
                return -EINVAL;
        return 0;
}

static int alloc(struct stook_maple *tree, void *entry, uint64_t size, uint64_t min, uint64_t max,
                 bool top, uint64_t *start)
{
        int error = checked(tree, entry, size, min, max);
        bool entered, found;
        uint64_t first;

        if (error)
                return error;
        entered = stook_mtree_enter(tree);
        found = top ? stook_mgap_highest(tree, min, max, size, &first)
                    : stook_mgap_lowest(tree, min, max, size, &first);
        if (found)
                error = stook_maple_store(tree, first, first + (size - 1), entry);
        else
                error = -EBUSY;
        stook_mtree_leave(tree, entered);
        if (!error)
                *start = first;
        return error;
}

STOOK_PUBLIC int stook_maple_alloc(struct stook_maple *tree, void *entry, uint64_t size,
                                   uint64_t min, uint64_t max,
                                   uint64_t *start)
{
        return alloc(tree, entry, size, min, max, false, start);
}

STOOK_PUBLIC int stook_maple_alloc_top(struct stook_maple *tree, void *entry, uint64_t size,
                                       uint64_t min,
                                       uint64_t max, uint64_t *start)
{
        return alloc(tree, entry, size, min, max, true, start);
}

STOOK_PUBLIC int stook_maple_alloc_cyclic(struct stook_maple *tree, void *entry, uint64_t lo,
                                          uint64_t hi,
                                          uint64_t *next, uint64_t *start)
{
        uint64_t from = *next > lo ? *next : lo, found = 0;
        int error = checked(tree, entry, 1, lo, hi), wrapped;
        bool entered;

        if (error)
                return error;
        entered = stook_mtree_enter(tree);
        wrapped = tree->wrapped;
        if (from > hi || !stook_mgap_lowest(tree, from, hi, 1, &found)) {
                if (from > lo && stook_mgap_lowest(tree, lo, hi, 1, &found))
                        wrapped = 1;
                else
                        error = -EBUSY;
        }
        if (!error)
                error = stook_maple_store(tree, found, found, entry);
        if (!error)
                tree->wrapped = found == UINT64_MAX;
        stook_mtree_leave(tree, entered);
        if (error)
                return error;
        *start = found;
        *next = found + 1;
        return wrapped;
}
