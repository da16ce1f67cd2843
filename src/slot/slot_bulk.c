/*
 * Purpose: many objects at once: pops and pushes of many, whole sheaves of objects from the barn
 * and into it, past the slot, and a slot's spare sheaf, taken out and put back whole, for prefilled
 * sheaves.
 *
 * Place: called by cache and prefill; calls barn. What the slot and its barn do not have, or do not
 * take, is the caller's business: it has an array for the slabs.
 *
 * Invariants:
 *  I1 every loop is bounded: it ends after abort_limit (section/section.h) refusals or
 *     STOOK_SLOT_TRIES (slot_pair.h) real misses in which no object was got or put.
 *  I2 a spare is put back under the generation in which its capacity was found to be the cache's.
 * Concurrency: any thread, any instruction, handlers on top of any step.
 * Failure: fewer objects than wanted, or none.
 */
#include <string.h>

#include "slot/slot_pair.h"
#include "slot/slot_trip.h"

/* What a call tries while it gets, or puts, no object. */
struct patience {
        unsigned aborts, misses;
};

static bool again_after_abort(struct patience *patience)
{
        return ++patience->aborts < stook_slot_ops_inlined()->abort_limit;
}

static bool again_after_miss(struct patience *patience)
{
        return ++patience->misses <= STOOK_SLOT_TRIES;
}

/* ---- allocation ---- */

/* As sole owner: @n pops are counted, past marks by new counts. */
static void count_pops(struct stook_front *front, struct stook_sheaf *sheaf, unsigned n)
{
        unsigned k;

        for (; n; n -= k) {
                if (STOOK_UNLIKELY(stook_word_is_marked(sheaf->word)) &&
                    stook_sheaf_trip(front, sheaf))
                        stook_sample_duties.in_place(front);
                k = stook_word_to_mark(sheaf->word);
                k = STOOK_LIKELY(n < k) ? n : k;
                stook_sheaf_add(sheaf, (int64_t)k * STOOK_SHEAF_POP);
        }
}

/* As sole owner: takes up to @want objects of a sheaf by a plain copy, the lowest first. */
static size_t take_some(struct stook_front *front, struct stook_sheaf *sheaf, size_t want,
                        void **objects)
{
        unsigned size = stook_sheaf_size(sheaf), n = want < size ? (unsigned)want : size;

        memcpy(objects, sheaf->objects + size - n, n * sizeof(*objects));
        count_pops(front, sheaf, n);
        return n;
}

/*
 * Main was seen empty, @want objects are wanted. Return: objects that came past the slot, of a
 * whole sheaf of the barn. *@again: the slot is worth another look.
 */
static size_t alloc_more(struct stook_front *front, const struct stook_view *v, size_t want,
                         void **objects, bool *again)
{
        struct stook_sheaf *full;
        size_t n;

        if (want < stook_barns_capacity(front->barns) ||
            (v->spare && stook_sheaf_size(v->spare))) {
                *again = stook_slot_bring_objects(front);
                return 0;
        }
        full = stook_barn_get_full(front->barns, stook_slot_node(), STOOK_FROM_BARN, NULL);
        *again = full;
        if (!full)
                return 0;
        stook_sheaf_arm(front, full);
        n = take_some(front, full, want, objects);
        stook_slot_dispose(front, -1, full);
        return n;
}

/* True: main was marked, and has a new count. */
static bool passes_mark(struct stook_front *front)
{
        enum stook_trip trip = stook_slot_trip(front, true);

        if (STOOK_UNLIKELY(trip == STOOK_TRIP_SAMPLE))
                stook_sample_duties.in_place(front);
        return trip != STOOK_TRIP_NONE;
}

static STOOK_NOINLINE size_t alloc_any(struct stook_front *front, size_t n, void **objects)
{
        struct patience p = { 0 };
        size_t got = 0;
        bool again = stook_barns_capacity(front->barns);

        while (again && got < n) {
                size_t k = stook_slot_ops()->pop_n(front->offset, n - got, objects + got);

                if (!k) {
                        struct stook_view v = stook_slot_look(front);

                        if (v.size)
                                again = passes_mark(front) || again_after_abort(&p);
                        else if (again_after_miss(&p))
                                k = alloc_more(front, &v, n - got, objects + got, &again);
                        else
                                again = false;
                }
                got += k;
                if (k)
                        p = (struct patience){ 0 };
        }
        return got;
}

/* One at a time, from where the task's policy says. Not inlined, for the depth of the stack. */
static STOOK_NOINLINE size_t alloc_by_policy(struct stook_front *front, size_t n, void **objects)
{
        size_t got = 0;

        while (got < n && (objects[got] = stook_home_duties.get_by_policy(front)))
                got++;
        return got;
}

size_t stook_slot_alloc_bulk(struct stook_front *front, size_t n, void **objects)
{
        return STOOK_UNLIKELY(stook_slots_strict) ? alloc_by_policy(front, n, objects)
                                                  : alloc_any(front, n, objects);
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
        struct stook_sheaf *empty = stook_barn_get_empty(front->barns, stook_slot_node(),
                                                         STOOK_FROM_ANY | STOOK_FROM_IF_ROOM);
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
                if (stook_barn_offer(front->barns, 0, empty))
                        return capacity;
                __atomic_store_n(&empty->word, empty->word - capacity, __ATOMIC_RELAXED);
        }
        stook_slot_dispose(front, -1, empty);
        return 0;
}

/*
 * Main was seen full, @want objects are to go. Return: objects that went directly. *@again: the
 * slot is worth another look.
 */
static size_t free_more(struct stook_front *front, const struct stook_view *v, size_t want,
                        void *const *objects, bool *again)
{
        size_t n;

        if (want < stook_barns_capacity(front->barns) || !v->spare || !stook_sheaf_full(v->spare)) {
                *again = stook_slot_bring_room(front);
                return 0;
        }
        n = barn_takes_all(front, want, objects);
        *again = n != 0;
        return n;
}

size_t stook_slot_free_bulk(struct stook_front *front, size_t n, void **objects)
{
        struct patience p = { 0 };
        size_t put = 0;
        bool again = stook_barns_capacity(front->barns);

        while (again && put < n) {
                size_t k = stook_slot_ops()->push_n(front->offset, n - put, objects + put);

                if (!k) {
                        struct stook_view v = stook_slot_look(front);

                        if (!stook_view_is_full(&v))
                                again = again_after_abort(&p);
                        else if (again_after_miss(&p))
                                k = free_more(front, &v, n - put, objects + put, &again);
                        else
                                again = false;
                }
                put += k;
                if (k)
                        p = (struct patience){ 0 };
        }
        return put;
}

/*
 * ---- the spare ----
 * {main, S} becomes {main, none}, and the other way round. S is whatever sheaf was the spare, with
 * any number of objects. A spare that is neither full nor empty is what the table of slot_pair.h
 * means by "not full" and "not empty". After abort_limit refusals the slot has no sheaf to give, or
 * no place for one; nothing has changed then.
 */

static struct stook_pair with_spare(struct stook_pair p, const struct stook_sheaf *spare)
{
        return (struct stook_pair){ .lo = p.lo, .hi = (uintptr_t)spare };
}

static bool exchange(struct stook_front *front, struct stook_pair from,
                     const struct stook_sheaf *spare, uint32_t generation)
{
        unsigned size = stook_sheaf_size((const struct stook_sheaf *)from.lo);

        if (STOOK_INJECT_EVERY(lend_fail))
                return false;
        return stook_slot_ops()->exchange(front->offset, from, with_spare(from, spare), size,
                                          &front->config, generation);
}

struct stook_sheaf *stook_slot_take_spare(struct stook_front *front)
{
        uint32_t generation = stook_slot_generation(front);
        const struct stook_section_ops *ops = stook_slot_ops();

        for (unsigned tries = 0; !(generation & 1) && tries < ops->abort_limit; tries++) {
                struct stook_pair seen = ops->look(front->offset);

                if (!seen.hi)
                        break;
                if (exchange(front, seen, NULL, generation))
                        return (struct stook_sheaf *)seen.hi;
        }
        return NULL;
}

bool stook_slot_give_spare(struct stook_front *front, struct stook_sheaf *sheaf)
{
        uint32_t generation = stook_slot_generation(front);
        const struct stook_section_ops *ops = stook_slot_ops();

        if ((generation & 1) || stook_sheaf_capacity(sheaf) != stook_barns_capacity(front->barns))
                return false;
        for (unsigned tries = 0; tries < ops->abort_limit; tries++) {
                struct stook_pair seen = ops->look(front->offset);

                if (seen.hi)
                        break;
                if (exchange(front, seen, sheaf, generation))
                        return true;
        }
        return false;
}
