/*
 * Purpose: the simple calls that look for the next or the previous entry.
 *
 * Place: on walks from the root (mplace.c). There is at most one walk for each leaf that is passed.
 * Two gaps never meet, so a call makes two walks at most.
 * Concurrency: readers of RCU trees come here in a read section. The walks leave out no key, and
 *  see each key as it is at some moment of the call. So they find a range that is there all the
 *  time.
 */
#include "mtree.h"

/* The first entry at or after @key that begins at or before @max. */
static bool upwards(struct stook_maple *tree, uint64_t key, uint64_t max, struct mplace *place)
{
        stook_mplace_seek(tree, key, place);
        while (!place->entry) {
                if (place->last >= max)
                        return false;
                stook_mplace_seek(tree, place->last + 1, place);
        }
        return true;
}

static bool downwards(struct stook_maple *tree, uint64_t key, uint64_t min, struct mplace *place)
{
        stook_mplace_seek(tree, key, place);
        while (!place->entry) {
                if (place->first <= min)
                        return false;
                stook_mplace_seek(tree, place->first - 1, place);
        }
        return true;
}

STOOK_PUBLIC void *stook_maple_find(struct stook_maple *tree, uint64_t *key, uint64_t max)
{
        bool entered, found;
        struct mplace place;

        if (*key > max)
                return NULL;
        entered = stook_mtree_enter_reader(tree);
        found = upwards(tree, *key, max, &place);
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
        found = place.last < max && upwards(tree, place.last + 1, max, &place);
        stook_mtree_leave(tree, entered);
        return found ? place.entry : NULL;
}

STOOK_PUBLIC void *stook_maple_prev(struct stook_maple *tree, uint64_t key, uint64_t min)
{
        bool entered = stook_mtree_enter_reader(tree);
        struct mplace place;
        bool found;

        stook_mplace_seek(tree, key, &place);
        found = place.first > min && downwards(tree, place.first - 1, min, &place);
        stook_mtree_leave(tree, entered);
        return found ? place.entry : NULL;
}
