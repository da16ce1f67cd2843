/*
 * Purpose: cursors that change: store, replace, preallocate, expect, erase.
 *
 * Place: on mwrite.h. The caller holds the lock.
 * The cursor's reserve of nodes lies in its own fields. What a write leaves of it is given back,
 * except what is expected to be needed.
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
               CURSOR_AT(expected) - CURSOR_AT(sheaf) == RESERVE_AT(list) - RESERVE_AT(sheaf) &&
               CURSOR_AT(expected_left) - CURSOR_AT(sheaf) ==
               RESERVE_AT(listed) - RESERVE_AT(sheaf) && !RESERVE_AT(sheaf),
               "four fields of a cursor are a struct mreserve");

static struct mreserve *reserve_of(struct stook_maple_cursor *cursor)
{
        return (struct mreserve *)&cursor->sheaf;
}

static void give_back(struct stook_maple_cursor *cursor)
{
        if (cursor->spare_node || cursor->sheaf)
                stook_mreserve_return(reserve_of(cursor));
        cursor->needed = 0;
}

/*
 * After a write: [first, last] is what was written. The next call that needs its leaf walks down.
 */
static int written(struct stook_maple_cursor *cursor, int error)
{
        give_back(cursor);
        mcursor_leave(cursor, error ? STOOK_MAPLE_CURSOR_ERROR : STOOK_MAPLE_CURSOR_ACTIVE);
        return error;
}

static inline int store(struct stook_maple_cursor *cursor, void *entry, void **old)
{
        struct mwrite write;
        int error = stook_mwrite_prepare(&write, cursor->tree, cursor->first, cursor->last, entry,
                                         MWRITE_STORE);

        if (!error && write.nodes)
                error = stook_mreserve_fill(reserve_of(cursor), write.nodes);
        if (!error)
                stook_mwrite_commit(&write, reserve_of(cursor));
        if (!error && old)
                *old = write.old;
        return written(cursor, error);
}

STOOK_PUBLIC int stook_maple_cursor_store(struct stook_maple_cursor *cursor, void *entry)
{
        return store(cursor, entry, NULL);
}

STOOK_PUBLIC int stook_maple_cursor_replace(struct stook_maple_cursor *cursor, void *entry,
                                            void **old)
{
        return store(cursor, entry, old);
}

/*
 * Each of @n stores adds a gap and an entry at most, at the upper end of the last leaf. A leaf that
 * overflows is cut: 17 or 18 entries become 11 or 12, and 6 (first_cut() in mwrite_run.c). When the
 * last leaf overflows again, it shares with that neighbour, which is full then. Only the overflow
 * after that is a cut. The two leaves then have 33 entries or more, 15 more than after the first
 * cut. A cut adds one entry to the level above, where the same holds; with gaps 11 entries become 7
 * and 4, and the next cut comes 10 entries later. On each level the first cut may come at once.
 */
static uint64_t nodes_for(const struct stook_maple *tree, uint64_t n)
{
        unsigned height = stook_maple_height(tree);
        uint64_t added = 2 * n + 1, nodes = 1;  /* the first leaf */

        for (unsigned level = 0; level < height || added > 1; level++) {
                added = added / (level && mtree_gaps(tree) ? 10 : 15) + 1;
                nodes += added;
        }
        return nodes + 1;                       /* a new root */
}

STOOK_PUBLIC int stook_maple_cursor_expect(struct stook_maple_cursor *cursor, uint64_t n)
{
        if (n > UINT64_C(1) << 30 || mtree_rcu(cursor->tree))
                return -EINVAL;
        return stook_mreserve_list(reserve_of(cursor), nodes_for(cursor->tree, n));
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
        give_back(cursor);
        stook_mreserve_unlist(reserve_of(cursor), 0);
}

STOOK_PUBLIC int stook_maple_cursor_erase(struct stook_maple_cursor *cursor, void **old)
{
        void *entry = stook_maple_cursor_walk(cursor);
        int error = entry ? stook_maple_cursor_store(cursor, NULL) : -ENOENT;

        if (!error && old)
                *old = entry;
        return error;
}
