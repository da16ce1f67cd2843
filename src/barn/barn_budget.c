/*
 * Purpose: bound the bytes that the barns of a node keep, over all caches. And visits: threads that
 * pass by empty the barns of other caches; destruction and tuning wait for them.
 *
 * Place: called by barn_stacks.c (bookings), and by walks over all barns. A put whose booking is
 * refused drains its sheaf. What a cache that went idle has booked comes free when its barn is
 * reaped (barn_idle.c).
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
#include "pages/span.h"

#define NODES_MAX 1024                  /* the kernel's limit; untouched lines cost nothing */
#define CLOSED UINT32_C(0x80000000)
/* An eviction takes microseconds as a rule. A second is for a visitor that was preempted. */
#define CLOSE_WAITS 1000
#define CLOSE_WAIT_NS 1000000

static struct {
        uint64_t booked;                /* atomic; bytes */
} STOOK_ALIGNED(STOOK_CACHELINE) budget[NODES_MAX] STOOK_MOSTLY_UNUSED;

static uint64_t budget_bytes = STOOK_BARN_NODE_BYTES;   /* at most */
static uint64_t burst_bytes;            /* atomic, a hint: that much beyond the share */

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
        uint64_t share = stook_pages_taken(node) / STOOK_BARN_PART;

        if (share < STOOK_BARN_LEAST)
                share = STOOK_BARN_LEAST;
        share += __atomic_load_n(&burst_bytes, __ATOMIC_RELAXED);
        if (limit > share)
                limit = share;
        if (__atomic_add_fetch(&budget[node].booked, bytes, __ATOMIC_RELAXED) <= limit)
                return true;
        __atomic_sub_fetch(&budget[node].booked, bytes, __ATOMIC_RELAXED);
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
