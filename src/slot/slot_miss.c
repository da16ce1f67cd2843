/*
 * Purpose: what happens when the hot path misses, for one object. Main and spare change places, and
 * the pop or push is tried again. Or a sheaf comes from the barn, and the call takes its object out
 * of it, or puts it into it, before the install (slot_replace.c). Else the barn is asked for one
 * object, or takes it.
 *
 * Place: called by cache/cache_slow.c after a miss of slot_hot.h and of the swap, for allocations
 *  through slot_node.c; calls barn.
 *
 * Invariants:
 *  I1 every loop is bounded: abort_limit (section/section.h) refusals or STOOK_MISSES_MAX
 *     (slot_replace.h) real misses, then the barn.
 * Concurrency: any thread, any instruction, handlers on top of any step.
 * Failure: an allocation is NULL when the slabs have none; a free never fails.
 */
#include "slot/slot_replace.h"
#include "stat/stats_page_tick.h"
#include "base/inject.h"

#define NODE stook_slot_node()

/* ---- allocation ---- */

static void *retry_pop(struct stook_front *front)
{
        if (STOOK_INJECT_EVERY(miss_pop) ||
            STOOK_INJECT_EVERY(abort_storm))
                return NULL;
        return stook_slot_ops_inlined()->pop(front->offset);
}

bool stook_slot_refill(struct stook_front *front)
{
        struct stook_pair seen = stook_slot_look(front);

        return stook_sheaf_size(stook_main_of(seen)) ||
               stook_slot_replace_empty(front, seen, true, NULL);
}

static STOOK_NOINLINE void *alloc_from_sheaves(struct stook_front *front)
{
        struct stook_patience p = { 0 };
        void *object = NULL;

        stook_stats_page_tick();
        for (;;) {
                struct stook_pair seen = stook_slot_look(front);

                if (stook_sheaf_size(stook_main_of(seen))) {
                        object = retry_pop(front);
                        if (STOOK_LIKELY(object != NULL))
                                return object;
                        if (!stook_again_after_abort(&p))
                                break;
                } else if (!stook_again_after_miss(&p) ||
                           !stook_slot_replace_empty(front, seen, true, &object)) {
                        break;
                } else if (STOOK_LIKELY(object != NULL)) {
                        return object;
                }
        }
        return stook_barn_get_object(front->below, NODE);
}

static STOOK_NOINLINE void *alloc_without_sheaves(struct stook_front *front)
{
        stook_stats_page_tick();
        return stook_barn_get_object(front->below, NODE);
}

/* A cache without sheaves pays for no register of the loop above. */
void *stook_slot_alloc_any(struct stook_front *front)
{
        return stook_barns_capacity(front->below) ? alloc_from_sheaves(front)
                                                  : alloc_without_sheaves(front);
}

/* ---- free ---- */

static enum stook_push retry_push(struct stook_front *front, void *object)
{
        if (STOOK_INJECT_EVERY(miss_push) ||
            STOOK_INJECT_EVERY(abort_storm))
                return STOOK_PUSH_MISS;
        return stook_slot_ops_inlined()->push(front->offset, object);
}

static STOOK_NOINLINE void free_to_sheaves(struct stook_front *front, void *object,
                                           void (*on_double)(struct stook_front *, void *))
{
        struct stook_patience p = { 0 };

        stook_stats_page_tick();
        while (stook_barns_capacity(front->below)) {
                struct stook_pair seen = stook_slot_look(front);

                if (!stook_sheaf_full(stook_main_of(seen))) {
                        enum stook_push answer = retry_push(front, object);

                        if (STOOK_LIKELY(answer == STOOK_PUSH_DONE))
                                return;
                        if (answer == STOOK_PUSH_DOUBLE) {
                                on_double(front, object);
                                return;
                        }
                        if (!stook_again_after_abort(&p))
                                break;
                        continue;
                }
                /*
                 * A full main refuses before it compares. An object that is its top was freed
                 * before: taken off again, it is free once, not twice.
                 */
                if (STOOK_UNLIKELY(stook_slot_ops_inlined()->peek(front->offset) == object) &&
                    stook_slot_ops_inlined()->pop_if(front->offset, object)) {
                        on_double(front, object);
                        continue;
                }
                stook_slot_reap_before_barn(seen);
                if (!stook_again_after_miss(&p) || !stook_slot_replace_full(front, seen, &object))
                        break;
                if (STOOK_LIKELY(!object))
                        return;
        }
        stook_barn_put_object(front->below, object);
}

/* As in stook_slot_alloc_any. */
void stook_slot_free_miss(struct stook_front *front, void *object,
                          void (*on_double)(struct stook_front *, void *))
{
        if (stook_barns_capacity(front->below)) {
                free_to_sheaves(front, object, on_double);
                return;
        }
        stook_stats_page_tick();
        stook_barn_put_object(front->below, object);
}
