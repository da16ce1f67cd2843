/*
 * Purpose: the only lock on the paths of allocations and frees, for the few places that need one
 * (partial lists, the page layer). It can refuse. A caller that cannot have it goes another way,
 * without it (the pending stacks).
 *
 * Invariants:
 *  I1 no thread that holds a lock waits for another: while stook_self->locks_held is not zero (a
 *     signal handler on top of a holder, too), taking a lock only tries. ("Never wait for myself"
 *     is not enough: two threads with handlers deadlock crosswise.)
 *  I2 no wait is unbounded: after a short spin and 100 sleeps of 1 ms for one hold, 1000 for
 *     several, take returns false. A wait in vain for one hold marks the lock as stuck, and no call
 *     waits for a stuck lock. A thread that was jumped out of a wait marks what it wants to wait
 *     for next. So a holder that never returns (stopped, dead, jumped out of) costs that wait once,
 *     then memory, never progress. A holder that does return ends the mark.
 *  I3 locks_held is raised before the acquiring compare-and-swap and lowered after the release: a
 *     handler in between sees a lock too many, never one too few.
 *  I4 locks_held comes down again after a jump (siglongjmp, an exception) out of the call that
 *     raised it, at the next call which sees that the frames of that call are gone: see below. A
 *     lock that such a call held names its thread, which can have it again (stook_lock_inherit).
 * Concurrency: word is 0 free, else stook_self of the holder, flags (a thread may sleep, stuck), a
 *  number of the hold. M1: the release exchange pairs with the acquiring compare-and-swap. Sleeping
 *  is a futex wait, on the word's lower half, of the os layer handed in at start.
 *
 * The count that heals
 * --------------------
 * `locks_held` is the low byte of a word of the thread record; the other three are the stack
 * pointer, in units of 16 bytes, where the count was raised from zero. Both change in one store, so
 * a handler finds, and a jump leaves, either the old pair or the new one. A handler that returns
 * leaves the word as it found it, or healed, or with what it was jumped out of; the interrupted
 * raise or lower then stores what it had read, and that too is right.
 *
 * stook_lock_heal is called where a slow call begins (by stook_gate_check), never inside of a step
 * that holds. Claim: on one stack, a call that begins at or above the recorded address shows that
 * the holder's frames are gone. If the holder is still there, each call on top of it begins below:
 *  - in a nested call: its frame is below the one that raised the count, and recorded its own stack
 *    pointer;
 *  - in a handler: the kernel puts a signal frame below the interrupted stack pointer, 1,100 bytes
 *    and more on x86-64, 4,600 on aarch64. With a lock the holder is a caller of the function that
 *    recorded the address (take, called by stook_slab_hold or stook_pages_lock), by frames of less
 *    than 300 bytes.
 * Within most holders calls begin in handlers only. So an address GAP below is recorded, and a jump
 * to frames that are a little deeper than the call's heals, too. There are two exceptions. Calls
 * that raise the count at their entry (the nolock ones) record with gap 0. Around functions of the
 * program (the hook for reports, constructors) the frame that calls them is recorded instead
 * (stook_lock_pin).
 * A frame address says nothing about another stack. So nothing is healed
 *  - in a handler on the alternate stack, of a holder that is not on it: sigaltstack is asked, once
 *    there is something to heal;
 *  - across the thread's own storage, which lies above a thread's stack;
 *  - further away than FAR: stacks of coroutines, mostly;
 *  - where the count belongs to a fork's prepare, which returns to libc with locks held
 *    (stook_lock_keep).
 * What is not told apart: a program that leaves a handler, on top of one of our calls, to another
 * stack (swapcontext; SS_AUTODISARM, which sigaltstack does not show) and calls the library there,
 * at a higher address. A program must not do that.
 * What is not healed: a jump to much deeper frames than the call began at, or to another stack,
 * until the thread calls from a shallower frame. Until then the thread only tries locks, and leaves
 * undone what other calls can do.
 * Model: tests/proof/models/jumps.pml.
 * A count of 255 stays until it is healed: so many jumps without a call from a shallow frame do not
 * wrap.
 */
#ifndef STOOK_LOCK_H
#define STOOK_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"
#include "base/rank.h"
#include "base/thread.h"

struct stook_lock {
        uint64_t word;                  /* M1 */
#if STOOK_LOCK_RANKS
        enum stook_rank rank;
#endif
};

/* Of a static lock; of another one. A lock without either has STOOK_RANK_LOCK. */
#if STOOK_LOCK_RANKS
#define STOOK_LOCK_INIT(its_rank) { .word = 0, .rank = (its_rank) }
#define stook_lock_set_rank(lock, its_rank) ((void)((lock)->rank = (its_rank)))
#else
#define STOOK_LOCK_INIT(its_rank) { .word = 0 }
#define stook_lock_set_rank(lock, its_rank) ((void)(lock))
#endif

/* False: not to be had now; the caller holds nothing and must go the way without the lock. */
bool stook_lock_take(struct stook_lock *lock);
bool stook_lock_try(struct stook_lock *lock);
void stook_lock_drop(struct stook_lock *lock);

/* Racy, for a guess: another call has it. */
STOOK_INLINE bool stook_lock_is_taken(const struct stook_lock *lock)
{
        return __atomic_load_n(&lock->word, __ATOMIC_RELAXED) != 0;
}

bool stook_lock_is_mine(const struct stook_lock *lock);

/*
 * After a refusal. True: a call of this thread held the lock and was jumped out of. Now the caller
 * holds it. What it guards is as that call left it, and the caller makes it anew. No other thread
 * can have the lock. False: the caller holds nothing.
 */
bool stook_lock_inherit(struct stook_lock *lock);

/*
 * After a drop: loads from here on are done after the lock was seen free. On x86-64 the exchange
 * that dropped it was a full fence already, a second one costs as much again.
 */
static inline void stook_lock_fence_after_drop(void)
{
#if defined(__x86_64__)
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
#else
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* ---- the count, and where it was raised from zero ---- */

#define STOOK_HELD_COUNT 0xffu          /* of the word; all of it: for ever */
#define STOOK_HELD_SHIFT 8
#define STOOK_HELD_UNIT  16             /* bytes: what both machines align stacks to */

/* Not by the field, which is a byte of it. */
STOOK_INLINE uint32_t *stook_lock_held(void)
{
        char *self = (char *)stook_self;

        return (uint32_t *)(void *)(self + offsetof(struct stook_thread_v1, locks_held));
}

/*
 * A stack address in the word; never 0, which is "not to be healed". A unit too high is on the safe
 * side.
 */
STOOK_INLINE uint32_t stook_lock_place(uintptr_t address)
{
        uint32_t place = (uint32_t)(address / STOOK_HELD_UNIT) << STOOK_HELD_SHIFT;

        return place ? place : 1u << STOOK_HELD_SHIFT;
}

STOOK_INLINE uintptr_t stook_lock_stack_pointer(void)
{
        uintptr_t sp;

#if defined(__x86_64__)
        __asm__ volatile("mov %%rsp, %0" : "=r"(sp));
#elif defined(__aarch64__)
        __asm__ volatile("mov %0, sp" : "=r"(sp));
#else
        __asm__ volatile("mv %0, sp" : "=r"(sp));
#endif
        return sp;
}

/*
 * With the frames of holders, less than a signal frame. ThreadSanitizer delivers signals without
 * such a frame: its own functions, which stand for each atomic, call the handler. There an address
 * above the holder's frames is recorded, and only calls from shallower frames heal.
 */
#if STOOK_TSAN
#define STOOK_HELD_GAP ((uintptr_t)-512)
#else
#define STOOK_HELD_GAP 512
#endif

/* @gap: 0, or STOOK_HELD_GAP where nothing is called that may call the library. */
STOOK_INLINE void stook_lock_raise(uintptr_t gap)
{
        uint32_t word = __atomic_load_n(stook_lock_held(), __ATOMIC_RELAXED);

        if (!(word & STOOK_HELD_COUNT))
                word = stook_lock_place(stook_lock_stack_pointer() - gap);
        if ((word & STOOK_HELD_COUNT) != STOOK_HELD_COUNT)
                word++;
        __atomic_store_n(stook_lock_held(), word, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

STOOK_INLINE void stook_lock_lower(void)
{
        uint32_t word, count;

        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        word = __atomic_load_n(stook_lock_held(), __ATOMIC_RELAXED);
        count = word & STOOK_HELD_COUNT;
        if (STOOK_LIKELY(count && count != STOOK_HELD_COUNT))
                __atomic_store_n(stook_lock_held(), word - 1, __ATOMIC_RELAXED);
}

/*
 * Between the two this thread counts as a holder: it waits for no lock (take does what try does),
 * its slow calls leave work that is not the caller's undone (purging), and a child forked on top of
 * it does not repair the heap before the end (life/fork.c). For calls that may not wait; and for
 * steps in which something is in this thread's hands that looks like a vanished thread's to a child
 * that repairs. They nest.
 */
STOOK_INLINE void stook_lock_forbid_waits(void)
{
        stook_lock_raise(STOOK_HELD_GAP);
}

STOOK_INLINE void stook_lock_allow_waits(void)
{
        stook_lock_lower();
}

/* This thread holds a lock or has forbidden waits. Slow calls then leave out optional work. */
STOOK_INLINE bool stook_lock_may_not_wait(void)
{
        return stook_self->locks_held != 0;
}

/*
 * At the entry of a call, if locks_held is not zero. True: it is now, for the calls that raised it
 * are gone (I4).
 */
bool stook_lock_heal(void);

/*
 * A call of this thread recorded @frame, an address in its frame; another one begins at @here.
 * True: the first is gone, as said above. False: that is not known.
 */
bool stook_lock_frame_is_gone(uintptr_t frame, uintptr_t here);

/*
 * Around a call of a function of the program's in the midst of a step: this frame counts instead.
 * What it left (by a jump) heals like all else. Unpin takes what pin answered.
 */
STOOK_INLINE uint32_t stook_lock_pin(void)
{
        uint32_t word = __atomic_load_n(stook_lock_held(), __ATOMIC_RELAXED);
        uint32_t count = word & STOOK_HELD_COUNT;

        if (count)
                __atomic_store_n(stook_lock_held(),
                                 stook_lock_place(stook_lock_stack_pointer()) | count,
                                 __ATOMIC_RELAXED);
        return word;
}

STOOK_INLINE void stook_lock_unpin(uint32_t word)
{
        __atomic_store_n(stook_lock_held(), word, __ATOMIC_RELAXED);
}

/*
 * The locks this thread holds stay held when its frames return: nothing heals before they are
 * dropped.
 */
void stook_lock_keep(void);

/*
 * For the child of a fork whose lock words belong to threads that are gone; and that holds nothing
 * any more.
 */
void stook_lock_reset(struct stook_lock *lock);
void stook_lock_hold_none(void);

/*
 * How to sleep while *word == value for at most @ns, and how to wake one sleeper. Set once at
 * start; before, take spins.
 */
struct stook_lock_sleep {
        void (*wait)(uint32_t *word, uint32_t value, uint64_t ns);
        void (*wake)(uint32_t *word);
};
void stook_lock_set_sleep(const struct stook_lock_sleep *sleep);
/* NULL: not set yet. For base/mutex.c. */
const struct stook_lock_sleep *stook_lock_sleep(void);
/*
 * False: this code runs on the alternate signal stack, and @address is not of that. Set once at
 * start; before, nothing heals.
 */
void stook_lock_set_same_stack(bool (*same_stack)(uintptr_t address));

#endif
