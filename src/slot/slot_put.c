/*
 * Purpose: the miss of a free: one look at the slot, one ask of the barn, one exchange. The mirror
 * image of slot_get.c.
 *
 * Place: called by cache, after the hot section missed; malloc comes by way of cache. Slot_bulk.c
 *  calls a part of it. Calls barn.
 *
 * Invariants:
 *  I1 at most STOOK_SLOT_TRIES looks; then the object goes to its slab.
 * Concurrency: slot_pair.h.
 * Failure: none. A double free that is noticed is reported.
 */
#include "slot/slot_pair.h"
#include "slot/slot_trip.h"
#include "stat/counter.h"

static STOOK_NOINLINE enum stook_push push(struct stook_front *front, void *object)
{
        if (STOOK_INJECT_EVERY(miss_push) || STOOK_INJECT_EVERY(abort_storm))
                return STOOK_PUSH_MISS;
        return stook_slot_ops_inlined()->push(front->offset, object);
}

/*
 * A full main refuses before it compares. An object that is its top was freed before: taken off
 * again, it is free once, not twice.
 */
STOOK_INLINE bool was_freed(struct stook_front *front, void *object)
{
        const struct stook_section_ops *ops = stook_slot_ops_inlined();

        return STOOK_UNLIKELY(ops->peek(front->offset) == object) &&
               ops->pop_if(front->offset, object);
}

/*
 * Main and the spare have no room: an empty sheaf becomes main, with @object_or_null in it. @terms:
 * STOOK_FROM_IF_ROOM, or 0. False: there is none to be had. *@done: it is on the slot.
 */
STOOK_INLINE bool replace(struct stook_front *front, const struct stook_view *v,
                          uint32_t generation, unsigned terms, void *object_or_null, bool *done)
{
        struct stook_sheaf *empty;
        struct stook_placing to;

        *done = false;
        if (STOOK_UNLIKELY(!v->own))
                return false;
        stook_slot_tick(v->own, front->barns);
        empty = STOOK_INJECT_EVERY(get_fail)
                ? NULL : stook_barn_get_empty(front->barns, stook_slot_node(),
                                              STOOK_FROM_ANY | terms);
        if (STOOK_UNLIKELY(!empty))
                return false;
        stook_sheaf_fetch_bottom(empty);
        stook_sheaf_arm(front, empty);
        STOOK_INJECT_CALL(landing, front);
        if (object_or_null) {
                empty->objects[stook_sheaf_size(empty)] = object_or_null;
                stook_sheaf_add(empty, 1);
        }
        to = stook_placing_empty(v, empty);
        *done = stook_slot_exchange(front, v, to, generation);
        if (STOOK_UNLIKELY(!*done)) {
                if (object_or_null)
                        stook_sheaf_add(empty, -1);
                to.leaves = empty;
        }
        if (to.leaves)
                stook_slot_dispose(front, -1, to.leaves);
        return true;
}

void stook_slot_put(struct stook_front *front, void *object,
                    void (*on_double)(struct stook_front *, void *))
{
        uint32_t generation = stook_slot_generation(front);
        unsigned tries = STOOK_SLOT_TRIES;
        enum stook_push answer;
        bool done;

        stook_stats_page_tick();
        if (STOOK_UNLIKELY(!stook_barns_capacity(front->barns)) || STOOK_UNLIKELY(generation & 1))
                tries = 0;
        while (tries--) {
                struct stook_view v = stook_slot_look(front);

                if (stook_view_is_full(&v)) {
                        if (STOOK_UNLIKELY(was_freed(front, object))) {
                                on_double(front, object);
                                continue;
                        }
                        if (!v.spare || stook_sheaf_full(v.spare)) {
                                if (!replace(front, &v, generation, 0, object, &done))
                                        break;
                                if (STOOK_LIKELY(done))
                                        return;
                                continue;
                        }
                        if (!stook_slot_swap(front, &v, generation))
                                continue;
                }
                answer = push(front, object);
                if (STOOK_LIKELY(answer == STOOK_PUSH_DONE))
                        return;
                if (answer == STOOK_PUSH_DOUBLE) {
                        on_double(front, object);
                        return;
                }
        }
        stook_barn_put_object(front->barns, object);
}

bool stook_slot_bring_room(struct stook_front *front)
{
        uint32_t generation = stook_slot_generation(front);
        struct stook_view v = stook_slot_look(front);
        bool done, slot_keeps_it = !stook_view_main(&v) || !v.spare;

        if (generation & 1)
                return false;
        if (!stook_view_is_full(&v))
                return true;
        if (v.spare && !stook_sheaf_full(v.spare)) {
                stook_slot_swap(front, &v, generation);
                return true;
        }
        return replace(front, &v, generation, slot_keeps_it ? 0 : STOOK_FROM_IF_ROOM, NULL,
                       &done);
}
