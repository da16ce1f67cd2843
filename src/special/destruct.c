/*
 * Purpose: destructors. The constructed objects of empty slabs are destructed, so that these slabs
 * may go back to the pages.
 * Place: called by slab's shrink by way of struct stook_slabs_special, so by shrink, trim and
 *  destroy of a cache; never by a free.
 *
 * A thread takes all objects of an empty slab, runs the destructors, and frees the objects again.
 * Meanwhile the objects are this thread's. So no lock is held while the program's code runs, and no
 * other thread constructs the objects. A slab that was looked at goes to the list's tail, so each
 * slab is looked at once.
 *
 * Invariants:
 *  E1 The mark of a constructed object is cleared before its destructor runs. So the destructor
 *     runs once, also if it is left by a jump. After a jump the slab's objects stay out, and a
 *     destroy of the cache fails.
 *  E2 A slab with such a mark is not released. The marks are looked at under the lock, after the
 *     slab was seen to be empty. That is enough: a thread that constructs an object has taken its
 *     bit, and sets the mark before the bit is set again.
 * Concurrency: takes the lock of each node; not for handlers. In the child of a fork the objects
 *  that a vanished thread was destructing are lost, as those of a fill are.
 * Failure: none.
 */
#include "base/thread.h"
#include "os/os.h"
#include "slab/slab_inside.h"
#include "special/special.h"

static bool is_empty(struct stook_slab *slab)
{
        return stook_slab_empty_but_claim(slab, STOOK_SLAB_PARTS);
}

static bool has_made(const struct stook_slab *slab)
{
        for (unsigned p = 0; p < slab->part_count; p++)
                if (__atomic_load_n(&stook_slab_made(slab)[p], __ATOMIC_RELAXED))
                        return true;
        return false;
}

bool stook_special_may_go(struct stook_slab *slab)
{
        return is_empty(slab) && !has_made(slab);                               /* E2 */
}

/* Held: the next slab with something to destruct. All of its objects are the caller's then. */
static struct stook_slab *take_next(struct stook_slab_hold *hold, uint32_t *looks)
{
        while (*looks && !stook_list_empty(&hold->node->list)) {
                struct stook_slab *slab = stook_slab_turn(hold);

                --*looks;
                if (!is_empty(slab) || !has_made(slab))
                        continue;
                for (unsigned p = 0; p < slab->part_count; p++)
                        stook_part_take_exactly(slab, p, stook_part_objects(slab, p));
                stook_slab_remove(hold, slab, ~UINT64_C(0));
                return slab;
        }
        return NULL;
}

static void destruct(struct stook_slab *slab)
{
        const struct stook_slabs *slabs = slab->slabs;

        for (unsigned p = 0; p < slab->part_count; p++) {
                uint64_t *made = &stook_slab_made(slab)[p];
                uint64_t left = __atomic_load_n(made, __ATOMIC_RELAXED);

                for (; left; left &= left - 1) {
                        unsigned bit = (unsigned)__builtin_ctzll(left);

                        __atomic_fetch_and(made, ~(left & -left), __ATOMIC_RELAXED);    /* E1 */
                        slabs->dtor(stook_slab_object(slab, slabs->stride, p, bit),
                                    slabs->ctor_data);
                }
        }
}

/* All objects of the slab are free again. */
static void put_back(struct stook_slabs *slabs, struct stook_slab *slab)
{
        uint64_t claims = 0;

        stook_lock_forbid_waits();                                      /* slab_partial.c P4 */
        /* After the last free the slab may be gone: nothing of it is read then (S2). */
        for (unsigned p = 0, parts = slab->part_count; p < parts; p++) {
                uint64_t mask = stook_part_objects(slab, p);
                unsigned first = (unsigned)__builtin_ctzll(mask);

                if (stook_part_free(slabs, slab, p, &mask,
                                    stook_slab_object(slab, slabs->stride, p, first)) ==
                    STOOK_FREED_CLAIMED)
                        claims |= UINT64_C(1) << p;
        }
        if (claims)
                stook_slab_settle_parts(slabs, slab, claims, false);
        stook_lock_allow_waits();
}

/* At most @most slabs. */
static void destruct_list(struct stook_slabs *slabs, struct stook_slabs_node *node, uint32_t most)
{
        uint32_t looks = UINT32_MAX;

        for (; most; most--) {
                struct stook_slab_hold hold;
                struct stook_slab *slab;

                if (!stook_slab_hold_long(&hold, slabs, node))
                        break;
                if (looks > node->partial)
                        looks = node->partial;
                slab = take_next(&hold, &looks);
                stook_slab_unhold(&hold);
                if (!slab)
                        break;
                destruct(slab);
                put_back(slabs, slab);
        }
}

void stook_special_destruct_empty(struct stook_slabs *slabs)
{
        for (unsigned i = 0; i < stook_os_node_count(); i++) {
                struct stook_slabs_node *node = &slabs->node[i];

                destruct_list(slabs, node, stook_slabs_beyond_reserved(slabs, node));
        }
}
