/*
 * Purpose: capacity and limits of barns that live. A tuner sets them; otherwise the rate of misses
 * grows and shrinks them.
 *
 * Place: called by barn.c (init, gets, puts), barn_refill.c (refills), barn_idle.c (reaps), cache
 * (tuning). A cache swings when it flushes sheaves for lack of room and soon fills as many from its
 * slabs: its users free and allocate, in turn, more objects than slot and barn hold. After every
 * STOOK_SWINGS of them its sheaves become larger, as far as a slot may keep of one cache. Then its
 * barns get room for twice as many sheaves, as far as they may keep of one cache. So what swings
 * stays above the slabs.
 *
 * What waits for readers comes back in bursts: nothing of it can be used in between, and all that
 * one grace period held comes at once. A cache that swings then gets room for the whole burst in
 * one step, as far as the barns of a node may keep it. A cache that goes on swinging with all the
 * room of one cache gets the same, in steps (I4).
 *
 * A sheaf that comes from the barn counts as a swing, too, of less weight: short sheaves
 * (STOOK_BARN_SHORT) go to and from there all the time. Those of large objects hold a few, one, or
 * none. They grow to STOOK_SHEAF_FEW_MOST objects, by a budget of their own, which goes by the
 * pages in use (I2).
 *
 * A cache shrinks when the idle reaper finds that nothing was asked of its barns, and nothing taken
 * from its sheaves on the reaping thread's slot, since the last reap.
 * Sheaves in use are left alone: they go when they are empty (barn_stacks.c).
 *
 * Invariants:
 *  I1 what caches have grown by, up to STOOK_SLOT_WIDE_BYTES each, keeps at most
 *     STOOK_SLOT_GROWN_BYTES of objects in a slot; or, up to STOOK_SLOT_GROWN_MOST, in all slots
 *     that were used until they grew a quarter of the pages that were in use then. (barn_budget.c
 *     bounds what barns keep.)
 *  I2 what sheaves of more than STOOK_SLOT_CACHE_BYTES have grown by keeps, in all slots that were
 *     used until they grew, at most as much as the pages that were in use then, or
 *     STOOK_FEW_LEAST; and in a slot at most four times what barns of a node may keep.
 *  I3 the steps from `began_at` to the capacity are booked, by one of the two budgets each. A step
 *     is booked before the capacity changes. The thread that lowers the capacity gives back the
 *     steps that it undoes: they follow from the two capacities.
 *  I4 room that a cache gets because it swings beyond STOOK_BARN_CACHE_BYTES is at most
 *     STOOK_BARN_SWING_BYTES, and no more than the pages that the fullest node has in use then. It
 *     ends when the cache is idle, is tuned, or ends. One that is noted during a tune ends when the
 *     cache is idle, and does not change what the tuner set.
 *  I5 capacity, full_limit and the number of their setting change together, by an exchange of a
 *     tuner, or by a compare-and-swap of a thread that grows or shrinks the cache. A tuner turns
 *     growth off before its exchange. Another thread reads the three before it asks whether the
 *     cache grows. So its compare-and-swap fails where a tuner was in between, also where the tuner
 *     set the capacity that there was before.
 * Concurrency: any thread, any instruction. Words are relaxed and each is valid by itself, but for
 *  M1: a tuner's exchange of `room` (release) pairs with the loads of it here (acquire): a thread
 *  that sees the tuner's room sees that growth is off. Two threads that grow a cache at once grow
 *  it once. A reader of an older capacity makes a sheaf of that capacity. Under a tuner growth is
 *  off. Where a user fixed the capacity of all caches (STOOK_CAPACITY) at_least is
 *  STOOK_BARN_FIXED, and only the room of barns grows.
 */
#include "barn/barn_inside.h"
#include "os/os.h"
#include "pages/span.h"

uint32_t stook_barn_slots;

/* Atomic. */
static uint64_t grown;                  /* I1 */
static uint64_t grown_few;              /* I2: in each slot */

static unsigned smaller(uint64_t a, uint64_t b)
{
        return (unsigned)(a < b ? a : b);
}

/* Bytes that came from readers at once, or that the cache swings by. */
static uint64_t burst_of(const struct stook_barns *barns)
{
        return __atomic_load_n(&barns->growth.burst_bytes, __ATOMIC_RELAXED);
}

/* Within STOOK_BARN_CACHE_BYTES, or a burst. */
static uint16_t full_limit_of(const struct stook_barns *barns, unsigned capacity, unsigned wanted,
                              uint64_t burst)
{
        uint64_t bytes = (uint64_t)capacity * barns->below->stride, most = burst;

        if (most < STOOK_BARN_CACHE_BYTES)
                most = STOOK_BARN_CACHE_BYTES;
        wanted = smaller(wanted, STOOK_BARN_LIMIT_MAX);
        return (uint16_t)(bytes ? smaller(wanted, most / bytes) : wanted);
}

static uint32_t full_wanted_of(const struct stook_barns *barns)
{
        return __atomic_load_n(&barns->full_wanted, __ATOMIC_RELAXED);
}

/* I5, M1 */
static struct stook_barn_room room_of(const struct stook_barns *barns)
{
        struct stook_barn_room room;

        __atomic_load(&barns->room, &room, __ATOMIC_ACQUIRE);
        return room;
}

/* I5. False: the room is another one than @from by now. */
static bool change_room(struct stook_barns *barns, struct stook_barn_room from,
                        struct stook_barn_room to)
{
        return __atomic_compare_exchange(&barns->room, &from, &to, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED);
}

/* Return: the room until then. */
static struct stook_barn_room set_room(struct stook_barns *barns, unsigned capacity,
                                       uint16_t full_limit)
{
        struct stook_barn_room room = room_of(barns);

        room.capacity = (uint16_t)capacity;
        room.full_limit = full_limit;
        room.setting++;
        __atomic_exchange(&barns->room, &room, &room, __ATOMIC_RELEASE);        /* M1 */
        return room;
}

/* What a slot may keep of a cache whose sheaves of so many objects have grown. */
static uint64_t most_bytes(uint32_t capacity)
{
        return capacity >= STOOK_SHEAF_FEW ? STOOK_SLOT_WIDE_BYTES : STOOK_SLOT_CACHE_BYTES;
}

/*
 * Objects of larger sheaves: four times as many, or twice where that would be too many. (Sheaves of
 * each capacity that a cache had stay in the pool: fewer steps leave fewer of them.) Large objects:
 * STOOK_SHEAF_FEWER, STOOK_SHEAF_FEW, then STOOK_SHEAF_FEW_MOST, by the other budget (*few). 0: no
 * larger ones.
 */
static uint32_t larger_than(uint32_t capacity, uint32_t stride, bool *few)
{
        uint64_t most = most_bytes(capacity);

        *few = false;
        for (uint32_t times = 4; capacity && times > 1; times /= 2) {
                uint32_t larger = stook_sheaf_round_capacity(times * capacity);

                if (larger <= STOOK_SHEAF_MOST && 2 * (uint64_t)larger * stride <= most)
                        return larger;
        }
        *few = 2 * (uint64_t)stride > STOOK_SLOT_CACHE_BYTES || capacity;
        if (!capacity)
                return 1;
        return capacity < STOOK_SHEAF_FEWER      ? STOOK_SHEAF_FEWER
               : capacity < STOOK_SHEAF_FEW      ? STOOK_SHEAF_FEW
               : capacity < STOOK_SHEAF_FEW_MOST ? STOOK_SHEAF_FEW_MOST : 0;
}

/* What a step of growth keeps more of in a slot: two sheaves. */
static uint64_t step_bytes(uint32_t from, uint32_t to, uint32_t stride)
{
        return 2 * (uint64_t)(to - from) * stride;
}

static uint64_t *sum_of(bool few)
{
        return few ? &grown_few : &grown;
}

/* I3: the capacity was lowered from @was, which the steps from @to led to. */
static void give_back(const struct stook_barns *barns, uint32_t was, uint32_t to)
{
        uint32_t stride = barns->below->stride, next;
        bool few;

        for (; to < was && (next = larger_than(to, stride, &few)) > to; to = next)
                __atomic_fetch_sub(sum_of(few), step_bytes(to, next, stride), __ATOMIC_RELAXED);
}

/* Other caches that still have room for a burst say so again when they swing next. */
static void end_burst(struct stook_barns *barns)
{
        if (!burst_of(barns))
                return;
        __atomic_store_n(&barns->growth.burst_bytes, 0, __ATOMIC_RELAXED);
        stook_barn_expect_burst(0);
}

void stook_barns_end(struct stook_barns *barns)
{
        uint32_t began_at = barns->growth.began_at;

        give_back(barns, set_room(barns, began_at, room_of(barns).full_limit).capacity, began_at);
        end_burst(barns);
}

static void forget_swings(struct stook_barn_growth *growth)
{
        __atomic_store_n(&growth->swings, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&growth->flushed, 0, __ATOMIC_RELAXED);
}

void stook_barns_set(struct stook_barns *barns, unsigned capacity, unsigned full_limit,
                     unsigned empty_limit)
{
        struct stook_barn_room was;

        __atomic_store_n(&barns->growth.at_least, STOOK_BARN_FIXED, __ATOMIC_RELAXED);
        __atomic_store_n(&barns->growth.room_grows, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&barns->full_wanted, smaller(full_limit, STOOK_BARN_LIMIT_MAX),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&barns->empty_limit, smaller(empty_limit, STOOK_BARN_LIMIT_MAX),
                         __ATOMIC_RELAXED);
        was = set_room(barns, capacity, full_limit_of(barns, capacity, full_limit, 0));
        give_back(barns, was.capacity, barns->growth.began_at);
        barns->growth.began_at = capacity;
        forget_swings(&barns->growth);          /* of another cache, or with another capacity */
        end_burst(barns);
}

void stook_barns_let_grow(struct stook_barns *barns)
{
        __atomic_store_n(&barns->growth.at_least, stook_barns_capacity(barns), __ATOMIC_RELAXED);
        stook_barns_let_room_grow(barns);
}

void stook_barns_let_room_grow(struct stook_barns *barns)
{
        __atomic_store_n(&barns->growth.room_grows, 1, __ATOMIC_RELAXED);
}

static uint64_t pages_in_use(void)
{
        uint64_t bytes = 0;

        for (unsigned node = 0; node < stook_os_node_count(); node++)
                bytes += stook_pages_taken(node);
        return bytes;
}

static uint64_t for_each_slot(uint64_t bytes)
{
        uint32_t slots = __atomic_load_n(&stook_barn_slots, __ATOMIC_RELAXED);

        return slots ? bytes / slots : bytes;
}

/* I2, in one slot. */
static uint64_t few_limit(void)
{
        uint64_t share = pages_in_use(), most = STOOK_FEW_BUDGETS * stook_barn_budget();

        share = for_each_slot(share < STOOK_FEW_LEAST ? STOOK_FEW_LEAST : share);
        return share < most ? share : most;
}

/* I1, in one slot. */
static uint64_t grown_limit(void)
{
        uint64_t share = for_each_slot(pages_in_use() / STOOK_SLOT_GROWN_PART);

        if (share < STOOK_SLOT_GROWN_BYTES)
                return STOOK_SLOT_GROWN_BYTES;
        return share < STOOK_SLOT_GROWN_MOST ? share : STOOK_SLOT_GROWN_MOST;
}

/* False: the budget has no room for @bytes more in each slot. */
static bool book(uint64_t *sum, uint64_t bytes, uint64_t limit)
{
        if (__atomic_add_fetch(sum, bytes, __ATOMIC_RELAXED) <= limit)
                return true;
        __atomic_fetch_sub(sum, bytes, __ATOMIC_RELAXED);
        return false;
}

static bool grows(const struct stook_barns *barns)
{
        return __atomic_load_n(&barns->growth.at_least, __ATOMIC_RELAXED) != STOOK_BARN_FIXED;
}

static bool room_grows(const struct stook_barns *barns)
{
        return __atomic_load_n(&barns->growth.room_grows, __ATOMIC_RELAXED);
}

/*
 * A cache that lives does not go back to 0, which would need an evacuation. False: a tuner turned
 * growth off. If a thread noted the step, and was jumped out of or is gone, the next one takes it.
 */
static bool note_first_step(struct stook_barn_growth *growth, uint32_t capacity)
{
        uint32_t least = 0;

        return __atomic_compare_exchange_n(&growth->at_least, &least, capacity, false,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED) || least == capacity;
}

/* More objects in a sheaf. False: as many as before. */
static bool enlarge(struct stook_barns *barns)
{
        struct stook_barn_room from = room_of(barns), to = from;        /* I5: before grows() */
        uint32_t stride = barns->below->stride, larger;
        uint64_t bytes;
        bool few;

        if (!grows(barns))
                return false;
        larger = larger_than(from.capacity, stride, &few);
        bytes = step_bytes(from.capacity, larger, stride);
        if (larger <= from.capacity ||
            !book(sum_of(few), bytes, few ? few_limit() : grown_limit()))
                return false;
        to.capacity = (uint16_t)larger;
        to.full_limit = full_limit_of(barns, larger, full_wanted_of(barns), burst_of(barns));
        if ((from.capacity || note_first_step(&barns->growth, larger)) &&
            change_room(barns, from, to))
                return true;
        __atomic_fetch_sub(sum_of(few), bytes, __ATOMIC_RELAXED);
        return false;
}

void stook_barns_flushed(struct stook_barns *barns)
{
        if (room_grows(barns))
                __atomic_fetch_add(&barns->growth.flushed, 1, __ATOMIC_RELAXED);
}

static uint32_t swings_to_grow(uint32_t capacity)
{
        return capacity < STOOK_SHEAF_FEWER ? STOOK_SWINGS_FEWER : STOOK_SWINGS_GET;
}

/*
 * A swing by a get, or one by the slabs, which weighs more, but where sheaves hold fewer objects
 * than STOOK_SHEAF_FEW. True: it was the last of as many as make the cache grow.
 */
static bool count_swing(struct stook_barns *barns, bool by_slabs)
{
        struct stook_barn_growth *growth = &barns->growth;
        uint32_t capacity = stook_barns_capacity(barns), enough = swings_to_grow(capacity);
        uint32_t weight = by_slabs && capacity >= STOOK_SHEAF_FEW ? enough / STOOK_SWINGS : 1;

        if (__atomic_add_fetch(&growth->swings, weight, __ATOMIC_RELAXED) < enough)
                return false;
        __atomic_store_n(&growth->swings, 0, __ATOMIC_RELAXED);
        return true;
}

/* Room for @bytes, within what all barns of a node may keep. */
static void expect(struct stook_barns *barns, uint64_t bytes)
{
        uint64_t most = stook_barn_budget();

        if (bytes > most)
                bytes = most;
        if (bytes > burst_of(barns))
                __atomic_store_n(&barns->growth.burst_bytes, (uint32_t)bytes, __ATOMIC_RELAXED);
        stook_barn_expect_burst(burst_of(barns));
}

/* A barn has objects of its own node only: where one node has all of the pages, one barn has. */
static uint64_t pages_of_fullest_node(void)
{
        uint64_t most = 0;

        for (unsigned node = 0; node < stook_os_node_count(); node++) {
                uint64_t bytes = stook_pages_taken(node);

                if (most < bytes)
                        most = bytes;
        }
        return most;
}

/* I4: it swings with all the room that it has. */
static void expect_swing(struct stook_barns *barns)
{
        uint64_t most = pages_of_fullest_node(), had = burst_of(barns);

        if (had < STOOK_BARN_CACHE_BYTES)
                had = STOOK_BARN_CACHE_BYTES;
        if (most > STOOK_BARN_SWING_BYTES)
                most = STOOK_BARN_SWING_BYTES;
        expect(barns, 2 * had < most ? 2 * had : most);
}

/* Twice the room; at least that of a burst. */
static void widen(struct stook_barns *barns)
{
        struct stook_barn_room from = room_of(barns), to = from;        /* I5: before the flag */
        uint64_t bytes = (uint64_t)from.capacity * barns->below->stride, in_burst;
        uint32_t wanted = 2 * from.full_limit;

        if (!room_grows(barns) || !wanted || !bytes)
                return;
        if (full_limit_of(barns, from.capacity, wanted, burst_of(barns)) <= from.full_limit)
                expect_swing(barns);
        in_burst = burst_of(barns) / bytes;
        if (wanted < in_burst)
                wanted = smaller(in_burst, STOOK_BARN_LIMIT_MAX);
        to.full_limit = full_limit_of(barns, from.capacity, wanted, burst_of(barns));
        change_room(barns, from, to);
}

void stook_barns_refilled(struct stook_barns *barns)
{
        struct stook_barn_growth *growth = &barns->growth;
        uint32_t flushed = __atomic_load_n(&growth->flushed, __ATOMIC_RELAXED);

        if (STOOK_LIKELY(!flushed))
                return;
        __atomic_store_n(&growth->flushed, flushed - 1, __ATOMIC_RELAXED);
        if (!count_swing(barns, true))
                return;
        __atomic_store_n(&growth->flushed, 0, __ATOMIC_RELAXED);
        if (!enlarge(barns) || burst_of(barns))
                widen(barns);
}

void stook_barns_returned(struct stook_barns *barns, unsigned node, uint64_t bytes,
                          uint64_t waiting)
{
        uint64_t at_once;

        at_once = __atomic_add_fetch(&barns->node[node].returned, bytes, __ATOMIC_RELAXED);
        expect(barns, at_once < waiting ? waiting : at_once);
}

/* Racily, whether sheaves that are not short may grow. Where not, a get stores nothing here. */
static bool has_step(const struct stook_barns *barns)
{
        uint64_t capacity = stook_barns_capacity(barns), bytes = capacity * barns->below->stride;

        return 2 * capacity <= STOOK_SHEAF_MOST && 4 * bytes <= STOOK_SLOT_WIDE_BYTES &&
               __atomic_load_n(&grown, __ATOMIC_RELAXED) + 2 * bytes <= grown_limit();
}

void stook_barns_swung(struct stook_barns *barns)
{
        if (grows(barns) && (stook_barns_are_short(barns) || has_step(barns)) &&
            count_swing(barns, false))
                enlarge(barns);
}

void stook_barns_used(struct stook_barns *barns)
{
        if (!__atomic_load_n(&barns->growth.used, __ATOMIC_RELAXED))
                __atomic_store_n(&barns->growth.used, 1, __ATOMIC_RELAXED);
}

bool stook_barns_was_used(struct stook_barns *barns)
{
        if (!__atomic_load_n(&barns->growth.used, __ATOMIC_RELAXED))
                return false;
        __atomic_store_n(&barns->growth.used, 0, __ATOMIC_RELAXED);
        return true;
}

void stook_barns_shrink(struct stook_barns *barns)
{
        struct stook_barn_room from = room_of(barns), to = from;        /* I5: before the flag */
        uint32_t least;

        end_burst(barns);
        if (!room_grows(barns))
                return;
        forget_swings(&barns->growth);
        least = __atomic_load_n(&barns->growth.at_least, __ATOMIC_RELAXED);
        /* 0: a first step may be on its way. */
        if (least && from.capacity > least)
                to.capacity = (uint16_t)least;
        to.full_limit = full_limit_of(barns, to.capacity, full_wanted_of(barns), 0);
        if (change_room(barns, from, to))
                give_back(barns, from.capacity, to.capacity);
}
