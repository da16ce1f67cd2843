/*
 * Purpose: the commonest misses, in as few steps as can be. Main has no object: the spare that has
 * some becomes main, or a full sheaf of the barn. Main is full: the spare with room becomes main,
 * or an empty sheaf of the barn. What leaves the slot goes to the barn.
 *
 * Place: called by malloc/malloc_object.c and cache/cache_slow.c before the calls of slot_miss.c,
 * which look at everything once more where this does not apply. Calls the sections that swap, and
 * of the barn its stacks alone. So nothing is filled, and as a rule nothing is flushed.
 *
 * The rows of the table in slot_replace.c that are done here: "empty, none" and "empty, any", of an
 * empty spare, for an allocation; "full, full" for a free. The sheaves on the slot have the cache's
 * capacity. On the locked backend, in a thread that is not enrolled, and where the process has
 * anything unusual to do first, nothing is done.
 *
 * Invariants:
 *  I1 a call that answers no has lost nothing: each sheaf that it owned is in the barn, and the
 *     slot has what it had.
 *  I2 a sheaf that was got under a generation of `config` is installed under that one or not at
 *     all (slot_replace.c I3).
 * Concurrency: any thread, any instruction, handlers on top of any step. The pair is read once, and
 *  exchanged once; the exchange proves main's size. The spare's is looked at again once it is
 *  owned.
 * Failure: NULL or false; the caller goes the long way.
 */
#include "slot/slot_idle.h"
#include "slot/slot_replace.h"
#include "barn/barn_stacks.h"
#include "base/inject.h"
#include "stat/stats_page_tick.h"

/* This thread's slot. NULL: it has none, or has something else to do first. */
STOOK_INLINE struct stook_slot_head *usual_slot(void)
{
        uint32_t ready = stook_self->ready;
        uint32_t slot = ready ? *stook_section_index(stook_self) : 0;

        if (STOOK_UNLIKELY(slot >= ready) ||
            STOOK_UNLIKELY(__atomic_load_n(&stook_stats_page_hook, __ATOMIC_RELAXED) != NULL))
                return NULL;
        return (struct stook_slot_head *)(stook_sections.slots +
                                          ((size_t)slot << STOOK_SLOT_SHIFT));
}

STOOK_INLINE struct stook_pair pair_in(struct stook_slot_head *own, const struct stook_front *front)
{
        return stook_pair_read(&((struct stook_line *)((char *)own + front->offset))->pair);
}

STOOK_INLINE uintptr_t line_of(const struct stook_front *front)
{
        return (uintptr_t)stook_sections.slots + front->offset;
}

STOOK_INLINE bool exchange(struct stook_front *front, struct stook_pair from, struct stook_pair to,
                           unsigned size, uint32_t generation)
{
        STOOK_INJECT_CALL(landing, front);
        return !STOOK_INJECT_EVERY(exchange_fail) && !STOOK_INJECT_EVERY(abort_storm) &&
               stook_section_exchange(line_of(front), from, to, size, &front->config, generation);
}

/* Size and capacity are the cache's capacity. */
STOOK_INLINE bool is_full(const struct stook_sheaf *sheaf, unsigned capacity)
{
        return stook_sheaf_size(sheaf) == capacity && stook_sheaf_capacity(sheaf) == capacity;
}

STOOK_INLINE bool is_empty(const struct stook_sheaf *sheaf, unsigned capacity)
{
        return !stook_sheaf_size(sheaf) && stook_sheaf_capacity(sheaf) == capacity;
}

/* What left the slot: no object, or as many as it holds. On several nodes it goes home. */
STOOK_INLINE void put_empty(struct stook_front *front, unsigned node, struct stook_sheaf *empty)
{
        if (STOOK_UNLIKELY(stook_slots_by_node) ||
            STOOK_UNLIKELY(!stook_stacks_push_empty(front->below, node, empty)))
                stook_slot_dispose(front, -1, empty);
}

/* The cache's capacity may have changed since it was on the slot. */
STOOK_INLINE void put_full(struct stook_front *front, unsigned node, struct stook_sheaf *full)
{
        if (STOOK_UNLIKELY(stook_slots_by_node) ||
            STOOK_UNLIKELY(!is_full(full, stook_barns_capacity(front->below))))
                stook_slot_dispose(front, -1, full);
        else if (STOOK_UNLIKELY(!stook_stacks_push_full(front->below, node, full)))
                stook_barn_put_below(front->below, node, full);
}

void *stook_slot_quick_get(struct stook_front *front)
{
        struct stook_slot_head *own = usual_slot();
        struct stook_barns *barns = front->below;
        uint32_t generation = stook_slot_generation(front);     /* before the capacity */
        unsigned capacity = stook_barns_capacity(barns), node;
        struct stook_sheaf *main, *spare, *full;
        struct stook_pair from;
        uint64_t whole;
        void *object;

        if (STOOK_UNLIKELY(!own) || STOOK_UNLIKELY(generation & 1))
                return NULL;
        from = pair_in(own, front);
        main = stook_main_of(from);
        spare = stook_spare_of(from);
        node = stook_slot_node();
        if (spare && stook_sheaf_size(spare))
                return stook_section_swap_pop(line_of(front));
        if (STOOK_UNLIKELY(!capacity) || !is_empty(main, capacity) ||
            (spare && stook_sheaf_capacity(spare) != capacity) ||
            !stook_barn_has_full(barns, node) || STOOK_INJECT_EVERY(get_fail))
                return NULL;
        stook_slot_reap_if_due(own);
        full = stook_stacks_take_full(barns, node);
        if (STOOK_UNLIKELY(!full))
                return NULL;
        stook_barns_swung(barns);
        whole = full->word;
        stook_sheaf_fetch_top(full);
        object = full->objects[(whole & 0xffff) - 1];   /* later a push may store there */
        __atomic_store_n(&full->word, whole + STOOK_SHEAF_POP, __ATOMIC_RELAXED);
        /* A smaller one, of before the cache's sheaves grew, is as good. */
        if (STOOK_LIKELY(stook_sheaf_capacity(full) <= capacity) &&
            STOOK_LIKELY(exchange(front, from, stook_pair_of(full, spare ? spare : main), 0,
                                  generation))) {
                if (spare)
                        put_empty(front, node, main);
                return object;
        }
        __atomic_store_n(&full->word, whole, __ATOMIC_RELAXED);
        stook_slot_dispose(front, -1, full);
        return NULL;
}

bool stook_slot_quick_put(struct stook_front *front, void *object)
{
        struct stook_slot_head *own = usual_slot();
        struct stook_barns *barns = front->below;
        uint32_t generation = stook_slot_generation(front);     /* before the capacity */
        unsigned capacity = stook_barns_capacity(barns), node;
        struct stook_sheaf *main, *spare, *empty;
        struct stook_pair from;
        uint64_t before;

        if (STOOK_UNLIKELY(!own) || STOOK_UNLIKELY(generation & 1))
                return false;
        from = pair_in(own, front);
        main = stook_main_of(from);
        spare = stook_spare_of(from);
        if (spare && !stook_sheaf_full(spare))
                return stook_section_swap_push(line_of(front), object);
        /* Was it freed before? That is looked at, and told, on the long way. */
        if (STOOK_UNLIKELY(!capacity) || !spare || !is_full(main, capacity) ||
            !is_full(spare, capacity) || STOOK_INJECT_EVERY(get_fail) ||
            STOOK_UNLIKELY(__atomic_load_n(&main->objects[capacity - 1], __ATOMIC_RELAXED) ==
                           object))
                return false;
        node = stook_slot_node();
        if (!stook_barn_has_empty(barns, node))
                return false;
        stook_slot_reap_if_due(own);
        empty = stook_stacks_pop_empty(barns, node);
        if (STOOK_UNLIKELY(!empty))
                return false;
        before = empty->word;
        stook_sheaf_fetch_bottom(empty);
        empty->objects[before & 0xffff] = object;
        __atomic_store_n(&empty->word, before + 1, __ATOMIC_RELAXED);
        if (STOOK_LIKELY(exchange(front, from, stook_pair_of(empty, main), capacity, generation))) {
                put_full(front, node, spare);
                return true;
        }
        __atomic_store_n(&empty->word, before, __ATOMIC_RELAXED);
        stook_slot_dispose(front, -1, empty);
        return false;
}
