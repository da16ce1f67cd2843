/*
 * Purpose: bound the bytes that the barns of a node keep, over all caches, and rebalance them. A
 * cache that goes idle with full sheaves in its barn would otherwise keep its part of the budget
 * from all other caches.
 *
 * Place: called by barn_stacks.c (bookings) and barn_refill.c (at the end of a flush, and of a put
 * that drained); evicts through barn_refill.c. A booking that is refused leaves a note. The caller
 * of the refused put drains its sheaf, finds the note as a rule, and moves a hand over all barns.
 * The hand spares a barn once if a sheaf was asked of it since the last pass. The first other barn
 * loses a full sheaf (second chance: F. J. Corbato, "A Paging Experiment with the Multics System",
 * 1968). So room goes to caches in use, for one more drain for each drain.
 *
 * Invariants:
 *  I1 booked = bytes of the objects in full stacks, plus those of sheaves on their way in or out.
 * Concurrency: one relaxed counter for each node, on a line of its own. M1: visits. A visitor
 *  raises the count (acquire) before it takes a sheaf of another cache, and lowers it (release)
 *  when the objects are in their slabs. stook_barns_close sets `closed` and waits for the rest to
 *  be 0 (acquire). Then no visitor holds anything, and later ones turn away.
 */
#include "barn/barn_inside.h"
#include "os/os.h"
#include "pages/policy.h"
#include "pages/span.h"

#define NODES_MAX 1024                  /* the kernel's limit; untouched lines cost nothing */
/* What the barns yield at each rise, at most: twice what the process rose by, as a rule. */
#define YIELD_BYTES   ((size_t)256 << 10)
#define YIELD_SHEAVES 16
#define CLOSED UINT32_C(0x80000000)
/* Barns that one step passes: a bound where thousands of caches exist. Arbitrary. */
#define HAND_STEPS 128
/* An eviction takes microseconds as a rule. A second is for a visitor that was preempted. */
#define CLOSE_WAITS 1000
/*
 * Barns of a node may keep this share of its pages in use, or SHARE_LEAST; and as much as readers
 * gave back at once, or as a cache swings by (barn_growth.c I4). So the bound needs no knowledge of
 * how much memory the machine has.
 */
#define SHARE       8
#define SHARE_LEAST ((uint64_t)1 << 20)
#define CLOSE_WAIT_NS 1000000

static struct {
        uint64_t booked;                /* atomic; bytes */
        uint32_t refused;               /* atomic, a hint */
        uint32_t rises;                 /* atomic, a hint: stook_pages_rises() at the last yield */
} STOOK_ALIGNED(STOOK_CACHELINE) budget[NODES_MAX] STOOK_MOSTLY_UNUSED;

static uint64_t budget_bytes = STOOK_BARN_NODE_BYTES;   /* at most */
static uint64_t burst_bytes;            /* atomic, a hint: that much beyond the share */
static struct stook_barns *hand;        /* atomic, a hint: where the next step begins */

void stook_barn_set_budget(size_t node_bytes)
{
        __atomic_store_n(&budget_bytes, node_bytes, __ATOMIC_RELAXED);
}

uint64_t stook_barn_budget(void)
{
        return __atomic_load_n(&budget_bytes, __ATOMIC_RELAXED);
}

uint64_t stook_barn_booked_bytes(unsigned node)
{
        return __atomic_load_n(&budget[node].booked, __ATOMIC_RELAXED);
}

void stook_barn_expect_burst(uint64_t bytes)
{
        uint64_t now = __atomic_load_n(&burst_bytes, __ATOMIC_RELAXED);

        if (bytes ? now < bytes : now)
                __atomic_store_n(&burst_bytes, bytes, __ATOMIC_RELAXED);
}

bool stook_barn_book(unsigned node, uint64_t bytes)
{
        uint64_t limit = __atomic_load_n(&budget_bytes, __ATOMIC_RELAXED);
        uint64_t share = stook_pages_taken(node) / SHARE;

        if (share < SHARE_LEAST)
                share = SHARE_LEAST;
        share += __atomic_load_n(&burst_bytes, __ATOMIC_RELAXED);
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

bool stook_barns_visit_begin(struct stook_barns *barns)
{
        if (!(__atomic_fetch_add(&barns->visits, 1, __ATOMIC_ACQUIRE) & CLOSED))
                return true;
        stook_barns_visit_end(barns);
        return false;
}

void stook_barns_visit_end(struct stook_barns *barns)
{
        uint32_t visits = __atomic_load_n(&barns->visits, __ATOMIC_RELAXED);

        /*
         * The count is 0 in a child of a fork that a handler made on top of this visit: the child's
         * repair forgot all visits.
         */
        while ((visits & ~CLOSED) &&
               !__atomic_compare_exchange_n(&barns->visits, &visits, visits - 1, true,
                                            __ATOMIC_RELEASE, __ATOMIC_RELAXED))
                ;
}

/*
 * The hand looks at one barn. Return: bytes of the sheaf that the barn lost, and 1; 0: it lost
 * none. After the visit these barns may be another cache's.
 */
static size_t take_from(struct stook_barns *barns, unsigned node)
{
        struct stook_barn *barn = barns->node + node;
        size_t bytes = 0;

        if (!stook_tagged_stack_count_racy(&barn->full) ||
            (__atomic_fetch_and(&barn->asked, ~STOOK_BARN_REBALANCE, __ATOMIC_RELAXED) &
             STOOK_BARN_REBALANCE))
                return 0;
        if (stook_barns_visit_begin(barns)) {
                if (stook_barn_evict(barns, node))
                        bytes = (size_t)stook_barns_capacity(barns) * barns->below->stride + 1;
                stook_barns_visit_end(barns);
        }
        return bytes;
}

/* The hand goes on until a barn has lost a sheaf. Return: its bytes; 0: none has. */
static size_t move_hand(const struct stook_barns *self, unsigned node)
{
        struct stook_barns *at = __atomic_load_n(&hand, __ATOMIC_ACQUIRE);
        size_t bytes = 0;

        for (unsigned steps = 0; steps < HAND_STEPS && !bytes; steps++) {
                if (!at)
                        at = stook_barns_first();
                if (at != self)
                        bytes = take_from(at, node);
                at = at->next;
        }
        __atomic_store_n(&hand, at, __ATOMIC_RELEASE);
        return bytes;
}

void stook_barn_rebalance(struct stook_barns *self, unsigned node)
{
        if (STOOK_LIKELY(!__atomic_load_n(&budget[node].refused, __ATOMIC_RELAXED)) ||
            stook_lock_may_not_wait() ||
            !__atomic_exchange_n(&budget[node].refused, 0, __ATOMIC_RELAXED))
                return;
        move_hand(self, node);
}

void stook_barn_yield(struct stook_barns *self, unsigned node)
{
        uint32_t now = stook_pages_rises();
        size_t bytes = 0, got = 1;

        if (STOOK_LIKELY(now == __atomic_load_n(&budget[node].rises, __ATOMIC_RELAXED)) ||
            stook_lock_may_not_wait())
                return;
        __atomic_store_n(&budget[node].rises, now, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < YIELD_SHEAVES && got && bytes < YIELD_BYTES; i++)
                bytes += got = move_hand(self, node);
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

void stook_barns_fork_child(struct stook_barns *barns, bool open)
{
        __atomic_and_fetch(&barns->visits, open ? 0 : CLOSED, __ATOMIC_RELAXED);
}
