/*
 * Purpose: see rcu_transit.h.
 *
 * There are two counts. A waiting thread waits for one after the other to be zero. Calls that begin
 * meanwhile raise the count for which it does not wait now. So a stream of new calls does not keep
 * it waiting. In the end it has seen each count zero once since it began, so all calls that were in
 * transit before have ended.
 *
 * A call that does not end in time is lost: its thread has ended, was stopped, or jumped out. The
 * waiting thread then begins the next generation of the count, at 0. A thread lowers only the
 * generation that it raised. So a thread that comes back after all changes nothing.
 *
 * Concurrency: M1: a thread raises a count before it takes a sheaf by a releasing
 *  read-modify-write. A waiting thread has looked for the sheaf before it looks at the counts,
 *  acquiring. So if the sheaf was gone, the waiting thread sees the count. M2: the release that
 *  lowers a count pairs with the acquire of the waiting thread: the submission is over.
 * Failure: a wait that is not over in stook_transit_wait_ms returns false. What the lost calls had
 *  is lost.
 */
#include "base/compiler.h"
#include "base/thread.h"
#include "os/os.h"
#include "rcu/rcu_transit.h"

#define WAIT_NS 1000000

uint32_t stook_transit_wait_ms = 1000;
static uint32_t phase;                  /* atomic, a hint: which count newcomers raise */
/* M1, M2: generation << 32 | calls */
static uint64_t in_transit[2] STOOK_ALIGNED(STOOK_CACHELINE);
static bool     renew[2];               /* atomic: the generation ends with the last call */
static uint32_t first_here[2];          /* atomic: generations before were begun before a fork */

static uint32_t generation_of(uint64_t word)
{
        return (uint32_t)(word >> 32);
}

static uint32_t *calls_of(unsigned at)
{
        return (uint32_t *)&in_transit[at] + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Ends the generation that @word shows, however many calls are in it. */
static void end_generation(unsigned at, uint64_t word)
{
        uint32_t generation = generation_of(word);
        uint64_t next = (uint64_t)(generation + 1) << 32;

        while (generation_of(word) == generation &&
               !__atomic_compare_exchange_n(&in_transit[at], &word, next, false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED))
                ;
}

/*
 * In a child of a fork: all calls that are left in the generation are of threads it does not have.
 */
static void begin_here(unsigned at, uint64_t word)
{
        __atomic_store_n(&first_here[at], generation_of(word) + 1, __ATOMIC_RELAXED);
        end_generation(at, word);
}

/* A ticket: generation << 8 | the thread's share before << 1 | which count. */
static uint64_t ticket_of(uint32_t generation, unsigned share, unsigned at)
{
        return (uint64_t)generation << 8 | share << 1 | at;
}

static unsigned share_of_ticket(uint64_t ticket)
{
        return ticket >> 1 & STOOK_TRANSIT_SHARE_MAX;
}

static unsigned count_of_ticket(uint64_t ticket)
{
        return ticket & 1;
}

static uint32_t generation_of_ticket(uint64_t ticket)
{
        return (uint32_t)(ticket >> 8);
}

uint64_t stook_transit_begin(void)
{
        unsigned at = __atomic_load_n(&phase, __ATOMIC_RELAXED), before = stook_self_transit(at);
        uint64_t word;

        /*
         * The share is for a child forked in a handler on top of this call. It has two bits.
         * With handlers four deep it is one too low: a child forked up there then waits for this
         * call in vain, once.
         */
        stook_self_set_transit(at, before < STOOK_TRANSIT_SHARE_MAX ? before + 1 : before);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        word = __atomic_fetch_add(&in_transit[at], 1, __ATOMIC_SEQ_CST);        /* M1 */
        return ticket_of(generation_of(word), before, at);
}

void stook_transit_end(uint64_t ticket)
{
        unsigned at = count_of_ticket(ticket);
        uint64_t word = __atomic_load_n(&in_transit[at], __ATOMIC_RELAXED);

        while (generation_of(word) == generation_of_ticket(ticket) && (uint32_t)word)
                if (__atomic_compare_exchange_n(&in_transit[at], &word, word - 1, true,
                                                __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {  /* M2 */
                        if (STOOK_UNLIKELY(__atomic_load_n(&renew[at], __ATOMIC_RELAXED)) &&
                            (uint32_t)word == 1) {
                                __atomic_store_n(&renew[at], false, __ATOMIC_RELAXED);
                                begin_here(at, word - 1);
                        }
                        break;
                }
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        stook_self_set_transit(at, share_of_ticket(ticket));
}

bool stook_transit_is_lost(uint64_t ticket)
{
        uint64_t word = __atomic_load_n(&in_transit[count_of_ticket(ticket)], __ATOMIC_RELAXED);

        return generation_of(word) != generation_of_ticket(ticket);
}

bool stook_transit_is_gone(uint64_t ticket)
{
        uint32_t here = __atomic_load_n(&first_here[count_of_ticket(ticket)], __ATOMIC_RELAXED);

        return (int32_t)(generation_of_ticket(ticket) - here) < 0;
}

static bool wait_for(unsigned at)
{
        uint64_t word = __atomic_load_n(&in_transit[at], __ATOMIC_SEQ_CST), end = 0;
        uint32_t generation = generation_of(word);

        while ((uint32_t)word && generation_of(word) == generation) {
                uint64_t now = stook_os_clock_ms();

                if (!end)
                        end = now + stook_transit_wait_ms;
                if (now >= end) {
                        end_generation(at, word);
                        return false;
                }
                stook_os_futex_wait(calls_of(at), (uint32_t)word, WAIT_NS);
                word = __atomic_load_n(&in_transit[at], __ATOMIC_SEQ_CST);
        }
        return generation_of(word) == generation;
}

bool stook_transit_wait(void)
{
        bool all = true;

        for (unsigned at = 0; at < 2; at++) {
                __atomic_store_n(&phase, !at, __ATOMIC_RELAXED);
                all &= wait_for(at);
                /*
                 * If this thread has a share, it is of calls that it has jumped out of. A call
                 * below this one puts back its own when it ends.
                 */
                stook_self_set_transit(at, 0);
        }
        return all;
}

void stook_transit_fork_child(void)
{
        for (unsigned at = 0; at < 2; at++) {
                uint64_t generation = generation_of(in_transit[at]);
                unsigned mine = stook_self_transit(at);

                in_transit[at] = generation << 32 | mine;
                renew[at] = mine;
                if (!mine)
                        begin_here(at, in_transit[at]);
        }
}
