/*
 * Purpose: see slot_rcu.h.
 *
 * Taking a sheaf off from outside is as in slot_drain.c: exchanged for NULL, then a membarrier, and only then is it
 * looked at: a push that had loaded it has committed, or is aborted.
 *
 * Transit: two counts, and newcomers raise the one that the last waiter did not look at: so who waits is not kept by a
 * stream of newcomers, and still has seen both counts zero once after it began.
 *
 * Concurrency: M1: who raises a count does so before he takes a sheaf by a releasing read-modify-write; who waits
 *  has looked for the sheaf there, acquiring, before he looks at the counts. So if the sheaf was gone he sees the
 *  count. M2: the release of a count pairs with the waiter's acquire: the submission is over.
 */
#include <stdint.h>

#include "base/thread.h"
#include "os/os.h"
#include "slot/slot_rcu.h"
#include "slot/slot_regions.h"

void (*stook_slot_rcu_submit)(struct stook_sheaf *sheaf);

#define WAIT_NS 1000000

static uint32_t phase;                  /* atomic, a hint: which count newcomers raise */
static uint32_t in_transit[2] STOOK_ALIGNED(STOOK_CACHELINE);   /* M1, M2 */

/* The thread's own share of a count, for the child of a fork in a handler. */
static unsigned mine(unsigned at)
{
        return stook_self->barred >> (at ? STOOK_SELF_TRANSIT1_SHIFT : STOOK_SELF_TRANSIT0_SHIFT) & STOOK_SELF_TRANSIT_MASK;
}

static uint8_t one(unsigned at)
{
        return (uint8_t)(1 << (at ? STOOK_SELF_TRANSIT1_SHIFT : STOOK_SELF_TRANSIT0_SHIFT));
}

int stook_transit_enter(void)
{
        unsigned at = __atomic_load_n(&phase, __ATOMIC_RELAXED);

        if (STOOK_UNLIKELY(mine(at) == STOOK_SELF_TRANSIT_MASK))
                return -1;
        stook_self->barred = (uint8_t)(stook_self->barred + one(at));
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        __atomic_fetch_add(&in_transit[at], 1, __ATOMIC_SEQ_CST);       /* M1 */
        return (int)at;
}

void stook_transit_leave(int ticket)
{
        __atomic_fetch_sub(&in_transit[ticket], 1, __ATOMIC_RELEASE);   /* M2 */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        stook_self->barred = (uint8_t)(stook_self->barred - one((unsigned)ticket));
}

bool stook_transit_wait(void)
{
        if (mine(0) || mine(1))
                return false;
        for (unsigned at = 0; at < 2; at++) {
                uint32_t n;

                __atomic_store_n(&phase, !at, __ATOMIC_RELAXED);
                while ((n = __atomic_load_n(&in_transit[at], __ATOMIC_SEQ_CST)))
                        stook_os_futex_wait(&in_transit[at], n, WAIT_NS);
        }
        return true;
}

void stook_transit_fork_child(void)
{
        in_transit[0] = mine(0);
        in_transit[1] = mine(1);
}

/* ---- open sheaves ---- */

static struct stook_sheaf **here(uint32_t offset)
{
        char *own = (char *)stook_slot_ops()->own();

        return own ? &((struct stook_line *)(own + offset))->rcu_free : NULL;
}

bool stook_slot_rcu_is_open(uint32_t offset)
{
        struct stook_sheaf **place = here(offset);

        return place && __atomic_load_n(place, __ATOMIC_RELAXED);
}

/* The thread may have left the slot meanwhile: it does not matter whose sheaf it is. */
bool stook_slot_rcu_open(uint32_t offset, struct stook_sheaf *sheaf, uint64_t round)
{
        struct stook_sheaf **place = here(offset), *none = NULL;

        /* Its header is nobody's until it is submitted. */
        __atomic_store_n(&sheaf->moved_node, (int64_t)round, __ATOMIC_RELAXED);
        return place && __atomic_compare_exchange_n(place, &none, sheaf, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static size_t detach_slot(unsigned slot, unsigned first, unsigned end, uint64_t round, struct stook_link **sheaves)
{
        size_t left = 0;

        for (unsigned index = first; index < end; index++) {
                struct stook_line *line = stook_slots_line(slot, index);
                struct stook_sheaf *sheaf = line ? __atomic_load_n(&line->rcu_free, __ATOMIC_ACQUIRE) : NULL;

                if (!sheaf)
                        continue;
                /* Sheaf memory is type-stable: the round of a sheaf that has just gone is only wrong. */
                if ((uint64_t)__atomic_load_n(&sheaf->moved_node, __ATOMIC_RELAXED) > round) {
                        left++;
                        continue;
                }
                sheaf = __atomic_exchange_n(&line->rcu_free, NULL, __ATOMIC_ACQ_REL);   /* M1 */
                if (sheaf) {
                        __atomic_store_n(&sheaf->link.next, *sheaves, __ATOMIC_RELAXED);
                        *sheaves = &sheaf->link;
                }
        }
        return left;
}

static size_t detach(unsigned first, unsigned end, uint64_t round, struct stook_link **sheaves)
{
        size_t left = 0;

        *sheaves = NULL;
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                if (!stook_drain_skips(slot))
                        left += detach_slot(slot, first, end, round, sheaves);
        return left;
}

struct stook_link *stook_slot_rcu_detach(unsigned first, unsigned end, uint64_t round, int *ticket)
{
        struct stook_link *sheaves = NULL;

        *ticket = stook_transit_enter();
        if (*ticket >= 0)
                detach(first, end, round, &sheaves);
        return sheaves;
}

void stook_slot_rcu_lose(int ticket)
{
        if (ticket >= 0)
                stook_transit_leave(ticket);
}

void stook_slot_rcu_hand_on(struct stook_link *sheaves, int ticket)
{
        while (sheaves) {
                struct stook_sheaf *sheaf = stook_container_of(sheaves, struct stook_sheaf, link);

                sheaves = sheaves->next;
                stook_slot_rcu_submit(sheaf);
        }
        stook_slot_rcu_lose(ticket);
}

/* Is any due? A look without the mutex, so that there is no barrier for nothing. */
static size_t count(unsigned first, unsigned end, uint64_t round, bool *due)
{
        size_t n = 0;

        *due = false;
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                for (unsigned index = first; index < end; index++) {
                        struct stook_line *line = stook_slots_line(slot, index);
                        struct stook_sheaf *sheaf = line ? __atomic_load_n(&line->rcu_free, __ATOMIC_ACQUIRE) : NULL;

                        if (!sheaf)
                                continue;
                        n++;
                        if ((uint64_t)__atomic_load_n(&sheaf->moved_node, __ATOMIC_RELAXED) <= round)
                                *due = true;
                }
        return n;
}

size_t stook_slot_rcu_drain(unsigned first, unsigned end, uint64_t round, bool wait)
{
        struct stook_link *sheaves;
        bool due;
        size_t left = count(first, end, round, &due);
        int ticket;

        if (!due)
                return left;
        ticket = stook_transit_enter();
        if (ticket < 0)
                return left;
        if (stook_drain_begin(wait)) {
                left = detach(first, end, round, &sheaves);
                if (sheaves && !stook_drain_settle())
                        sheaves = NULL;                         /* never ours, never anybody's: slot_drain.c I2 */
                stook_drain_end();
                stook_slot_rcu_hand_on(sheaves, ticket);
                return left;
        }
        stook_transit_leave(ticket);
        return left;
}
