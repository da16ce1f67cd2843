/*
 * Purpose: see inject.h. Compiled for tests only; no part of the library.
 */
#include "base/inject.h"

#ifdef STOOK_INJECT

struct stook_inject stook_inject;

bool stook_inject_nth(const uint32_t *every, uint32_t *calls)
{
        uint32_t n = __atomic_load_n(every, __ATOMIC_RELAXED);

        return n && __atomic_add_fetch(calls, 1, __ATOMIC_RELAXED) % n == 0;
}

bool stook_inject_later(long *from)
{
        long n = __atomic_load_n(from, __ATOMIC_RELAXED);

        while (n > 1)
                if (__atomic_compare_exchange_n(from, &n, n - 1, false, __ATOMIC_RELAXED,
                                                __ATOMIC_RELAXED))
                        return false;
        return n == 1;
}

#endif
