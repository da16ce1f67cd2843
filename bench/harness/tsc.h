/*
 * bench/harness/tsc.h - the processor's time-stamp counter
 *
 * Purpose: the kernel's figures are in its cycles. On aarch64 it is the system counter, which is
 * slower: ratios hold, absolute counts are not cycles there.
 */
#ifndef BENCH_TSC_H
#define BENCH_TSC_H

#include <cstdint>

namespace bench {

inline uint64_t tsc()
{
#if defined(__x86_64__)
        return __builtin_ia32_rdtsc();
#else
        uint64_t now;
        __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(now) : : "memory");
        return now;
#endif
}

} // namespace bench

#endif
