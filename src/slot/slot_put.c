/*
 * Purpose: the miss of a free: one look at the slot, one ask of the barn, one exchange. The mirror
 * image of slot_get.c.
 *
 * Place: called by cache and malloc, after the hot section missed, and by slot_bulk.c. Calls barn.
 *
 * Invariants:
 *  I1 at most STOOK_SLOT_TRIES looks; then the object goes to its slab.
 * Concurrency: slot_pair.h.
 * Failure: none. A double free that is noticed is reported.
 */
#include "slot/slot_pair.h"
#include "stat/stats_page_tick.h"

STOOK_INLINE enum stook_push push(struct stook_front *front, struct stook_slot_head *own,
                                  void *object)
{
        if (STOOK_INJECT_EVERY(miss_push) || STOOK_INJECT_EVERY(abort_storm))
                return STOOK_PUSH_MISS;
        return own ? stook_section_push(stook_front_line(front), object)
                   : stook_slot_ops_inlined()->push(front->offset, object);
}

/*
 * A full main refuses before it compares. An object that is its top was freed before: taken off
 * again, it is free once, not twice.
 */
STOOK_INLINE bool was_freed(struct stook_front *front, const struct stook_view *v, void *object)
{
        return v->size &&
               STOOK_UNLIKELY(__atomic_load_n(&v->main->objects[v->size - 1], __ATOMIC_RELAXED) ==
                              object) &&
               stook_slot_ops_inlined()->pop_if(front->offset, object);
}

/* A sheaf with room. @terms: STOOK_FROM_IF_ROOM, or 0. */
STOOK_INLINE struct stook_sheaf *get_empty(struct stook_front *front, unsigned node, unsigned terms)
{
        struct stook_sheaf *empty;

        if (STOOK_INJECT_EVERY(get_fail))
                return NULL;
        empty = stook_stacks_pop_empty(front->below, node);
        return STOOK_LIKELY(empty != NULL) ? empty
                : stook_barn_get_empty(front->below, node, STOOK_FROM_BELOW | terms);
}

/*
 * Main and the spare have no room: an empty sheaf becomes main, with @object_or_null in it. False:
 * there is none to be had. *@done: it is on the slot.
 */
STOOK_INLINE bool replace(struct stook_front *front, struct stook_slot_head *own,
                          const struct stook_view *v, uint32_t generation, unsigned terms,
                          void *object_or_null, bool *done)
{
        unsigned node = stook_slot_node();
        struct stook_sheaf *empty, *left;
        struct stook_pair to;
        uint64_t before;

        *done = false;
        stook_slot_reap_before_barn(own);
        empty = get_empty(front, node, terms);
        if (STOOK_UNLIKELY(!empty))
                return false;
        stook_sheaf_fetch_bottom(empty);
        STOOK_INJECT_CALL(landing, front);
        before = empty->word;
        if (object_or_null) {
                empty->objects[before & 0xffff] = object_or_null;
                __atomic_store_n(&empty->word, before + 1, __ATOMIC_RELAXED);
        }
        left = stook_place_empty(v, empty, &to);
        if (STOOK_LIKELY(stook_slot_exchange(front, own, v, to, generation))) {
                *done = true;
                stook_slot_leave(front, node, left);
                return true;
        }
        __atomic_store_n(&empty->word, before, __ATOMIC_RELAXED);
        stook_slot_dispose(front, -1, empty);
        return true;
}

STOOK_INLINE void put(struct stook_front *front, struct stook_slot_head *own, void *object,
                      void (*on_double)(struct stook_front *, void *))
{
        uint32_t generation = stook_slot_generation(front);
        unsigned tries = STOOK_SLOT_TRIES;
        enum stook_push answer;
        bool done;

        stook_stats_page_tick();
        if (STOOK_UNLIKELY(!stook_barns_capacity(front->below)) || STOOK_UNLIKELY(generation & 1))
                tries = 0;
        while (tries--) {
                struct stook_view v = stook_slot_look(front, own);

                if (stook_view_is_full(&v)) {
                        if (STOOK_UNLIKELY(was_freed(front, &v, object))) {
                                on_double(front, object);
                                continue;
                        }
                        if (!v.spare || stook_sheaf_full(v.spare)) {
                                if (!replace(front, own, &v, generation, 0, object, &done))
                                        break;
                                if (STOOK_LIKELY(done))
                                        return;
                                continue;
                        }
                        if (!stook_slot_swap(front, own, &v, generation))
                                continue;
                }
                answer = push(front, own, object);
                if (STOOK_LIKELY(answer == STOOK_PUSH_DONE))
                        return;
                if (answer == STOOK_PUSH_DOUBLE) {
                        on_double(front, object);
                        return;
                }
        }
        stook_barn_put_object(front->below, object);
}

static STOOK_NOINLINE void put_anyhow(struct stook_front *front, void *object,
                                      void (*on_double)(struct stook_front *, void *))
{
        put(front, NULL, object, on_double);
}

void stook_slot_put(struct stook_front *front, void *object,
                    void (*on_double)(struct stook_front *, void *))
{
        struct stook_slot_head *own = stook_slot_at_hand();

        if (STOOK_LIKELY(own != NULL))
                put(front, own, object, on_double);
        else
                put_anyhow(front, object, on_double);
}

bool stook_slot_bring_room(struct stook_front *front)
{
        struct stook_slot_head *own = stook_slot_at_hand();
        uint32_t generation = stook_slot_generation(front);
        struct stook_view v = stook_slot_look(front, own);
        bool done, slot_keeps_it = !stook_view_main(&v) || !v.spare;

        if (generation & 1)
                return false;
        if (!stook_view_is_full(&v))
                return true;
        if (v.spare && !stook_sheaf_full(v.spare)) {
                stook_slot_swap(front, own, &v, generation);
                return true;
        }
        return replace(front, own, &v, generation, slot_keeps_it ? 0 : STOOK_FROM_IF_ROOM, NULL,
                       &done);
}
