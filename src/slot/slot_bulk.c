/*
 * Purpose: many objects at once: pops and pushes of many, and whole sheaves of objects from the
 * barn and into it, past the slot.
 *
 * Place: called by cache; calls barn. What the slot and its barn do not have, or do not take, is
 * the caller's business: it has an array for the slabs.
 *
 * Invariants:
 *  I1 every loop is bounded: it ends after abort_limit (section/section.h) refusals or
 *     STOOK_MISSES_MAX (slot_replace.h) real misses in which no object was got or put.
 * Concurrency: any thread, any instruction, handlers on top of any step.
 * Failure: fewer objects than wanted, or none.
 */
#include <string.h>

#include "slot/slot_replace.h"

static void dispose(struct stook_front *front, struct stook_sheaf *sheaf)
{
        if (sheaf)
                stook_slot_dispose(front, -1, sheaf);
}

/* ---- allocation ---- */

/* As sole owner: takes all of a sheaf by a plain copy, the bottom object first. */
static size_t take_all(struct stook_sheaf *sheaf, void **objects)
{
        unsigned size = stook_sheaf_size(sheaf);

        memcpy(objects, sheaf->objects, size * sizeof(*objects));
        __atomic_store_n(&sheaf->word, sheaf->word + (uint64_t)size * STOOK_SHEAF_POP,
                         __ATOMIC_RELAXED);
        return size;
}

/*
 * A whole sheaf of objects from the barn, past the slot. If it has more objects than are wanted,
 * for sheaves are not all of one capacity, it is installed. Return: objects got directly. *@again:
 * the slot is worth another look.
 */
static size_t barn_gives_all(struct stook_front *front, size_t want, void **objects, bool *again)
{
        uint32_t generation = stook_slot_generation(front);
        struct stook_sheaf *full = stook_slot_get_full(front, false, false);
        size_t n;

        *again = full;
        if (!full)
                return 0;
        if (STOOK_UNLIKELY(stook_sheaf_size(full) > want)) {
                dispose(front, stook_slot_install_full(front, full, generation));
                return 0;
        }
        n = take_all(full, objects);
        dispose(front, full);
        return n;
}

/* Main was seen empty, @want objects are wanted. Return and *@again as above. */
static size_t alloc_more(struct stook_front *front, struct stook_pair seen, size_t want,
                         void **objects, bool *again)
{
        const struct stook_sheaf *spare = stook_spare_of(seen);

        if (want < stook_barns_capacity(front->below) || (spare && stook_sheaf_size(spare))) {
                *again = stook_slot_replace_empty(front, seen, false, NULL);
                return 0;
        }
        return barn_gives_all(front, want, objects, again);
}

size_t stook_slot_alloc_bulk_any(struct stook_front *front, size_t n, void **objects)
{
        struct stook_patience p = { 0 };
        size_t got = 0;
        bool again = stook_barns_capacity(front->below);

        while (again && got < n) {
                size_t k = stook_slot_ops()->pop_n(front->offset, n - got, objects + got);

                if (!k) {
                        struct stook_pair seen = stook_slot_look(front);

                        if (stook_sheaf_size(stook_main_of(seen)))
                                again = stook_again_after_abort(&p);
                        else if (stook_again_after_miss(&p))
                                k = alloc_more(front, seen, n - got, objects + got, &again);
                        else
                                again = false;
                }
                got += k;
                if (k)
                        p = (struct stook_patience){ 0 };
        }
        return got;
}

/* ---- free ---- */

/* As sole owner of an empty sheaf: fills it, as pushes would. */
static void put_all(struct stook_sheaf *empty, void *const *objects)
{
        memcpy(empty->objects, objects, empty->capacity * sizeof(*objects));
        __atomic_store_n(&empty->word, empty->word + empty->capacity, __ATOMIC_RELAXED);
}

/*
 * A whole sheaf of objects into the barn, past the slot. Return: objects put. 0: the barn has no
 * room, or there are fewer objects than a sheaf holds; nothing was done.
 */
static size_t barn_takes_all(struct stook_front *front, size_t want, void *const *objects)
{
        struct stook_sheaf *empty = stook_slot_get_empty_for_bulk(front, false);
        unsigned capacity;

        if (!empty)
                return 0;
        capacity = empty->capacity;
        if (STOOK_LIKELY(capacity <= want)) {
                put_all(empty, objects);
                /* This thread may have moved to another node since the objects were sorted. */
                if (STOOK_UNLIKELY(stook_slots_by_node)) {
                        stook_slot_dispose(front, -1, empty);
                        return capacity;
                }
                if (stook_barn_offer(front->below, 0, empty))
                        return capacity;
                __atomic_store_n(&empty->word, empty->word - capacity, __ATOMIC_RELAXED);
        }
        dispose(front, empty);
        return 0;
}

/*
 * Main was seen full, @want objects are to go. Return: objects that went directly. *@again: the
 * slot is worth another look.
 */
static size_t free_more(struct stook_front *front, struct stook_pair seen, size_t want,
                        void *const *objects, bool *again)
{
        const struct stook_sheaf *spare = stook_spare_of(seen);
        size_t n;

        if (want < stook_barns_capacity(front->below) || !spare || !stook_sheaf_full(spare)) {
                stook_slot_reap_before_barn(seen);
                *again = stook_slot_replace_full(front, seen, NULL);
                return 0;
        }
        n = barn_takes_all(front, want, objects);
        *again = n != 0;
        return n;
}

size_t stook_slot_free_bulk(struct stook_front *front, size_t n, void **objects)
{
        struct stook_patience p = { 0 };
        size_t put = 0;
        bool again = stook_barns_capacity(front->below);

        while (again && put < n) {
                size_t k = stook_slot_ops()->push_n(front->offset, n - put, objects + put);

                if (!k) {
                        struct stook_pair seen = stook_slot_look(front);

                        if (!stook_sheaf_full(stook_main_of(seen)))
                                again = stook_again_after_abort(&p);
                        else if (stook_again_after_miss(&p))
                                k = free_more(front, seen, n - put, objects + put, &again);
                        else
                                again = false;
                }
                put += k;
                if (k)
                        p = (struct stook_patience){ 0 };
        }
        return put;
}
