/*
 * Purpose: bound the bytes that the barns of a node keep, over all caches, and lend what is there to those
 * caches that trade. A cache that goes idle with full sheaves in its barn would otherwise keep its part of
 * the budget from all others.
 *
 * Place: called by barn.c (bookings) and barn_refill.c (after a flush); evicts through barn_refill.c.
 * A refused booking leaves a note. Whoever flushes next, which is the refused caller as a rule, moves a hand
 * over all barns: one that traded since the hand last passed is spared once, the first other one loses a full
 * sheaf (second chance: F. J. Corbato, "A Paging Experiment with the Multics System", 1968). So room goes to
 * where trades are, at the price of one more flush for a flush.
 *
 * Invariants:
 *  I1 booked = bytes of the objects in full stacks, plus those of sheaves on their way in or out.
 * Concurrency: one relaxed counter for each node, on a line of its own. M1: visits. A visitor raises it
 *  (acquire) before it takes a sheaf of another cache and lowers it (release) when the objects are in their
 *  slabs; stook_barns_close sets `closed` and waits for the rest to be 0 (acquire): then no visitor holds
 *  anything, and later ones turn away.
 */
#include "barn/barn.h"
#include "os/os.h"
#include "pages/span.h"

#define NODES_MAX 1024                  /* the kernel's limit; untouched lines cost nothing */
#define CLOSED UINT32_C(0x80000000)
/* Barns the hand passes in one step: bounds the step where thousands of caches exist. Arbitrary. */
#define HAND_STEPS 128
/* For a visitor's eviction, microseconds as a rule; a second is for one that was preempted. */
#define CLOSE_WAITS 1000
/* Of the pages in use on a node: what its barns may keep, or so much. So nobody need know how much memory there is. */
#define SHARE       8
#define SHARE_LEAST ((uint64_t)1 << 20)
#define CLOSE_WAIT_NS 1000000

static struct {
        uint64_t booked;                /* atomic; bytes */
        uint32_t refused;               /* atomic, a hint */
} STOOK_ALIGNED(STOOK_CACHELINE) budget[NODES_MAX];

static uint64_t budget_bytes = STOOK_BARN_NODE_BYTES;   /* at most */
static struct stook_barns *hand;        /* atomic, a hint: where the next step begins */

void stook_barn_set_budget(size_t node_bytes)
{
        __atomic_store_n(&budget_bytes, node_bytes, __ATOMIC_RELAXED);
}

uint64_t stook_barn_booked_bytes(unsigned node)
{
        return __atomic_load_n(&budget[node].booked, __ATOMIC_RELAXED);
}

bool stook_barn_book(unsigned node, uint64_t bytes)
{
        uint64_t limit = __atomic_load_n(&budget_bytes, __ATOMIC_RELAXED);
        uint64_t share = stook_pages_taken(node) / SHARE;

        if (share < SHARE_LEAST)
                share = SHARE_LEAST;
        if (limit > share)
                limit = share;
        if (__atomic_add_fetch(&budget[node].booked, bytes, __ATOMIC_RELAXED) <= limit)
                return true;
        __atomic_sub_fetch(&budget[node].booked, bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&budget[node].refused, 1, __ATOMIC_RELAXED);
        return false;
}

void stook_barn_unbook(unsigned node, uint64_t bytes)
{
        __atomic_sub_fetch(&budget[node].booked, bytes, __ATOMIC_RELAXED);
}

bool stook_barns_visit(struct stook_barns *barns)
{
        if (!(__atomic_fetch_add(&barns->visits, 1, __ATOMIC_ACQUIRE) & CLOSED))
                return true;
        stook_barns_leave(barns);
        return false;
}

void stook_barns_leave(struct stook_barns *barns)
{
        __atomic_fetch_sub(&barns->visits, 1, __ATOMIC_RELEASE);
}

/* One barn passed by the hand. True: it lost a sheaf. */
static bool visit(struct stook_barns *barns, unsigned node)
{
        struct stook_barn *barn = barns->node + node;
        bool evicted = false;

        if (!stook_tagged_stack_count_racy(&barn->full) ||
            (__atomic_fetch_and(&barn->traded, ~STOOK_BARN_LENT, __ATOMIC_RELAXED) & STOOK_BARN_LENT))
                return false;
        if (stook_barns_visit(barns)) {
                evicted = stook_barn_evict(barns, node);
                stook_barns_leave(barns);
        }
        return evicted;
}

void stook_barn_lend(struct stook_barns *self, unsigned node)
{
        struct stook_barns *at;
        bool evicted = false;

        if (STOOK_LIKELY(!__atomic_load_n(&budget[node].refused, __ATOMIC_RELAXED)) || stook_lock_may_not_wait() ||
            !__atomic_exchange_n(&budget[node].refused, 0, __ATOMIC_RELAXED))
                return;
        at = __atomic_load_n(&hand, __ATOMIC_ACQUIRE);
        for (unsigned steps = 0; steps < HAND_STEPS && !evicted; steps++) {
                if (!at)
                        at = stook_barns_first();
                if (at != self)
                        evicted = visit(at, node);
                at = at->next;
        }
        __atomic_store_n(&hand, at, __ATOMIC_RELEASE);
}

bool stook_barns_close(struct stook_barns *barns)
{
        uint32_t v = __atomic_or_fetch(&barns->visits, CLOSED, __ATOMIC_ACQUIRE);

        for (unsigned waits = 0; v != CLOSED; waits++) {
                if (waits == CLOSE_WAITS) {
                        stook_barns_open(barns);
                        return false;
                }
                stook_os_futex_wait(&barns->visits, v, CLOSE_WAIT_NS);
                v = __atomic_load_n(&barns->visits, __ATOMIC_ACQUIRE);
        }
        return true;
}

void stook_barns_open(struct stook_barns *barns)
{
        __atomic_and_fetch(&barns->visits, ~CLOSED, __ATOMIC_RELEASE);
}

void stook_barns_fork_child(struct stook_barns *barns)
{
        __atomic_and_fetch(&barns->visits, CLOSED, __ATOMIC_RELAXED);
}
