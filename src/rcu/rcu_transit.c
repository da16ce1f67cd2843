/*
 * Purpose: what is under way: calls in transit (rcu_inside.h), and what this thread is inside of: a
 * call of an RCU implementation, or a callback of ours.
 *
 * Transit: there are two counts. A waiting thread waits for one after the other to be zero. Calls
 * that begin meanwhile raise the count for which it does not wait now. So a stream of new calls
 * does not keep it waiting. In the end it has seen each count zero once since it began, so all
 * calls that were in transit before have ended.
 *
 * A call that does not end in time is lost: its thread has ended, was stopped, or jumped out. The
 * waiting thread then begins the next generation of the count, at 0. A thread lowers only the
 * generation that it raised. So a thread that comes back after all changes nothing.
 *
 * Inside a call the implementation is not called again. Inside a call or a callback no grace period
 * is waited for; a callback may call the implementation. A jump (siglongjmp, an exception) out of a
 * call or callback leaves the thread's bit set. The next call of the library that begins above
 * where the bit was set takes it back.
 *
 * Claim: on one stack, a call that begins above the frame of a function shows that the function is
 * gone. What the function calls, and handlers on top of it, begin below. So each place here has the
 * frame of the function that set the bit, which is never inlined. Of another stack nothing is said
 * (base/lock.h, "The count that heals").
 *
 * Place: called by the files of this layer, and by life; calls gate, os.
 * Invariants:
 *  I1 a bit of `inside` (base/thread.h) that is set has a place, unless all places were taken.
 *     Then the bit stays set after a jump.
 *  I2 a place whose bit is not set is of a thread that ended, or of a call that was jumped out of.
 *     The next begin of that thread gives it up.
 * Concurrency: M1: a thread raises a count before it takes a sheaf by a releasing
 *  read-modify-write. A waiting thread has looked for the sheaf before it looks at the counts,
 *  acquiring. So if the sheaf was gone, the waiting thread sees the count. M2: the release that
 *  lowers a count pairs with the acquire of the waiting thread: the submission is over. A place
 *  goes from 0 to its thread by a compare-and-swap of any thread. From then on it is that thread's.
 * Failure: a wait that is not over in stook_transit_wait_ms returns false. What the lost calls had
 *  is lost. See I1.
 */
#include <errno.h>

#include "base/lock.h"
#include "os/os.h"
#include "rcu/rcu_inside.h"

/* ---- transit ---- */

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
                        end = now + __atomic_load_n(&stook_transit_wait_ms, __ATOMIC_RELAXED);
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

/* ---- inside ---- */

#define PLACES 32                       /* threads at once; arbitrary */
#define TAKEN  ((uintptr_t)1)           /* on its way from 0 to a thread's */

static struct place {
        uintptr_t whose;                /* atomic: stook_self, aligned to 64, | which bit */
        uintptr_t frame;                /* its thread's; atomic: places change hands */
} places[PLACES];

static uintptr_t mine(uint8_t what)
{
        return (uintptr_t)stook_self | what;
}

/*
 * From here to the end this thread is inside of @what: STOOK_INSIDE_RCU_CALL or _CALLBACK. @frame:
 * the frame of the caller, which is never inlined. Return: for the end.
 */
static unsigned begin(uint8_t what, const void *frame)
{
        unsigned first = (unsigned)((uintptr_t)stook_self >> 12) % PLACES, found = PLACES;

        for (unsigned i = 0; i < PLACES; i++) {
                struct place *at = &places[(first + i) % PLACES];
                uintptr_t whose = __atomic_load_n(&at->whose, __ATOMIC_RELAXED);

                if (whose == mine(what) && !stook_self_is_inside(what))        /* I2 */
                        __atomic_store_n(&at->whose, whose = 0, __ATOMIC_RELAXED);
                if (!whose && found == PLACES &&
                    __atomic_compare_exchange_n(&at->whose, &whose, TAKEN, false, __ATOMIC_RELAXED,
                                                __ATOMIC_RELAXED)) {
                        found = (first + i) % PLACES;
                        __atomic_store_n(&at->frame, (uintptr_t)frame, __ATOMIC_RELAXED);
                        __atomic_signal_fence(__ATOMIC_SEQ_CST);
                        __atomic_store_n(&at->whose, mine(what), __ATOMIC_RELAXED);
                }
        }
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        stook_self_set_inside(what);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        return found;
}

static void end(uint8_t what, unsigned place)
{
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        stook_self_clear_inside(what);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (place < PLACES)
                __atomic_store_n(&places[place].whose, 0, __ATOMIC_RELAXED);
}

unsigned stook_rcu_callback_begin(const void *frame)
{
        unsigned place = begin(STOOK_INSIDE_RCU_CALLBACK, frame);

        stook_gate_check();
        return place;
}

void stook_rcu_callback_end(unsigned place)
{
        end(STOOK_INSIDE_RCU_CALLBACK, place);
}

STOOK_NOINLINE void stook_rcu_heal_slow(void)
{
        uintptr_t here = (uintptr_t)__builtin_frame_address(0);
        uint8_t gone = 0, there = 0;

        for (unsigned i = 0; i < PLACES; i++) {
                uintptr_t whose = __atomic_load_n(&places[i].whose, __ATOMIC_RELAXED);
                uintptr_t frame = __atomic_load_n(&places[i].frame, __ATOMIC_RELAXED);
                uint8_t what = whose & STOOK_INSIDE_RCU;

                if (whose == TAKEN || whose != mine(what))
                        continue;
                if (stook_lock_frame_is_gone(frame, here)) {
                        gone |= what;
                        __atomic_store_n(&places[i].whose, 0, __ATOMIC_RELAXED);
                } else {
                        there |= what;
                }
        }
        stook_self_clear_inside(gone & (uint8_t)~there);
}

/* ---- calls of the implementation ---- */

bool stook_rcu_may_wait(const struct stook_rcu *rcu, int least)
{
        if (stook_self_is_inside(STOOK_INSIDE_RCU))
                return false;
        return (rcu->may_wait ? rcu->may_wait() : 1) >= least;
}

STOOK_NOINLINE void stook_rcu_call(const struct stook_rcu *rcu, struct stook_rcu_head *head,
                                   void (*done)(struct stook_rcu_head *head))
{
        unsigned place = begin(STOOK_INSIDE_RCU_CALL, __builtin_frame_address(0));
        int kept = errno;

        rcu->call(head, done);
        errno = kept;
        end(STOOK_INSIDE_RCU_CALL, place);
}

/* ---- fork ---- */

static void fork_transit(void)
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

void stook_rcu_fork_child(void)
{
        fork_transit();
        for (unsigned i = 0; i < PLACES; i++)
                if ((places[i].whose & ~(sizeof(*stook_self) - 1)) != (uintptr_t)stook_self)
                        __atomic_store_n(&places[i].whose, 0, __ATOMIC_RELAXED);
}
