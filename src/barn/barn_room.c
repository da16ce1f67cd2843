/*
 * Purpose: what a cache keeps in sheaves and barns: how many objects a sheaf has, how many full
 * sheaves a barn; and what of it goes once it is idle. A tuner sets both numbers; otherwise the
 * cache's misses change them.
 *
 * Place: called by barn.c (init, puts, objects past all sheaves), slot (one of STOOK_TICK_CALLS
 * slow calls asks for the cache at hand; its tick reaps), evacuate (reaps), home (retires), rcu
 * (bursts), cache (tuning) and life (the budget, the end of a thread).
 *
 * Growth: stook_barns_decide compares the cache's counters with those at its last decision. A get
 * from a barn counts 1. A put that the barn refused and, after it, a get in vain count 8: the
 * cache's users free and allocate, in turn, more objects than slot and barn hold. (Large objects,
 * whose sheaves are short, are dear to keep: there it counts 1.) From STOOK_GROW_GETS on,
 * or fewer for sheaves of fewer than four objects, the sheaves double, as far as a slot may keep of
 * one cache. If they cannot, and half of that was flushes, the barns get room for twice as many
 * sheaves, as far as they may keep of one cache. So what swings stays above the slabs.
 *
 * What waits for readers comes back in bursts: nothing of it can be used in between, and all that
 * one grace period held comes at once. A cache that grows then gets room for the whole burst in
 * one step, as far as the barns of a node may keep it. A cache that goes on swinging with all the
 * room of one cache gets the same, in steps (I4).
 *
 * Idle: sheaves at the bottom of a full stack that no thread needs hold a few objects each of many
 * slabs. So they pin slabs whose other objects have long been freed. The stack's low-water mark
 * says what was not needed: no thread would have missed the sheaves below it since the last reap
 * (as the thread caches in S. Ghemawat, P. Menage, "TCMalloc"). A cache whose objects are freed and
 * no more allocated has its mark at the count. It goes on giving what arrives to its slabs. A cache
 * shrinks when nothing was asked of its barns, and nothing taken from its sheaves on the reaping
 * thread's slot, since the last reap. Sheaves in use are left alone: they go when they are empty
 * (barn.c).
 *
 * Bytes: the barns of a node keep no more than stook_barn_book allows, over all caches. A put whose
 * booking is refused drains its sheaf. What a cache that went idle has booked comes free when its
 * barn is reaped.
 *
 * Invariants:
 *  I1 what caches have grown by keeps at most STOOK_SLOT_GROWN_BYTES of objects in a slot; or half
 *     of it, until it is a quarter of the pages that were in use then, over all slots that were
 *     used until then. A cache keeps at most twice STOOK_SLOT_CACHE_BYTES in a slot.
 *  I2 large objects, of which a slot keeps no sheaves of STOOK_BARN_SHORT by that, have a budget of
 *     their own. What they have grown by keeps, in all slots that were used until then, at most as
 *     much as the pages that were in use then, or twice STOOK_SLOT_GROWN_BYTES; and in a slot at
 *     most four times what barns of a node may keep.
 *  I3 what the capacity is above `began_at` is booked, in the cache's one of the two budgets. It is
 *     booked before the capacity changes. The thread that lowers the capacity gives back what it
 *     undoes: that follows from the two capacities.
 *  I4 room that a cache gets because it swings beyond STOOK_BARN_CACHE_BYTES is at most half of
 *     what all barns of a node may keep, and no more than the pages that the fullest node has in
 *     use then. It ends when the cache is idle, is tuned, or ends. One that is noted during a tune
 *     ends when the cache is idle, and does not change what the tuner set.
 *  I5 capacity, full_limit and the number of their setting change together, by an exchange of a
 *     tuner, or by a compare-and-swap of a thread that grows or shrinks the cache. A tuner turns
 *     growth off before its exchange. Another thread reads the three before it asks whether the
 *     cache grows. So its compare-and-swap fails where a tuner was in between, also where the tuner
 *     set the capacity that there was before.
 *  I6 booked = bytes of the objects in full stacks, plus those of sheaves on their way in or out.
 * Concurrency: any thread, any instruction. Words are relaxed and each is valid by itself, but for
 *  M1: a tuner's exchange of `room` (release) pairs with the loads of it here (acquire): a thread
 *  that sees the tuner's room sees that growth is off. Two threads that decide on a cache at once
 *  grow it once: both have read the same room. All hints may be wrong: a wrong one costs a flush or
 *  a refill. A reader of an older capacity makes a sheaf of that capacity. Under a tuner growth is
 *  off. Where a user fixed the capacity of all caches (STOOK_CAPACITY) at_least is
 *  STOOK_BARN_FIXED, and only the room of barns grows.
 */
#include "barn/barn_inside.h"
#include "os/os.h"
#include "pages/span.h"

#define NODES_MAX 1024                  /* the kernel's limit; untouched lines cost nothing */

uint32_t stook_barn_slots;

/* Atomic. */
static uint64_t grown, grown_few;       /* I1, I2: in each slot */

static struct {
        uint64_t booked;                /* atomic; bytes; I6 */
} STOOK_ALIGNED(STOOK_CACHELINE) node_bytes[NODES_MAX] STOOK_MOSTLY_UNUSED;

static uint64_t budget_bytes = STOOK_BARN_NODE_BYTES;   /* at most */
static uint64_t burst_bytes;            /* atomic, a hint: that much beyond the share */

static uint64_t smaller(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

/* ---- bytes over all caches ---- */

void stook_barn_set_budget(size_t node_bytes)
{
        __atomic_store_n(&budget_bytes, node_bytes, __ATOMIC_RELAXED);
}

static uint64_t budget(void)
{
        return __atomic_load_n(&budget_bytes, __ATOMIC_RELAXED);
}

uint64_t stook_barn_booked_bytes(unsigned node)
{
        return __atomic_load_n(&node_bytes[node].booked, __ATOMIC_RELAXED);
}

void stook_barn_expect_burst(uint64_t bytes)
{
        uint64_t now = __atomic_load_n(&burst_bytes, __ATOMIC_RELAXED);

        if (bytes ? now < bytes : now)
                __atomic_store_n(&burst_bytes, bytes, __ATOMIC_RELAXED);
}

bool stook_barn_book(unsigned node, uint64_t bytes)
{
        uint64_t share = larger(stook_pages_taken(node) / STOOK_BARN_PART, STOOK_BARN_LEAST) +
                         __atomic_load_n(&burst_bytes, __ATOMIC_RELAXED);

        if (__atomic_add_fetch(&node_bytes[node].booked, bytes, __ATOMIC_RELAXED) <=
            smaller(share, budget()))
                return true;
        stook_barn_unbook(node, bytes);
        return false;
}

void stook_barn_unbook(unsigned node, uint64_t bytes)
{
        __atomic_sub_fetch(&node_bytes[node].booked, bytes, __ATOMIC_RELAXED);
}

static uint64_t pages_in_use(void)
{
        uint64_t bytes = 0;

        for (unsigned node = 0; node < stook_os_node_count(); node++)
                bytes += stook_pages_taken(node);
        return bytes;
}

/* A barn has objects of its own node only: where one node has all of the pages, one barn has. */
static uint64_t pages_of_fullest_node(void)
{
        uint64_t most = 0;

        for (unsigned node = 0; node < stook_os_node_count(); node++)
                most = larger(most, stook_pages_taken(node));
        return most;
}

/* ---- both numbers ---- */

/* Bytes that came from readers at once, or that the cache swings by. */
static uint64_t burst_of(const struct stook_barns *barns)
{
        return __atomic_load_n(&barns->growth.burst_bytes, __ATOMIC_RELAXED);
}

/* Within STOOK_BARN_CACHE_BYTES, or a burst. */
static uint16_t full_limit_of(const struct stook_barns *barns, unsigned capacity, uint64_t wanted,
                              uint64_t burst)
{
        uint64_t bytes = (uint64_t)capacity * barns->slabs->stride;

        wanted = smaller(wanted, STOOK_BARN_LIMIT_MAX);
        return (uint16_t)(bytes ? smaller(wanted, larger(burst, STOOK_BARN_CACHE_BYTES) / bytes)
                                : wanted);
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

/* I2 */
static bool is_few(const struct stook_barns *barns)
{
        return (uint64_t)STOOK_BARN_SHORT * barns->slabs->stride > STOOK_SLOT_CACHE_BYTES;
}

/* Objects of the next larger sheaves; no more than @capacity: there are none. */
static uint32_t next_capacity(const struct stook_barns *barns, uint32_t capacity)
{
        uint32_t next = capacity ? stook_sheaf_round_capacity(2 * capacity) : 1;

        if (is_few(barns))
                return next < STOOK_SHEAF_FEW ? next : STOOK_SHEAF_FEW;
        return next <= STOOK_SHEAF_MOST &&
               (uint64_t)next * barns->slabs->stride <= STOOK_SLOT_CACHE_BYTES ? next : capacity;
}

/* What two sheaves keep in a slot beyond two of @from objects. */
static uint64_t grown_bytes(const struct stook_barns *barns, uint32_t from, uint32_t to)
{
        return 2 * (uint64_t)(to - from) * barns->slabs->stride;
}

static uint64_t *sum_of(const struct stook_barns *barns)
{
        return is_few(barns) ? &grown_few : &grown;
}

/* I1, I2: in one slot. */
static uint64_t sum_limit(const struct stook_barns *barns)
{
        uint32_t slots = __atomic_load_n(&stook_barn_slots, __ATOMIC_RELAXED);
        uint64_t pages = pages_in_use();

        if (!slots)
                slots = 1;
        if (is_few(barns))
                return smaller(larger(pages, 2 * STOOK_SLOT_GROWN_BYTES) / slots,
                               STOOK_FEW_BUDGETS * budget());
        return smaller(larger(pages / STOOK_SLOT_GROWN_PART / slots, STOOK_SLOT_GROWN_BYTES / 2),
                       STOOK_SLOT_GROWN_BYTES);
}

/* I3. False: the budget has no room. */
static bool book(const struct stook_barns *barns, uint64_t bytes)
{
        uint64_t *sum = sum_of(barns);

        if (__atomic_add_fetch(sum, bytes, __ATOMIC_RELAXED) <= sum_limit(barns))
                return true;
        __atomic_fetch_sub(sum, bytes, __ATOMIC_RELAXED);
        return false;
}

/* I3: the capacity was lowered from @was. */
static void give_back(const struct stook_barns *barns, uint32_t was, uint32_t to)
{
        if (was > to)
                __atomic_fetch_sub(sum_of(barns), grown_bytes(barns, to, was), __ATOMIC_RELAXED);
}

/* Other caches that still have room for a burst say so again when they swing next. */
static void end_burst(struct stook_barns *barns)
{
        if (!burst_of(barns))
                return;
        __atomic_store_n(&barns->growth.burst_bytes, 0, __ATOMIC_RELAXED);
        stook_barn_expect_burst(0);
}

/*
 * What a decision goes by. A cache without sheaves gets and frees its objects one by one. Relaxed,
 * and no more than a hint: 32 bits of each.
 */
static struct stook_barn_seen counted(const struct stook_barns *barns, unsigned capacity)
{
        const struct stook_counters *c = barns->slabs->counters;

        return (struct stook_barn_seen){
                .gets = (uint32_t)stook_counted(c, STOOK_STAT_barn_get),
                .refilled = (uint32_t)stook_counted(c, capacity ? STOOK_STAT_barn_get_fail
                                                                : STOOK_STAT_alloc_slowpath),
                .flushed = (uint32_t)stook_counted(c, capacity ? STOOK_STAT_barn_put_fail
                                                               : STOOK_STAT_free_slowpath),
        };
}

static void note(struct stook_barns *barns, struct stook_barn_seen now)
{
        __atomic_store_n(&barns->growth.seen.gets, now.gets, __ATOMIC_RELAXED);
        __atomic_store_n(&barns->growth.seen.refilled, now.refilled, __ATOMIC_RELAXED);
        __atomic_store_n(&barns->growth.seen.flushed, now.flushed, __ATOMIC_RELAXED);
}

/* ---- a tuner ---- */

void stook_barns_end(struct stook_barns *barns)
{
        uint32_t began_at = barns->growth.began_at;

        give_back(barns, set_room(barns, began_at, room_of(barns).full_limit).capacity, began_at);
        end_burst(barns);
}

void stook_barns_set(struct stook_barns *barns, unsigned capacity, unsigned full_limit,
                     unsigned empty_limit)
{
        struct stook_barn_room was;

        __atomic_store_n(&barns->growth.at_least, STOOK_BARN_FIXED, __ATOMIC_RELAXED);
        __atomic_store_n(&barns->growth.room_grows, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&barns->full_wanted, (uint16_t)smaller(full_limit, STOOK_BARN_LIMIT_MAX),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&barns->empty_limit, (uint16_t)smaller(empty_limit, STOOK_BARN_LIMIT_MAX),
                         __ATOMIC_RELAXED);
        was = set_room(barns, capacity, full_limit_of(barns, capacity, full_limit, 0));
        give_back(barns, was.capacity, barns->growth.began_at);
        barns->growth.began_at = (uint16_t)capacity;
        end_burst(barns);
}

void stook_barns_let_grow(struct stook_barns *barns)
{
        __atomic_store_n(&barns->growth.at_least, stook_barns_capacity(barns), __ATOMIC_RELAXED);
        stook_barns_let_room_grow(barns);
}

void stook_barns_let_room_grow(struct stook_barns *barns)
{
        /* Not what was counted of another cache, or with another capacity. */
        note(barns, counted(barns, stook_barns_capacity(barns)));
        __atomic_store_n(&barns->growth.room_grows, 1, __ATOMIC_RELAXED);
}

/* ---- growth ---- */

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

/* More objects in a sheaf. @from: I5. False: as many as before. */
static bool enlarge(struct stook_barns *barns, struct stook_barn_room from)
{
        uint32_t next = next_capacity(barns, from.capacity);
        struct stook_barn_room to = from;
        uint64_t bytes;

        if (!stook_barns_grow(barns) || next <= from.capacity)
                return false;
        bytes = grown_bytes(barns, from.capacity, next);
        if (!book(barns, bytes))
                return false;
        to.capacity = (uint16_t)next;
        to.full_limit = full_limit_of(barns, next, full_wanted_of(barns), burst_of(barns));
        if ((from.capacity || note_first_step(&barns->growth, next)) &&
            change_room(barns, from, to))
                return true;
        __atomic_fetch_sub(sum_of(barns), bytes, __ATOMIC_RELAXED);
        return false;
}

/* Room for @bytes, within what all barns of a node may keep. */
static void expect(struct stook_barns *barns, uint64_t bytes)
{
        bytes = smaller(bytes, budget());
        if (bytes > burst_of(barns))
                __atomic_store_n(&barns->growth.burst_bytes, (uint32_t)bytes, __ATOMIC_RELAXED);
        stook_barn_expect_burst(burst_of(barns));
}

/* Twice the room; at least that of a burst. */
static void widen(struct stook_barns *barns)
{
        struct stook_barn_room from = room_of(barns), to = from;        /* I5: before the flag */
        uint64_t bytes = (uint64_t)from.capacity * barns->slabs->stride;
        uint64_t wanted = 2 * (uint64_t)from.full_limit;

        if (!room_grows(barns) || !wanted || !bytes)
                return;
        /* I4: it swings with all the room that it has. */
        if (full_limit_of(barns, from.capacity, wanted, burst_of(barns)) <= from.full_limit)
                expect(barns, smaller(2 * larger(burst_of(barns), STOOK_BARN_CACHE_BYTES),
                                      smaller(pages_of_fullest_node(), budget() / 2)));
        wanted = larger(wanted, burst_of(barns) / bytes);
        to.full_limit = full_limit_of(barns, from.capacity, wanted, burst_of(barns));
        change_room(barns, from, to);
}

/* None, where another thread has noted more meanwhile. */
static uint32_t since(const uint32_t *seen, uint32_t now)
{
        uint32_t more = now - __atomic_load_n(seen, __ATOMIC_RELAXED);

        return (int32_t)more > 0 ? more : 0;
}

void stook_barns_decide(struct stook_barns *barns)
{
        struct stook_barn_room from = room_of(barns);           /* I5: before the flags */
        const struct stook_barn_seen *seen = &barns->growth.seen;
        struct stook_barn_seen now;
        uint64_t gets, swung;

        if (!room_grows(barns))
                return;
        now = counted(barns, from.capacity);
        gets = since(&seen->gets, now.gets);
        swung = since(&seen->flushed, now.flushed);
        if (!swung)                             /* what comes before a flush is no swing */
                __atomic_store_n(&barns->growth.seen.refilled, now.refilled, __ATOMIC_RELAXED);
        swung = smaller(swung, since(&seen->refilled, now.refilled));
        if (!is_few(barns))
                swung *= STOOK_GROW_SWING;
        if (gets + swung < (from.capacity < 4 ? STOOK_GROW_GETS / 4 : STOOK_GROW_GETS))
                return;
        note(barns, now);
        if (enlarge(barns, from)) {
                if (!from.capacity)             /* it has sheaves from here on */
                        note(barns, counted(barns, 1));
                if (!burst_of(barns))
                        return;
        }
        if (swung >= gets)
                widen(barns);
}

void stook_barns_returned(struct stook_barns *barns, unsigned node, uint64_t bytes,
                          uint64_t waiting)
{
        uint64_t at_once;

        at_once = __atomic_add_fetch(&barns->node[node].returned, bytes, __ATOMIC_RELAXED);
        expect(barns, larger(at_once, waiting));
}

/* ---- idle ---- */

void stook_barns_used(struct stook_barns *barns)
{
        if (!__atomic_load_n(&barns->growth.used, __ATOMIC_RELAXED))
                __atomic_store_n(&barns->growth.used, 1, __ATOMIC_RELAXED);
}

static bool was_used(struct stook_barns *barns)
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
        note(barns, counted(barns, from.capacity));
        least = __atomic_load_n(&barns->growth.at_least, __ATOMIC_RELAXED);
        /* 0: a first step may be on its way. */
        if (least && from.capacity > least)
                to.capacity = (uint16_t)least;
        to.full_limit = full_limit_of(barns, to.capacity, full_wanted_of(barns), 0);
        if (change_room(barns, from, to))
                give_back(barns, from.capacity, to.capacity);
}

static bool was_asked(struct stook_barn *barn)
{
        if (!__atomic_load_n(&barn->asked, __ATOMIC_RELAXED))
                return false;
        __atomic_store_n(&barn->asked, 0, __ATOMIC_RELAXED);
        return true;
}

static bool is_too_soon(struct stook_barn *barn, const struct stook_idle *idle)
{
        return idle->now_ms - __atomic_load_n(&barn->seen_ms, __ATOMIC_RELAXED) < idle->after_ms &&
               idle->takes == __atomic_load_n(&barn->seen_takes, __ATOMIC_RELAXED);
}

void stook_barn_reap_idle(struct stook_barns *barns, unsigned node, struct stook_idle *idle)
{
        struct stook_barn *barn = barns->node + node;
        uint32_t unneeded = __atomic_load_n(&barn->low, __ATOMIC_RELAXED);
        bool evicted = false;

        if (is_too_soon(barn, idle))
                return;
        for (; unneeded && idle->work && stook_barn_evict(barns, node); unneeded--, idle->work--)
                evicted = true;
        if (!idle->work) {
                /* The next step goes on. */
                __atomic_store_n(&barn->low, unneeded, __ATOMIC_RELAXED);
                return;
        }
        __atomic_store_n(&barn->low, stook_tagged_stack_count_racy(&barn->full), __ATOMIC_RELAXED);
        /* The next look at slots comes here, too. */
        if (!idle->barns_only)
                __atomic_store_n(&barn->seen_ms, idle->now_ms, __ATOMIC_RELAXED);
        __atomic_store_n(&barn->seen_takes, idle->takes, __ATOMIC_RELAXED);
        if (was_asked(barn)) {
                __atomic_store_n(&barn->slabs_given, 0, __ATOMIC_RELAXED);
                return;
        }
        if (!was_used(barns))
                stook_barns_shrink(barns);
        /* Without sheaves nothing is asked of the barn: what its slabs got is not known. */
        if (evicted || !stook_barns_capacity(barns) ||
            !__atomic_load_n(&barn->slabs_given, __ATOMIC_RELAXED)) {
                stook_slabs_give_kept(barns->slabs, node);
                __atomic_store_n(&barn->slabs_given, 1, __ATOMIC_RELAXED);
        }
}

/* What other threads put meanwhile stays: one that only frees would keep this one here. */
static void give_all_of(struct stook_barns *barns)
{
        for (unsigned node = 0; node < stook_os_node_count(); node++) {
                uint32_t left = stook_tagged_stack_count_racy(&barns->node[node].full);

                while (left-- && stook_barn_evict(barns, node))
                        ;
                /* Half of the memory is free: small sheaves from here on, until an ask. */
                __atomic_store_n(&barns->node[node].unasked, UINT32_MAX, __ATOMIC_RELAXED);
                stook_slabs_give_kept(barns->slabs, node);
        }
}

void stook_barns_give_all(void)
{
        for (struct stook_barns *at = stook_barns_first(); at; at = at->next) {
                if (!stook_barns_visit_begin(at))
                        continue;
                stook_barns_shrink(at);
                give_all_of(at);
                stook_barns_visit_end(at);
        }
}

void stook_barns_slabs_changed(struct stook_barns *barns)
{
        for (unsigned node = 0; node < stook_os_node_count(); node++)
                __atomic_store_n(&barns->node[node].slabs_given, 0, __ATOMIC_RELAXED);
}

void stook_barn_retire(struct stook_barns *barns, unsigned node, struct stook_sheaf *sheaf)
{
        if (stook_sheaf_size(sheaf)) {
                stook_barn_drain(barns, sheaf);
                __atomic_store_n(&barns->node[node].slabs_given, 0, __ATOMIC_RELAXED);
        }
        if (!stook_barn_push_empty(barns, node, sheaf))
                stook_sheaf_delete(sheaf, barns->slabs->counters);
}
