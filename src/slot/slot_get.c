/*
 * Purpose: the miss of an allocation: one look at the slot, one ask of the barn, one exchange.
 *
 * Place: called by cache, after the hot section missed; malloc comes by way of cache. Home and
 *  slot_bulk.c call parts of it. Calls barn, which asks the slabs where it has no sheaf.
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
#include "slot/slot_trip.h"
#include "stat/counter.h"

/* Here for all misses: slot_put.c's exchanges come this way, too. */
STOOK_NOINLINE bool stook_slot_exchange_words(struct stook_front *front, uintptr_t main,
                                              uintptr_t spare, uintptr_t to_main,
                                              uintptr_t to_spare, unsigned size,
                                              uint32_t generation)
{
        const struct stook_section_ops *ops = stook_slot_ops_inlined();
        struct stook_pair seen = { .lo = main, .hi = spare };
        struct stook_pair to = { .lo = to_main, .hi = to_spare };

        if (STOOK_INJECT_EVERY(exchange_fail) || STOOK_INJECT_EVERY(abort_storm))
                return false;
        if (STOOK_LIKELY(ops == &stook_section_rseq))
                return stook_section_exchange(stook_front_line(front), seen, to, size,
                                              &front->config, generation);
        return ops->exchange(front->offset, seen, to, size, &front->config, generation);
}

static STOOK_NOINLINE void *pop(struct stook_front *front)
{
        if (STOOK_INJECT_EVERY(miss_pop) || STOOK_INJECT_EVERY(abort_storm))
                return NULL;
        return stook_slot_ops_inlined()->pop(front->offset);
}

/*
 * A sheaf with objects. A refill brings what the slot's refills brought before (barn.h, `brought`),
 * so it may be less than full. @first: the slot has no main of this cache.
 */
STOOK_INLINE struct stook_sheaf *get_full(struct stook_front *front, struct stook_slot_head *own,
                                          bool below, bool first)
{
        unsigned from = STOOK_INJECT_EVERY(get_fail) ? 0 : STOOK_FROM_BARN;

        if (below && !STOOK_INJECT_EVERY(refill_fail))
                from |= first ? STOOK_FROM_BELOW | STOOK_FROM_SMALL : STOOK_FROM_BELOW;
        return stook_barn_get_full(front->barns, stook_slot_node(), from,
                                   &stook_slot_line(own, front)->brought);
}

/* The slot is worth another look. */
#define AGAIN ((void *)1)

/* A hint: another thread may have the slot meanwhile. */
STOOK_INLINE bool is_marked(const struct stook_sheaf *main)
{
        return stook_word_is_marked(__atomic_load_n(&main->word, __ATOMIC_RELAXED));
}

/* What is wanted: no object; one, and how if it is a sample. */
enum wanted { NONE, AS_CELL, IN_PLACE };

/*
 * One turn of the descent. Return: an object, AGAIN, STOOK_SLOT_SAMPLE; NULL: barn and, with
 * @below, slabs have no sheaf of objects. @how NONE: AGAIN is the best answer.
 */
STOOK_INLINE void *step(struct stook_front *front, uint32_t generation, bool below,
                        enum wanted how)
{
        struct stook_view v = stook_slot_look(front);
        struct stook_sheaf *full;
        struct stook_placing to;
        void *object = NULL;

        if (v.size || (v.spare && stook_sheaf_size(v.spare))) {
                if (STOOK_UNLIKELY(how && v.size && is_marked(v.main)) &&
                    stook_slot_trip(front, how == IN_PLACE) == STOOK_TRIP_SAMPLE) {
                        if (how == AS_CELL)
                                return STOOK_SLOT_SAMPLE;
                        stook_sample_duties.in_place(front);
                }
                if ((v.size || stook_slot_swap(front, &v, generation)) && how)
                        object = pop(front);
                return object ? object : AGAIN;
        }
        if (STOOK_UNLIKELY(!v.own))
                return NULL;
        stook_slot_tick(v.own, front->barns);
        full = get_full(front, v.own, below, !stook_view_main(&v));
        if (STOOK_UNLIKELY(!full))
                return NULL;
        stook_sheaf_fetch_top(full);
        stook_sheaf_arm(front, full);
        STOOK_INJECT_CALL(landing, front);
        /* Later a push may store there. A marked sheaf is installed as it is. */
        if (STOOK_LIKELY(how && !stook_word_is_marked(full->word))) {
                object = full->objects[stook_sheaf_size(full) - 1];
                stook_sheaf_add(full, STOOK_SHEAF_POP);
        }
        to = stook_placing_full(&v, full);
        if (STOOK_UNLIKELY(!stook_slot_exchange(front, &v, to, generation))) {
                if (object)
                        stook_sheaf_add(full, -STOOK_SHEAF_POP);
                to.leaves = full;
                object = NULL;
        }
        if (to.leaves)
                stook_slot_dispose(front, -1, to.leaves);
        return object ? object : AGAIN;
}

static STOOK_NOINLINE void *from_slabs(struct stook_front *front)
{
        void *object = stook_barn_get_object(front->barns, stook_slot_node());

        if (STOOK_LIKELY(object != NULL))
                stook_slot_sample_from_slabs(front, 1);
        return object;
}

void *stook_slot_get_any(struct stook_front *front, bool in_place)
{
        uint32_t generation = stook_slot_generation(front);
        void *object = AGAIN;

        stook_stats_page_tick();
        if (STOOK_UNLIKELY(!stook_barns_capacity(front->barns)) || STOOK_UNLIKELY(generation & 1))
                object = NULL;
        for (unsigned tries = 0; object == AGAIN && tries < STOOK_SLOT_TRIES; tries++)
                object = step(front, generation, true, in_place ? IN_PLACE : AS_CELL);
        return STOOK_LIKELY(object && object != AGAIN) ? object : from_slabs(front);
}

void *stook_slot_get(struct stook_front *front, bool in_place)
{
        return STOOK_UNLIKELY(stook_slots_strict) ? stook_home_duties.get_by_policy(front)
                                                  : stook_slot_get_any(front, in_place);
}

bool stook_slot_bring_objects(struct stook_front *front)
{
        uint32_t generation = stook_slot_generation(front);

        return !(generation & 1) && step(front, generation, false, NONE);
}
