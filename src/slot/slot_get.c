/*
 * Purpose: the miss of an allocation: one look at the slot, one ask of the barn, one exchange.
 *
 * Place: called by cache and malloc, after the hot section missed, and by slot_bulk.c and
 *  slot_node.c. Calls barn, which asks the slabs where it has no sheaf.
 *
 * slot_pair.h has the table. Where the exchange fails, the sheaf in hand goes back as it was got,
 * and the slot is looked at again.
 *
 * Invariants:
 *  I1 at most STOOK_SLOT_TRIES looks; then one object comes from the slabs. A signal may come in
 *     each, so that no section ever ends.
 * Concurrency: slot_pair.h.
 * Failure: NULL when the slabs have none; nothing changed.
 */
#include "slot/slot_pair.h"
#include "stat/stats_page_tick.h"

STOOK_NOINLINE bool stook_slot_swap(struct stook_front *front, struct stook_slot_head *own,
                                    const struct stook_view *v, uint32_t generation)
{
        struct stook_sheaf *main = stook_view_main(v);
        bool outgrown = main && stook_sheaf_capacity(main) < stook_barns_capacity(front->below);

        if (!stook_slot_exchange(front, own, v, stook_pair_of(v->spare, outgrown ? NULL : main),
                                 generation))
                return false;
        if (outgrown)
                stook_slot_dispose(front, -1, main);
        return true;
}

STOOK_INLINE void *pop(struct stook_front *front, struct stook_slot_head *own)
{
        if (STOOK_INJECT_EVERY(miss_pop) || STOOK_INJECT_EVERY(abort_storm))
                return NULL;
        return own ? stook_section_pop(stook_front_line(front))
                   : stook_slot_ops_inlined()->pop(front->offset);
}

/*
 * A sheaf with objects. A refill of the slabs brings what the slot's refills brought before
 * (barn.h, `brought`), so it may be less than full. @first: the slot has no main of this cache.
 */
STOOK_INLINE struct stook_sheaf *get_full(struct stook_front *front, struct stook_slot_head *own,
                                          unsigned node, bool below, bool first)
{
        struct stook_sheaf *full = STOOK_INJECT_EVERY(get_fail)
                ? NULL : stook_stacks_ask_full(front->below, node);
        unsigned from = first ? STOOK_FROM_BELOW | STOOK_FROM_SMALL : STOOK_FROM_BELOW;

        if (STOOK_LIKELY(full != NULL)) {
                stook_barns_swung(front->below);
                return full;
        }
        if (!below || STOOK_INJECT_EVERY(refill_fail))
                return NULL;
        if (!own)
                own = stook_slot_ops_inlined()->own();
        return stook_barn_get_full(front->below, node, from,
                                   own ? &stook_slot_line(own, front)->brought : NULL);
}

enum step { NONE, AGAIN, DONE };

/*
 * One turn of the descent. DONE: *@one is the caller's. NONE: barn and, with @below, slabs have no
 * sheaf of objects. @one NULL: no object is wanted, and AGAIN is the best answer.
 */
STOOK_INLINE enum step step(struct stook_front *front, struct stook_slot_head *own,
                            uint32_t generation, bool below, void **one)
{
        struct stook_view v = stook_slot_look(front, own);
        unsigned node = stook_slot_node();
        struct stook_sheaf *full, *left;
        struct stook_pair to;
        uint64_t whole;

        if (v.size || (v.spare && stook_sheaf_size(v.spare))) {
                if (!v.size && !stook_slot_swap(front, own, &v, generation))
                        return AGAIN;
                return one && (*one = pop(front, own)) ? DONE : AGAIN;
        }
        stook_slot_reap_before_barn(own);
        full = get_full(front, own, node, below, !stook_view_main(&v));
        if (STOOK_UNLIKELY(!full))
                return NONE;
        stook_sheaf_fetch_top(full);
        STOOK_INJECT_CALL(landing, front);
        whole = full->word;
        if (one) {                              /* later a push may store there */
                *one = full->objects[(whole & 0xffff) - 1];
                __atomic_store_n(&full->word, whole + STOOK_SHEAF_POP, __ATOMIC_RELAXED);
        }
        left = stook_place_full(&v, full, &to);
        if (STOOK_LIKELY(stook_slot_exchange(front, own, &v, to, generation))) {
                stook_slot_leave(front, node, left);
                return one ? DONE : AGAIN;
        }
        __atomic_store_n(&full->word, whole, __ATOMIC_RELAXED);
        stook_slot_dispose(front, -1, full);
        return AGAIN;
}

STOOK_INLINE void *get(struct stook_front *front, struct stook_slot_head *own)
{
        uint32_t generation = stook_slot_generation(front);
        enum step answer = AGAIN;
        void *object;

        stook_stats_page_tick();
        if (STOOK_UNLIKELY(!stook_barns_capacity(front->below)) || STOOK_UNLIKELY(generation & 1))
                answer = NONE;
        for (unsigned tries = 0; answer == AGAIN && tries < STOOK_SLOT_TRIES; tries++)
                if ((answer = step(front, own, generation, true, &object)) == DONE)
                        return object;
        return stook_barn_get_object(front->below, stook_slot_node());
}

static STOOK_NOINLINE void *get_anyhow(struct stook_front *front)
{
        return get(front, NULL);
}

void *stook_slot_get_any(struct stook_front *front)
{
        struct stook_slot_head *own = stook_slot_at_hand();

        return STOOK_LIKELY(own != NULL) ? get(front, own) : get_anyhow(front);
}

/* Where the task's policy is asked for each object, no thread is enrolled. */
void *stook_slot_get(struct stook_front *front)
{
        struct stook_slot_head *own = stook_slot_at_hand();

        if (STOOK_LIKELY(own != NULL))
                return get(front, own);
        return STOOK_UNLIKELY(stook_slots_strict) ? stook_slot_get_by_policy(front)
                                                  : get_anyhow(front);
}

bool stook_slot_bring_objects(struct stook_front *front)
{
        uint32_t generation = stook_slot_generation(front);

        return !(generation & 1) &&
               step(front, stook_slot_at_hand(), generation, false, NULL) != NONE;
}
