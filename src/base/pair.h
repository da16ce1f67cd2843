/*
 * Purpose: two words changed by one compare-and-swap (cmpxchg16b; LDXP and STXP on aarch64; on
 * RISC-V, which has no such instruction, a lock: pair_locked.c).
 * Concurrency: stook_pair_cas is sequentially consistent where it succeeds. There is no atomic read
 * of a pair: stook_pair_read reads the halves one by one (acquire) and may see halves of two pairs;
 * every user goes on to a compare-and-swap, which then fails, or to words that are valid each by
 * itself.
 */
#ifndef STOOK_PAIR_H
#define STOOK_PAIR_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"

#if STOOK_TSAN
#include <sanitizer/tsan_interface.h>
#endif

struct stook_pair {
        uintptr_t lo, hi;
} STOOK_ALIGNED(16);

STOOK_INLINE struct stook_pair stook_pair_read(struct stook_pair *p)
{
        struct stook_pair v;

        v.lo = __atomic_load_n(&p->lo, __ATOMIC_ACQUIRE);
        v.hi = __atomic_load_n(&p->hi, __ATOMIC_ACQUIRE);
        return v;
}

/* Tests define it on every machine. */
#ifndef STOOK_PAIR_BY_LOCK
#if defined(__riscv)
#define STOOK_PAIR_BY_LOCK 1
#else
#define STOOK_PAIR_BY_LOCK 0
#endif
#endif

#if STOOK_PAIR_BY_LOCK
bool stook_pair_cas(struct stook_pair *p, struct stook_pair *expected, struct stook_pair desired);
/* The same for one half of a pair, @half. */
bool stook_pair_half_cas(uint64_t *half, uint64_t expected, uint64_t desired);
/* From here on the lock is *@lock, a word that the kernel clears in a child of fork. */
void stook_pair_set_lock(uint32_t *lock);
/* In a child, before its repair looks at pairs: finishes what a vanished thread was storing. */
void stook_pair_fork_child(void);
#else
STOOK_INLINE void stook_pair_set_lock(uint32_t *lock)
{
        (void)lock;
}

STOOK_INLINE void stook_pair_fork_child(void)
{
}
#endif

#if defined(__x86_64__) && STOOK_TSAN && !STOOK_PAIR_BY_LOCK
/*
 * libtsan swaps pairs under a lock of its own. A swap of one of the words ignores that lock, and a
 * child of fork may find it taken. So ThreadSanitizer builds use the instruction, and say what it
 * orders: libtsan tells atomics by their address, so it is told of both words.
 */
STOOK_INLINE bool stook_pair_cas(struct stook_pair *p, struct stook_pair *expected,
                                 struct stook_pair desired)
{
        bool done;

        __tsan_release(&p->lo);
        __tsan_release(&p->hi);
        __asm__ volatile("lock cmpxchg16b %[p]"
                         : "=@ccz"(done), [p] "+m"(*p), "+a"(expected->lo), "+d"(expected->hi)
                         : "b"(desired.lo), "c"(desired.hi)
                         : "memory");
        __tsan_acquire(&p->lo);
        __tsan_acquire(&p->hi);
        return done;
}
#elif !STOOK_PAIR_BY_LOCK
/* Replaces *p by @desired if it equals *expected; otherwise *expected becomes what was seen. */
STOOK_INLINE bool stook_pair_cas(struct stook_pair *p, struct stook_pair *expected,
                                 struct stook_pair desired)
{
#if defined(__x86_64__)
        /* The __sync form is the one gcc inlines (-mcx16). */
        unsigned __int128 old = (unsigned __int128)expected->hi << 64 | expected->lo;
        unsigned __int128 new = (unsigned __int128)desired.hi << 64 | desired.lo;
        unsigned __int128 seen = __sync_val_compare_and_swap((unsigned __int128 *)p, old, new);

        if (STOOK_LIKELY(seen == old))
                return true;
        expected->lo = (uintptr_t)seen;
        expected->hi = (uintptr_t)(seen >> 64);
        return false;
#elif defined(__aarch64__)
        uint64_t lo, hi;
        uint32_t failed;

        /* A mismatch stores the value back, so that what was seen is known to be one pair. */
        for (;;) {
                uint64_t to_lo, to_hi;

                __asm__ volatile(
                        "ldaxp %[lo], %[hi], %[p]\n\t"
                        "cmp %[lo], %[elo]\n\t"
                        "ccmp %[hi], %[ehi], #0, eq\n\t"
                        "csel %[tlo], %[dlo], %[lo], eq\n\t"
                        "csel %[thi], %[dhi], %[hi], eq\n\t"
                        "stlxp %w[failed], %[tlo], %[thi], %[p]\n\t"
                        : [lo] "=&r"(lo), [hi] "=&r"(hi), [tlo] "=&r"(to_lo), [thi] "=&r"(to_hi),
                          [failed] "=&r"(failed), [p] "+Q"(*p)
                        : [elo] "r"(expected->lo), [ehi] "r"(expected->hi),
                          [dlo] "r"(desired.lo), [dhi] "r"(desired.hi)
                        : "cc", "memory");
                if (!failed)
                        break;
        }
        if (lo == expected->lo && hi == expected->hi)
                return true;
        expected->lo = lo;
        expected->hi = hi;
        return false;
#else
#error "stook runs on x86-64, aarch64 and RISC-V"
#endif
}
#endif

#endif
