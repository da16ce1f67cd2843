/*
 * Purpose: calls of an RCU implementation, and what this thread is inside of: such a call, or a
 * callback of ours. Inside a call the implementation is not called again. Inside either of them no
 * grace period is waited for; a callback may call the implementation. A jump (siglongjmp, an
 * exception) out of a call or callback leaves the thread's bit set. The next call of the library
 * that begins above where the bit was set takes it back.
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
 * Concurrency: a place goes from 0 to its thread by a compare-and-swap of any thread. From then on
 *  it is that thread's.
 * Failure: see I1.
 */
#include <errno.h>

#include "base/lock.h"
#include "rcu/rcu_submit.h"
#include "rcu/rcu_transit.h"

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

unsigned stook_rcu_inside_begin(uint8_t what, const void *frame)
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

void stook_rcu_inside_end(uint8_t what, unsigned place)
{
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        stook_self_clear_inside(what);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (place < PLACES)
                __atomic_store_n(&places[place].whose, 0, __ATOMIC_RELAXED);
}

unsigned stook_rcu_callback_begin(const void *frame)
{
        unsigned place = stook_rcu_inside_begin(STOOK_INSIDE_RCU_CALLBACK, frame);

        stook_gate_check();
        return place;
}

void stook_rcu_callback_end(unsigned place)
{
        stook_rcu_inside_end(STOOK_INSIDE_RCU_CALLBACK, place);
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

bool stook_rcu_is_in_call(void)
{
        return stook_self_is_inside(STOOK_INSIDE_RCU_CALL);
}

bool stook_rcu_may_wait(const struct stook_rcu *rcu, int least)
{
        if (stook_self_is_inside(STOOK_INSIDE_RCU))
                return false;
        return (rcu->may_wait ? rcu->may_wait() : 1) >= least;
}

STOOK_NOINLINE void stook_rcu_call(const struct stook_rcu *rcu, struct stook_rcu_head *head,
                                   void (*done)(struct stook_rcu_head *head))
{
        unsigned place = stook_rcu_inside_begin(STOOK_INSIDE_RCU_CALL, __builtin_frame_address(0));
        int kept = errno;

        rcu->call(head, done);
        errno = kept;
        stook_rcu_inside_end(STOOK_INSIDE_RCU_CALL, place);
}

void stook_rcu_fork_child(void)
{
        stook_transit_fork_child();
        for (unsigned i = 0; i < PLACES; i++)
                if ((places[i].whose & ~(sizeof(*stook_self) - 1)) != (uintptr_t)stook_self)
                        __atomic_store_n(&places[i].whose, 0, __ATOMIC_RELAXED);
}
