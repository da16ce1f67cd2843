/*
 * Purpose: compare-and-swaps that are cheaper while the process has one thread.
 *
 * What comes between two instructions of the only thread is a handler on top of it, or a jump out
 * of one; neither comes within an instruction. So without other threads an instruction that
 * compares and stores is enough, without the lock on the bus, which costs three times as much. The
 * machines that need several instructions for it, and builds for ThreadSanitizer, which has to see
 * it, do without.
 *
 * Claim: libc knows of each thread that shares this memory. It says that there is one thread
 * (__libc_single_threaded), and takes that back before it makes a second one. No handler may call
 * pthread_create, so it is not taken back between the test and the compare-and-swap. A child of
 * fork begins with one thread, and with memory of its own. A child of vfork shares this memory
 * while the thread that made it waits. Threads made by a raw clone that shares memory are not
 * supported, nor those that the libc of another namespace (dlmopen) made while this one knew of one
 * thread only (docs/CONCURRENCY.md). A new thread sees all that came before, because its creation
 * orders it. A join orders what the joined thread did.
 * Where libc does not say, the process counts as one with several threads.
 */
#ifndef STOOK_ALONE_H
#define STOOK_ALONE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"
#include "base/pair.h"

#if defined(__x86_64__) && defined(__linux__) && !STOOK_TSAN && !STOOK_PAIR_BY_LOCK
#define STOOK_ALONE_IS_CHEAPER 1
#else
#define STOOK_ALONE_IS_CHEAPER 0
#endif

/* libc's; not there in every libc. */
extern char __libc_single_threaded __attribute__((weak));

/* This is the only thread there is. It stays so until this thread makes another. */
STOOK_INLINE bool stook_has_one_thread(void)
{
        return &__libc_single_threaded && *(const volatile char *)&__libc_single_threaded;
}

/* The same, where it makes anything cheaper. */
STOOK_INLINE bool stook_is_alone(void)
{
        return STOOK_ALONE_IS_CHEAPER && stook_has_one_thread();
}

/*
 * Replaces *@word, which may be half of a pair, by @desired if it equals @expected.
 * Acquire-release where other threads are.
 * @alone: stook_is_alone() said so, and this thread has called no code since that is not the
 * library's.
 */
STOOK_INLINE bool stook_word_cas(uint64_t *word, uint64_t expected, uint64_t desired, bool alone)
{
        (void)alone;
#if STOOK_ALONE_IS_CHEAPER
        if (alone) {
                bool done;

                __asm__ volatile("cmpxchg %[desired], %[word]"
                                 : "=@ccz"(done), [word] "+m"(*word), "+a"(expected)
                                 : [desired] "r"(desired)
                                 : "memory");
                return done;
        }
#endif
#if STOOK_PAIR_BY_LOCK
        return stook_pair_half_cas(word, expected, desired);
#endif
        return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL,
                                           __ATOMIC_RELAXED);
}

/* The same for a pair: else as stook_pair_cas. */
STOOK_INLINE bool stook_two_words_cas(struct stook_pair *p, struct stook_pair *expected,
                                       struct stook_pair desired)
{
#if STOOK_ALONE_IS_CHEAPER
        if (stook_is_alone()) {
                bool done;

                __asm__ volatile("cmpxchg16b %[p]"
                                 : "=@ccz"(done), [p] "+m"(*p), "+a"(expected->lo),
                                   "+d"(expected->hi)
                                 : "b"(desired.lo), "c"(desired.hi)
                                 : "memory");
                return done;
        }
#endif
        return stook_pair_cas(p, expected, desired);
}

#endif
