/*
 * Purpose: what happens when the hot path misses: main and spare change places, else a whole sheaf comes from
 * the barn or the slabs and is installed; else the slabs are asked for one object.
 *
 * Place: called by malloc and cache after a miss of slot/slot_fast.h; calls barn, and slab as the last resort.
 *
 * No step holds anything but sheaves that this call owns, and each step that changes the slot is one
 * exchange. So any step may be interrupted, run on another CPU than the one before, and find there any state:
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
 *   full        full         drop F                            {E, spare}, main is left
 *
 * ("No sheaves, any" is what a drain and then a returned sheaf make: slot_lend.c.)
 * What is left or dropped goes to the barn, or is flushed. Main's size is proved by the exchange, spare's is
 * not: whoever takes a spare looks at it again once it is his own.
 *
 * Invariants:
 *  I1 every loop is bounded: abort_limit refusals or MISSES_MAX real misses, then the slabs.
 *  I2 a call that fails has lost nothing: each sheaf it owned went to the barn or its memory's pool.
 *  I3 sheaves got under a generation of `config` are installed under that one or not at all; odd: not at all.
 * Concurrency: any thread, any instruction, handlers on top of any step.
 * Failure: allocation NULL when the slabs have none; free never.
 */
#include <string.h>
#include "os/os.h"
#include "slot/slot_node.h"
#include "pages/span.h"
#include "stat/stats_page_tick.h"

#define MISSES_MAX   4                  /* others may empty (or fill) what was installed, but hardly four times */
#define LANDINGS_MAX 4
#define NODE         stook_slot_node()

struct stook_slot_hooks stook_slot_hooks;

/* True every n-th time. One relaxed load where no test is on. */
static bool refused(const uint32_t *every)
{
        static uint32_t calls;
        uint32_t n = __atomic_load_n(every, __ATOMIC_RELAXED);

        return STOOK_UNLIKELY(n) && __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % n == 0;
}

static struct stook_sheaf *main_of(struct stook_pair p)
{
        return (struct stook_sheaf *)p.lo;
}

static struct stook_sheaf *spare_of(struct stook_pair p)
{
        return (struct stook_sheaf *)p.hi;
}

static bool is_zero(const struct stook_sheaf *s)
{
        return s == &stook_sheaf_zero;
}

static struct stook_pair pair(const struct stook_sheaf *main, const struct stook_sheaf *spare)
{
        return (struct stook_pair){ .lo = (uintptr_t)main, .hi = (uintptr_t)spare };
}

/* What main becomes when it makes way: a spare, unless it is the zero-capacity sheaf. */
static const struct stook_sheaf *as_spare(const struct stook_sheaf *main)
{
        return is_zero(main) ? NULL : main;
}

static struct stook_pair look(struct stook_front *front)
{
        return stook_slot_ops()->look(front->offset);
}

static bool exchange(struct stook_front *front, struct stook_pair from, struct stook_pair to, unsigned size,
                     uint32_t generation)
{
        if (refused(&stook_slot_hooks.exchange_fail) || refused(&stook_slot_hooks.abort_storm))
                return false;
        return stook_slot_ops()->exchange(front->offset, from, to, size, &front->config, generation);
}

static uint32_t generation_of(struct stook_front *front)
{
        return __atomic_load_n(&front->config, __ATOMIC_ACQUIRE);
}

static void dispose(struct stook_front *front, struct stook_sheaf *sheaf)
{
        if (sheaf)
                stook_barn_dispose(front->below, NODE, sheaf);
}

/*
 * The lines of a sheaf that is about to become main were written on another CPU as a rule: asked for at once,
 * they come while the install is under way, instead of one after the other as objects are taken or put.
 */
#define FETCH_BYTES ((size_t)1024)      /* a sheaf of 124 objects; a longer one shows its direction to the CPU by then */

static void fetch_top(const struct stook_sheaf *full)
{
        const char *line = (const char *)(full->objects + stook_sheaf_size(full)) - 1;

        __builtin_prefetch(full, 1);
        for (size_t at = 0; at < FETCH_BYTES && line - at > (const char *)full; at += STOOK_CACHELINE)
                __builtin_prefetch(line - at);
}

static void fetch_bottom(const struct stook_sheaf *empty)
{
        const char *end = (const char *)(empty->objects + stook_sheaf_capacity(empty));
        const char *line = (const char *)empty;

        for (size_t at = 0; at < FETCH_BYTES && line + at < end; at += STOOK_CACHELINE)
                __builtin_prefetch(line + at, 1);
}

/* Counts refusals; false when there were enough of them. */
struct patience {
        unsigned aborts, misses;
};

static bool again_after_abort(struct patience *p)
{
        return ++p->aborts < stook_slot_ops()->abort_limit;
}

static bool again_after_miss(struct patience *p)
{
        return ++p->misses <= MISSES_MAX;
}

/* ---- allocation ---- */

static struct stook_sheaf *full_from_barn(struct stook_front *front)
{
        return refused(&stook_slot_hooks.trade_fail) ? NULL : stook_barn_trade_empty(front->below, NODE, NULL);
}

static struct stook_sheaf *full_from_slabs(struct stook_front *front)
{
        struct stook_sheaf *empty, *full;

        if (refused(&stook_slot_hooks.refill_fail))
                return NULL;
        empty = stook_barn_get_empty(front->below, NODE);
        full = stook_barn_refill(front->below, NODE, empty, 0);
        if (!full)
                dispose(front, empty);
        return full;
}

/* The table above, middle column. */
static void install_full(struct stook_front *front, struct stook_sheaf *full, uint32_t generation)
{
        for (unsigned tries = 0; tries < LANDINGS_MAX; tries++) {
                struct stook_pair   from = look(front), to;
                struct stook_sheaf *main = main_of(from), *spare = spare_of(from), *left = NULL;
                unsigned size = stook_sheaf_size(main);

                if (size == 0 && !spare) {
                        to = pair(full, as_spare(main));
                } else if (size == 0) {
                        to = pair(full, spare);
                        left = (struct stook_sheaf *)as_spare(main);
                } else if (!spare || stook_sheaf_size(spare) == 0) {
                        to = pair(main, full);
                        left = spare;
                } else {
                        break;
                }
                if (exchange(front, from, to, size, generation)) {
                        dispose(front, left);
                        return;
                }
        }
        dispose(front, full);
}

static bool swap_in_spare(struct stook_front *front, struct stook_pair from, unsigned size, uint32_t generation)
{
        return exchange(front, from, pair(spare_of(from), as_spare(main_of(from))), size, generation);
}

static void landing(struct stook_front *front)
{
        void (*call)(struct stook_front *) = __atomic_load_n(&stook_slot_hooks.landing, __ATOMIC_RELAXED);

        if (STOOK_UNLIKELY(call != NULL))
                call(front);
}

/* Main was seen empty: brings objects. False: nowhere any. */
static bool replace_empty(struct stook_front *front, struct stook_pair seen, bool refill)
{
        uint32_t generation = generation_of(front);
        struct stook_sheaf *full;

        if (generation & 1)
                return false;
        if (spare_of(seen) && stook_sheaf_size(spare_of(seen))) {
                swap_in_spare(front, seen, 0, generation);
                return true;            /* or somebody was faster: the caller looks again */
        }
        stook_pages_step();             /* not only refills and flushes: a program may live on its barns */
        stook_slot_rest();
        full = full_from_barn(front);
        if (!full && refill)
                full = full_from_slabs(front);
        if (!full)
                return false;
        fetch_top(full);
        landing(front);
        install_full(front, full, generation);
        return true;
}

static void *alloc_from_slabs(struct stook_front *front)
{
        void *object;

        if (!stook_slab_fill(front->below->below, NODE, 1, &object, 0))
                return NULL;
        /* After the fill, unlike the kernel: the counts stay exact over failures. */
        stook_count(front->below->counters, STOOK_STAT_alloc_slowpath, 1);
        return object;
}

static void *retry_pop(struct stook_front *front)
{
        if (refused(&stook_slot_hooks.miss_pop) || refused(&stook_slot_hooks.abort_storm))
                return NULL;
        return stook_slot_ops()->pop(front->offset);
}

/* STOOK_STRICT_NUMA: the task's policy says from which node. */
static STOOK_NOINLINE void *alloc_by_policy(struct stook_front *front)
{
        unsigned here = stook_slot_node(), node = stook_os_task_node(here);

        return node == here ? stook_slot_alloc_any(front) : stook_slot_alloc_node(front, node, false);
}

void *stook_slot_alloc_miss(struct stook_front *front)
{
        return STOOK_UNLIKELY(stook_slots_strict) ? alloc_by_policy(front) : stook_slot_alloc_any(front);
}

bool stook_slot_refill(struct stook_front *front)
{
        struct stook_pair seen = look(front);

        return stook_sheaf_size(main_of(seen)) || replace_empty(front, seen, true);
}

void *stook_slot_alloc_any(struct stook_front *front)
{
        struct patience p = { 0 };
        void *object;

        stook_stats_page_tick();
        if (!stook_barns_capacity(front->below))
                return alloc_from_slabs(front);
        for (;;) {
                struct stook_pair seen = look(front);

                if (stook_sheaf_size(main_of(seen))) {
                        object = retry_pop(front);
                        if (STOOK_LIKELY(object != NULL))
                                return object;
                        if (!again_after_abort(&p))
                                break;
                } else if (!again_after_miss(&p) || !replace_empty(front, seen, true)) {
                        break;
                }
        }
        return alloc_from_slabs(front);
}

/* As sole owner: takes all of a sheaf, the bottom object first: a plain copy. */
static size_t take_all(struct stook_sheaf *sheaf, void **objects)
{
        unsigned size = stook_sheaf_size(sheaf);

        memcpy(objects, sheaf->objects, size * sizeof(*objects));
        __atomic_store_n(&sheaf->word, sheaf->word + (uint64_t)size * STOOK_SHEAF_POP, __ATOMIC_RELAXED);
        return size;
}

/*
 * A whole sheaf of objects from the barn, past the slot; installed, if it has more than are wanted: sheaves are not
 * all of one capacity. What was got directly; *@again: the slot is worth another look.
 */
static size_t barn_gives_all(struct stook_front *front, size_t want, void **objects, bool *again)
{
        uint32_t generation = generation_of(front);
        struct stook_sheaf *full = full_from_barn(front);
        size_t n;

        *again = full;
        if (!full)
                return 0;
        if (STOOK_UNLIKELY(stook_sheaf_size(full) > want)) {
                install_full(front, full, generation);
                return 0;
        }
        n = take_all(full, objects);
        dispose(front, full);
        return n;
}

/* Main was seen empty, @want objects are wanted. What was got directly; *@again: the slot is worth another look. */
static size_t alloc_more(struct stook_front *front, struct stook_pair seen, size_t want, void **objects,
                         bool *again)
{
        const struct stook_sheaf *spare = spare_of(seen);

        if (want < stook_barns_capacity(front->below) || (spare && stook_sheaf_size(spare))) {
                *again = replace_empty(front, seen, false);
                return 0;
        }
        return barn_gives_all(front, want, objects, again);
}

size_t stook_slot_alloc_bulk(struct stook_front *front, size_t n, void **objects)
{
        struct patience p = { 0 };
        size_t got = 0;
        bool again = stook_barns_capacity(front->below);

        while (again && got < n) {
                size_t k = stook_slot_ops()->pop_n(front->offset, n - got, objects + got);

                if (!k) {
                        struct stook_pair seen = look(front);

                        if (stook_sheaf_size(main_of(seen)))
                                again = again_after_abort(&p);
                        else if (again_after_miss(&p))
                                k = alloc_more(front, seen, n - got, objects + got, &again);
                        else
                                again = false;
                }
                got += k;
                if (k)
                        p = (struct patience){ 0 };
        }
        return got;
}

/* ---- free ---- */

static struct stook_sheaf *new_empty(struct stook_front *front)
{
        struct stook_barns *barns = front->below;
        struct stook_sheaf *empty;

        if (refused(&stook_slot_hooks.trade_fail))
                return NULL;
        empty = stook_barn_get_empty(barns, NODE);
        return empty ? empty : stook_sheaf_new(barns->cache_index, stook_barns_capacity(barns), NODE, barns->counters);
}

/* The table above, right column. */
static void install_empty(struct stook_front *front, struct stook_sheaf *empty, uint32_t generation)
{
        for (unsigned tries = 0; tries < LANDINGS_MAX; tries++) {
                struct stook_pair   from = look(front), to;
                struct stook_sheaf *main = main_of(from), *spare = spare_of(from), *left = NULL;
                unsigned size = stook_sheaf_size(main);

                if (size < stook_sheaf_capacity(main)) {
                        if (spare)
                                break;
                        to = pair(main, empty);
                } else if (is_zero(main)) {
                        to = pair(empty, spare);
                } else if (!spare) {
                        to = pair(empty, main);
                } else if (!stook_sheaf_full(spare)) {
                        to = pair(spare, main);
                        left = empty;
                } else {
                        to = pair(empty, spare);
                        left = main;
                }
                if (exchange(front, from, to, size, generation)) {
                        dispose(front, left);
                        return;
                }
        }
        dispose(front, empty);
}

/*
 * Many objects are to be freed: an empty sheaf, a new one too, but only where it can be kept: in the slot
 * (@room_in_slot), or in the barn once it is full. Otherwise the slabs take the objects just as well.
 */
static struct stook_sheaf *empty_for_bulk(struct stook_front *front, bool room_in_slot)
{
        struct stook_barns *barns = front->below;
        struct stook_sheaf *empty = stook_barn_get_empty(barns, NODE);

        if (empty || !(room_in_slot || stook_barn_has_room(barns, NODE)))
                return empty;
        return stook_sheaf_new(barns->cache_index, stook_barns_capacity(barns), NODE, barns->counters);
}

/* Main was seen full: makes room. False: none to be had. */
static bool replace_full(struct stook_front *front, struct stook_pair seen, bool bulk)
{
        uint32_t generation = generation_of(front);
        struct stook_sheaf *main = main_of(seen), *spare = spare_of(seen), *empty;
        unsigned size = stook_sheaf_size(main);

        if (generation & 1)
                return false;
        if (spare && !stook_sheaf_full(spare)) {
                swap_in_spare(front, seen, size, generation);
                return true;
        }
        empty = bulk ? empty_for_bulk(front, is_zero(main) || !spare) : new_empty(front);
        if (!empty) {
                /* No memory for a sheaf: main itself becomes the empty one. */
                if (bulk || is_zero(main))
                        return false;
                if (!exchange(front, seen, pair(&stook_sheaf_zero, spare), size, generation))
                        return true;
                stook_barn_flush(front->below, main);
                empty = main;
        }
        fetch_bottom(empty);
        landing(front);
        install_empty(front, empty, generation);
        return true;
}

/* Main was seen full and the barn will be asked: a step of ageing. Here, not in replace_full, for the depth of the stack. */
static void rest_before_barn(struct stook_pair seen)
{
        if (!spare_of(seen) || stook_sheaf_full(spare_of(seen)))
                stook_slot_rest();
}

static void free_to_slabs(struct stook_front *front, void *object)
{
        stook_count(front->below->counters, STOOK_STAT_free_slowpath, 1);
        stook_slab_drain(front->below->below, 1, &object);
}

static enum stook_push retry_push(struct stook_front *front, void *object)
{
        if (refused(&stook_slot_hooks.miss_push) || refused(&stook_slot_hooks.abort_storm))
                return STOOK_PUSH_MISS;
        return stook_slot_ops()->push(front->offset, object);
}

void stook_slot_free_miss(struct stook_front *front, void *object,
                          void (*on_double)(struct stook_front *, void *))
{
        struct patience p = { 0 };

        if (STOOK_UNLIKELY(stook_slots_by_node) && !refused(&stook_slot_hooks.miss_push) &&
            !refused(&stook_slot_hooks.abort_storm) && stook_slot_push_home(front, object))
                return;
        stook_stats_page_tick();
        if (STOOK_UNLIKELY(stook_slots_by_node) && stook_slot_free_remote(front, object, on_double))
                return;
        while (stook_barns_capacity(front->below)) {
                struct stook_pair seen = look(front);

                if (!stook_sheaf_full(main_of(seen))) {
                        enum stook_push answer = retry_push(front, object);

                        if (STOOK_LIKELY(answer == STOOK_PUSH_DONE))
                                return;
                        if (answer == STOOK_PUSH_DOUBLE) {
                                on_double(front, object);
                                return;
                        }
                        if (!again_after_abort(&p))
                                break;
                        continue;
                }
                /* A full main refuses before it compares. Taken off again, the object is free once, not twice. */
                if (stook_slot_ops()->pop_if(front->offset, object)) {
                        on_double(front, object);
                        continue;
                }
                rest_before_barn(seen);
                if (!again_after_miss(&p) || !replace_full(front, seen, false))
                        break;
        }
        free_to_slabs(front, object);
}

/* As sole owner of an empty sheaf: fills it, as pushes would. */
static void put_all(struct stook_sheaf *empty, void *const *objects)
{
        memcpy(empty->objects, objects, empty->capacity * sizeof(*objects));
        __atomic_store_n(&empty->word, empty->word + empty->capacity, __ATOMIC_RELAXED);
}

/* A whole sheaf of objects into the barn, past the slot. 0: no room there, or fewer than a sheaf; nothing done. */
static size_t barn_takes_all(struct stook_front *front, size_t want, void *const *objects)
{
        struct stook_sheaf *empty = empty_for_bulk(front, false);
        unsigned capacity;

        if (!empty)
                return 0;
        capacity = empty->capacity;
        if (STOOK_LIKELY(capacity <= want)) {
                put_all(empty, objects);
                if (stook_barn_put_full(front->below, NODE, empty))
                        return capacity;
                __atomic_store_n(&empty->word, empty->word - capacity, __ATOMIC_RELAXED);
        }
        dispose(front, empty);
        return 0;
}

/* Main was seen full, @want objects are to go. What went directly; *@again: the slot is worth another look. */
static size_t free_more(struct stook_front *front, struct stook_pair seen, size_t want, void *const *objects,
                        bool *again)
{
        const struct stook_sheaf *spare = spare_of(seen);
        size_t n;

        if (want < stook_barns_capacity(front->below) || !spare || !stook_sheaf_full(spare)) {
                rest_before_barn(seen);
                *again = replace_full(front, seen, true);
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
        bool again = stook_barns_capacity(front->below);

        while (again && put < n) {
                size_t k = stook_slot_ops()->push_n(front->offset, n - put, objects + put);

                if (!k) {
                        struct stook_pair seen = look(front);

                        if (!stook_sheaf_full(main_of(seen)))
                                again = again_after_abort(&p);
                        else if (again_after_miss(&p))
                                k = free_more(front, seen, n - put, objects + put, &again);
                        else
                                again = false;
                }
                put += k;
                if (k)
                        p = (struct patience){ 0 };
        }
        return put;
}
