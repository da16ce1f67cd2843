/*
 * Purpose: the allocation clock: fresh.h.
 */
#include "os/os.h"
#include "policy/constants.h"
#include "policy/fresh.h"

#define MS_NS      UINT64_C(1000000)

struct stook_fresh stook_fresh;

/* True: with @bytes more *@word moves the clock, and begins anew. */
static bool moves(struct stook_ledger *ledger, size_t *word, size_t bytes)
{
        size_t part = stook_ledger_used(ledger) / STOOK_CLOCK_PART;
        size_t least = part > STOOK_CLOCK_LEAST ? part : STOOK_CLOCK_LEAST;

        if (__atomic_add_fetch(word, bytes, __ATOMIC_RELAXED) < least)
                return false;
        __atomic_store_n(word, 0, __ATOMIC_RELAXED);
        return true;
}

/* By the fine clock: ticks of the coarse one may be 10 ms apart. */
static bool is_too_soon(struct stook_ledger *ledger, uint32_t decay_ms)
{
        uint64_t now = stook_os_clock_ns(), apart = decay_ms * MS_NS / STOOK_CLOCK_REUSE;

        if (now - __atomic_load_n(&ledger->reused_ns, __ATOMIC_RELAXED) < apart)
                return true;
        __atomic_store_n(&ledger->reused_ns, now, __ATOMIC_RELAXED);
        return false;
}

void stook_fresh_take(struct stook_ledger *ledger, size_t bytes, bool clean, uint32_t decay_ms)
{
        if (STOOK_LIKELY(!moves(ledger, clean ? &ledger->fresh : &ledger->reused, bytes)))
                return;
        if (clean)
                __atomic_fetch_add(&stook_fresh.clean, 1, __ATOMIC_RELAXED);
        else if (!is_too_soon(ledger, decay_ms))
                __atomic_fetch_add(&stook_fresh.dirty, 1, __ATOMIC_RELAXED);
}
