/*
 * Purpose: the simple calls that look for an entry and its range, the next entry, the previous one.
 *
 * Place: on walks from the root (mplace.c). A step within a leaf needs no walk. Two gaps never
 * meet, so a call that meets no placeholders makes two walks at most.
 * Concurrency: readers of RCU trees come here in a read section. The walks leave out no key, and
 *  see each key as it is at some moment of the call. So they find a range that is there all the
 *  time.
 */
#include "mtree.h"

/*
 * The range above a place: the next one of the leaf, or that of a new walk. The leaf may have been
 * replaced since the walk found it. Then its entries are as they were when it was replaced, within
 * this call.
 */
static inline void up(struct stook_maple *tree, struct mplace *place)
{
        if (place->leaf && place->last < place->max)
                mplace_read(place, place->index + 1);
        else
                stook_mplace_seek(tree, place->last + 1, place);
}

static inline void down(struct stook_maple *tree, struct mplace *place)
{
        if (place->leaf && place->index)
                mplace_read(place, place->index - 1);
        else
                stook_mplace_seek(tree, place->first - 1, place);
}

/* From a range on: the first entry that begins at or before @max. False: none. */
static inline bool upwards(struct stook_maple *tree, uint64_t max, struct mplace *place)
{
        while (!mtree_seen(place->entry)) {
                if (place->last >= max)
                        return false;
                up(tree, place);
        }
        return true;
}

static inline bool downwards(struct stook_maple *tree, uint64_t min, struct mplace *place)
{
        while (!mtree_seen(place->entry)) {
                if (place->first <= min)
                        return false;
                down(tree, place);
        }
        return true;
}

STOOK_PUBLIC void *stook_maple_load_range(struct stook_maple *tree, uint64_t key, uint64_t *first,
                                          uint64_t *last)
{
        bool entered = stook_mtree_enter_reader(tree);
        struct mplace place;

        stook_mplace_seek(tree, key, &place);
        stook_mtree_leave(tree, entered);
        *first = place.first;
        *last = place.last;
        return mtree_seen(place.entry) ? place.entry : NULL;
}

/* Where a gap ends, an entry or the key space does (I3 of mnode.h). */
STOOK_PUBLIC bool stook_maple_overlaps(struct stook_maple *tree, uint64_t first, uint64_t last)
{
        struct mplace place;
        bool entered;

        if (last < first)
                return false;
        entered = stook_mtree_enter_reader(tree);
        stook_mplace_seek(tree, first, &place);
        stook_mtree_leave(tree, entered);
        return place.entry || place.last < last;
}

STOOK_PUBLIC void *stook_maple_find(struct stook_maple *tree, uint64_t *key, uint64_t max)
{
        bool entered, found;
        struct mplace place;

        if (*key > max)
                return NULL;
        entered = stook_mtree_enter_reader(tree);
        stook_mplace_seek(tree, *key, &place);
        found = upwards(tree, max, &place);
        stook_mtree_leave(tree, entered);
        if (!found)
                return NULL;
        *key = place.last + 1;
        return place.entry;
}

STOOK_PUBLIC void *stook_maple_find_after(struct stook_maple *tree, uint64_t *key, uint64_t max)
{
        return *key ? stook_maple_find(tree, key, max) : NULL;
}

STOOK_PUBLIC void *stook_maple_next(struct stook_maple *tree, uint64_t key, uint64_t max)
{
        bool entered = stook_mtree_enter_reader(tree);
        struct mplace place;
        bool found;

        stook_mplace_seek(tree, key, &place);
        found = place.last < max;
        if (found) {
                up(tree, &place);
                found = upwards(tree, max, &place);
        }
        stook_mtree_leave(tree, entered);
        return found ? place.entry : NULL;
}

STOOK_PUBLIC void *stook_maple_prev(struct stook_maple *tree, uint64_t key, uint64_t min)
{
        bool entered = stook_mtree_enter_reader(tree);
        struct mplace place;
        bool found;

        stook_mplace_seek(tree, key, &place);
        found = place.first > min;
        if (found) {
                down(tree, &place);
                found = downwards(tree, min, &place);
        }
        stook_mtree_leave(tree, entered);
        return found ? place.entry : NULL;
}
