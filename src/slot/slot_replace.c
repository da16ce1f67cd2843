/*
 * Purpose: main makes way: for the spare, by a swap, or for a sheaf that comes from the barn.
 *
 * Place: called by slot_miss.c and slot_bulk.c; calls barn.
 *
 * No step holds anything but sheaves that this call owns, and each step that changes the slot is
 * one exchange. So any step may be interrupted, may run on another CPU than the one before, and may
 * find there any state:
 *
 *   main        spare        allocation installs a full F      free installs an empty E
 *   no sheaves  none         {F, none}                         {E, none}
 *   no sheaves  any          {F, spare}                        {E, spare}
 *   empty       none         {F, main}                         {main, E}: not full any more
 *   empty       any          {F, spare}, main is left          drop E
 *   some        none         {main, F}                         {main, E}
 *   some        empty        {main, F}, spare is left          drop E
 *   some        not empty    drop F                            drop E
 *   full        none         {main, F}                         {E, main}
 *   full        not full     as "some"                         {spare, main}, drop E
 *   full        full         drop F                            {E, main}, spare is left
 *
 * F is a full sheaf, or one that a first refill filled in part (barn.h, `brought`). What counts
 * here is that it has objects. A call for one object takes it out of F, or puts it into E, before
 * the install: it owns the sheaf alone then.
 * A main that makes way becomes the spare where the table says so. Only swap_in_spare looks at its
 * capacity: a main that is smaller than the cache's sheaves are now leaves the slot there.
 * Two rows have an exception: a main that is smaller than F or E is no spare (is_smaller). It
 * leaves the slot where it is empty. Where it is full its objects go into E first (pour).
 * Where both are full, the spare leaves: its objects were freed before main's. So main, spare and
 * the barn's full sheaves are one stack of objects, and pops see the latest pushes first, also
 * across sheaves. What was freed in one go is allocated in one go, while it is in the CPU's caches.
 * "No sheaves, any" is what an evacuation and then a returned sheaf make (slot_spare.c).
 * What is left or dropped goes to the barn, or is flushed. The exchange proves main's size, but not
 * the spare's. A thread that takes a spare looks at it again once it owns it.
 *
 * Invariants:
 *  I1 every loop is bounded, by LANDINGS_MAX.
 *  I2 a call that fails has lost nothing: each sheaf it owned went to the barn or its memory's
 *  pool.
 *  I3 a sheaf that was got under a generation of `config` is installed under that one or not at
 *     all. Under an odd one none is installed.
 * Concurrency: any thread, any instruction, handlers on top of any step.
 * Failure: false; nothing changed.
 */
#include <string.h>

#include "slot/slot_replace.h"
#include "base/inject.h"

#define LANDINGS_MAX 4
#define NODE         stook_slot_node()

static bool is_zero(const struct stook_sheaf *s)
{
        return s == &stook_sheaf_zero;
}

/* What main becomes when it makes way: a spare, unless it is the zero-capacity sheaf. */
static const struct stook_sheaf *as_spare(const struct stook_sheaf *main)
{
        return is_zero(main) ? NULL : main;
}

/*
 * Main is a first sheaf, smaller than the one that comes. As a spare it would stay for ever,
 * because the section that swaps looks at no capacity. A class whose use swings around the edge of
 * such a pair would swap twice a swing. (Short sheaves that have grown stay: in the pattern
 * `middle` all that a slot keeps of large objects is used.)
 */
static bool is_smaller(const struct stook_sheaf *main, const struct stook_sheaf *comes)
{
        unsigned capacity = stook_sheaf_capacity(comes);

        return capacity >= STOOK_BARN_SHORT && stook_sheaf_capacity(main) < capacity &&
               !is_zero(main);
}

/* The backend's operation, without a call for the usual one: a miss makes one or two exchanges. */
static STOOK_NOINLINE bool exchange(struct stook_front *front, struct stook_pair from,
                                    struct stook_pair to, unsigned size, uint32_t generation)
{
        const struct stook_section_ops *ops = stook_slot_ops_inlined();

        if (STOOK_INJECT_EVERY(exchange_fail) ||
            STOOK_INJECT_EVERY(abort_storm))
                return false;
        if (STOOK_LIKELY(ops == &stook_section_rseq))
                return stook_section_exchange((uintptr_t)stook_sections.slots + front->offset, from,
                                              to, size, &front->config, generation);
        return ops->exchange(front->offset, from, to, size, &front->config, generation);
}

static void dispose(struct stook_front *front, struct stook_sheaf *sheaf)
{
        if (sheaf)
                stook_slot_dispose(front, -1, sheaf);
}

/* ---- the swap ---- */

/*
 * Main, full or empty, makes way for the spare, by an exchange. The slow call has tried the section
 * that swaps before (stook_section_swap_pop, stook_section_swap_push). Both are needed. That
 * section always misses on the locked backend, bulk calls do not try it, and it keeps main on the
 * slot. Here main leaves the slot if the cache's sheaves have grown since main was made. Otherwise
 * the slot would keep a small sheaf for ever. Return: main, if it left; the caller disposes of it.
 * That, and no inlining, is for the depth of the stack.
 */
static STOOK_NOINLINE struct stook_sheaf *swap_in_spare(struct stook_front *front,
                                                        struct stook_pair from, unsigned size,
                                                        uint32_t generation)
{
        struct stook_sheaf *main = stook_main_of(from);
        unsigned capacity = stook_barns_capacity(front->below);
        bool outgrown = !is_zero(main) && stook_sheaf_capacity(main) < capacity;
        const struct stook_sheaf *spare = outgrown ? NULL : as_spare(main);

        if (!exchange(front, from, stook_pair_of(stook_spare_of(from), spare), size, generation))
                return NULL;
        return outgrown ? main : NULL;
}

/* ---- main is empty ---- */

/*
 * The table above, middle column. The caller disposes of what is left or dropped, for the depth of
 * the stack.
 */
STOOK_NOINLINE struct stook_sheaf *stook_slot_install_full(struct stook_front *front,
                                                           struct stook_sheaf *full,
                                                           uint32_t generation)
{
        for (unsigned tries = 0; tries < LANDINGS_MAX; tries++) {
                struct stook_pair   from = stook_slot_look(front), to;
                struct stook_sheaf *main = stook_main_of(from), *spare = stook_spare_of(from);
                struct stook_sheaf *left = NULL;
                unsigned size = stook_sheaf_size(main);

                if (size == 0 && !spare && is_smaller(main, full)) {
                        to = stook_pair_of(full, NULL);
                        left = main;
                } else if (size == 0 && !spare) {
                        to = stook_pair_of(full, as_spare(main));
                } else if (size == 0) {
                        to = stook_pair_of(full, spare);
                        left = (struct stook_sheaf *)as_spare(main);
                } else if (!spare || stook_sheaf_size(spare) == 0) {
                        to = stook_pair_of(main, full);
                        left = spare;
                } else {
                        break;
                }
                if (exchange(front, from, to, size, generation))
                        return left;
        }
        return full;
}

/*
 * Puts @full on the slot, without its top object if @one is not NULL: that one is *@one then. It is
 * cheaper to take it here, as sole owner, than to pop it afterwards. *@one stays as it is if @full
 * found no place. The caller disposes of the sheaf that is returned. Not inlined, for the depth of
 * the stack.
 */
static STOOK_NOINLINE struct stook_sheaf *land_full(struct stook_front *front,
                                                    struct stook_sheaf *full, uint32_t generation,
                                                    void **one)
{
        uint64_t whole = full->word;
        void *top = full->objects[(whole & 0xffff) - 1];       /* later a push may store there */
        struct stook_sheaf *left;

        if (one)
                __atomic_store_n(&full->word, whole + STOOK_SHEAF_POP, __ATOMIC_RELAXED);
        left = stook_slot_install_full(front, full, generation);
        if (STOOK_UNLIKELY(left == full))
                __atomic_store_n(&full->word, whole, __ATOMIC_RELAXED);
        else if (one)
                *one = top;
        return left;
}

bool stook_slot_replace_empty(struct stook_front *front, struct stook_pair seen, bool refill,
                              void **one)
{
        uint32_t generation = stook_slot_generation(front);
        struct stook_sheaf *full;

        if (generation & 1)
                return false;
        if (stook_spare_of(seen) && stook_sheaf_size(stook_spare_of(seen))) {
                dispose(front, swap_in_spare(front, seen, 0, generation));
                return true;            /* or another thread was faster: the caller looks again */
        }
        stook_slot_reap_idle();
        full = stook_slot_get_full(front, refill, is_zero(stook_main_of(seen)));
        if (!full)
                return false;
        stook_sheaf_fetch_top(full);
        STOOK_INJECT_CALL(landing, front);
        dispose(front, land_full(front, full, generation, one));
        return true;
}

/* ---- main is full ---- */

static struct stook_sheaf *new_empty(struct stook_front *front)
{
        if (STOOK_INJECT_EVERY(get_fail))
                return NULL;
        return stook_barn_get(front->below, NODE, (struct stook_barn_want){
                .kind = STOOK_WANT_EMPTY, .from = STOOK_FROM_ANY });
}

struct stook_sheaf *stook_slot_get_empty_for_bulk(struct stook_front *front, bool room_in_slot)
{
        return stook_barn_get(front->below, NODE, (struct stook_barn_want){
                .kind = STOOK_WANT_EMPTY,
                .from = room_in_slot ? STOOK_FROM_ANY : STOOK_FROM_ANY | STOOK_FROM_IF_ROOM });
}

/* The table above, right column. As install_full. */
static STOOK_NOINLINE struct stook_sheaf *install_empty(struct stook_front *front,
                                                        struct stook_sheaf *empty,
                                                        uint32_t generation)
{
        for (unsigned tries = 0; tries < LANDINGS_MAX; tries++) {
                struct stook_pair   from = stook_slot_look(front), to;
                struct stook_sheaf *main = stook_main_of(from), *spare = stook_spare_of(from);
                struct stook_sheaf *left = NULL;
                unsigned size = stook_sheaf_size(main);

                if (size < stook_sheaf_capacity(main)) {
                        if (spare)
                                break;
                        to = stook_pair_of(main, empty);
                } else if (is_zero(main)) {
                        to = stook_pair_of(empty, spare);
                } else if (!spare) {
                        to = stook_pair_of(empty, main);
                } else if (!stook_sheaf_full(spare)) {
                        to = stook_pair_of(spare, main);
                        left = empty;
                } else {
                        to = stook_pair_of(empty, main);
                        left = spare;
                }
                if (exchange(front, from, to, size, generation))
                        return left;
        }
        return empty;
}

/*
 * Main is full, smaller than @empty, and there is no spare: its @size objects go into @empty, and
 * it leaves the slot. False: the slot has changed.
 */
static STOOK_NOINLINE bool pour(struct stook_front *front, struct stook_pair seen, unsigned size,
                                struct stook_sheaf *empty, uint32_t generation)
{
        struct stook_sheaf *main = stook_main_of(seen);

        if (!exchange(front, seen, stook_pair_of(&stook_sheaf_zero, NULL), size, generation))
                return false;
        stook_sheaf_set_size(main, 0);
        memcpy(empty->objects, main->objects, size * sizeof(void *));
        stook_sheaf_set_size(empty, size);
        stook_sheaf_delete(main, front->below->below->counters);
        return true;
}

/*
 * Puts @empty on the slot, with *@one on top of what it holds if @one is not NULL. *@one is NULL
 * then. *@one stays as it is if @empty found no place. The caller disposes of the sheaf that is
 * returned.
 */
static struct stook_sheaf *land_empty(struct stook_front *front, struct stook_sheaf *empty,
                                      uint32_t generation, void **one)
{
        uint64_t before = empty->word;
        struct stook_sheaf *left;

        if (one) {
                empty->objects[before & 0xffff] = *one;
                __atomic_store_n(&empty->word, before + 1, __ATOMIC_RELAXED);
        }
        left = install_empty(front, empty, generation);
        if (STOOK_UNLIKELY(left == empty))
                __atomic_store_n(&empty->word, before, __ATOMIC_RELAXED);
        else if (one)
                *one = NULL;
        return left;
}

bool stook_slot_replace_full(struct stook_front *front, struct stook_pair seen, void **one)
{
        bool bulk = !one;
        uint32_t generation = stook_slot_generation(front);
        struct stook_sheaf *main = stook_main_of(seen), *spare = stook_spare_of(seen), *empty;
        unsigned size = stook_sheaf_size(main);

        if (generation & 1)
                return false;
        if (spare && !stook_sheaf_full(spare)) {
                dispose(front, swap_in_spare(front, seen, size, generation));
                return true;
        }
        empty = bulk ? stook_slot_get_empty_for_bulk(front, is_zero(main) || !spare)
                     : new_empty(front);
        if (!empty) {
                /* No memory for a sheaf: main itself becomes the empty one. */
                if (bulk || is_zero(main))
                        return false;
                if (!exchange(front, seen, stook_pair_of(&stook_sheaf_zero, spare), size,
                              generation))
                        return true;
                stook_barn_flush(front->below, main);
                empty = main;
        } else if (!spare && is_smaller(main, empty) &&
                   !pour(front, seen, size, empty, generation)) {
                dispose(front, empty);
                return true;
        }
        stook_sheaf_fetch_bottom(empty);
        STOOK_INJECT_CALL(landing, front);
        dispose(front, land_empty(front, empty, generation, one));
        return true;
}

void stook_slot_reap_before_barn(struct stook_pair seen)
{
        if (!stook_spare_of(seen) || stook_sheaf_full(stook_spare_of(seen)))
                stook_slot_reap_idle();
}
