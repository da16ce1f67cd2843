/*
 * Purpose: the simple calls that look for room: empty_area and its reverse; and that store an entry
 * there: alloc, alloc_top, alloc_cyclic.
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

/* The lock is held. */
static int place_for(struct stook_maple *tree, uint64_t size, uint64_t min, uint64_t max,
                     bool top, uint64_t *first)
{
        return (top ? stook_mgap_highest : stook_mgap_lowest)(tree, min, max, size, first) ?
               0 : -EBUSY;
}

static int empty_area(struct stook_maple *tree, uint64_t size, uint64_t min, uint64_t max,
                      bool top, uint64_t *start)
{
        bool entered;
        int error;

        if (!mtree_gaps(tree) || !size || min > max)
                return -EINVAL;
        entered = stook_mtree_enter(tree);
        stook_mtree_check_holder(tree);
        error = place_for(tree, size, min, max, top, start);
        stook_mtree_leave(tree, entered);
        return error;
}

STOOK_PUBLIC int stook_maple_empty_area(struct stook_maple *tree, uint64_t size, uint64_t min,
                                        uint64_t max, uint64_t *start)
{
        return empty_area(tree, size, min, max, false, start);
}

STOOK_PUBLIC int stook_maple_empty_area_rev(struct stook_maple *tree, uint64_t size, uint64_t min,
                                            uint64_t max, uint64_t *start)
{
        return empty_area(tree, size, min, max, true, start);
}

static int alloc(struct stook_maple *tree, void *entry, uint64_t size, uint64_t min, uint64_t max,
                 bool top, uint64_t *start)
{
        int error = checked(tree, entry, size, min, max);
        uint64_t first;
        bool entered;

        if (error)
                return error;
        entered = stook_mtree_enter(tree);
        error = place_for(tree, size, min, max, top, &first);
        if (!error)
                error = stook_maple_store(tree, first, first + (size - 1), entry);
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

int stook_mfit_cyclic(struct stook_maple *tree, uint64_t lo, uint64_t hi, uint64_t next,
                      uint64_t *key)
{
        uint64_t from = next > lo ? next : lo;

        if (from <= hi && stook_mgap_lowest(tree, from, hi, 1, key))
                return (int)tree->wrapped;
        return from > lo && stook_mgap_lowest(tree, lo, hi, 1, key) ? 1 : -EBUSY;
}

void stook_mfit_cyclic_stored(struct stook_maple *tree, uint64_t key)
{
        tree->wrapped = key == UINT64_MAX;
}

STOOK_PUBLIC int stook_maple_alloc_cyclic(struct stook_maple *tree, void *entry, uint64_t lo,
                                          uint64_t hi, uint64_t *next, uint64_t *start)
{
        int error = checked(tree, entry, 1, lo, hi), wrapped;
        uint64_t found = 0;
        bool entered;

        if (error)
                return error;
        entered = stook_mtree_enter(tree);
        wrapped = stook_mfit_cyclic(tree, lo, hi, *next, &found);
        error = wrapped < 0 ? wrapped : stook_maple_store(tree, found, found, entry);
        if (!error)
                stook_mfit_cyclic_stored(tree, found);
        stook_mtree_leave(tree, entered);
        if (error)
                return error;
        *start = found;
        *next = found + 1;
        return wrapped;
}
