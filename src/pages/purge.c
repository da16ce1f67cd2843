/*
 * Purpose: memory given back to the system: by age (stook_pages_step, from slow paths), at once where much was
 * freed (stook_pages_purge_big), and on request (stook_pages_purge).
 * Invariant: I1 a span is taken out of the bins before its content is dropped, and no lock is held meanwhile.
 * Failure: where the system refuses (mlocked pages) the span stays dirty and starts to age anew.
 */
#include "os/os.h"
#include "pages/pages_node.h"
#include "pages/range.h"

#define DECAY_MS     1000               /* as mimalloc's and jemalloc's order of magnitude */
#define STEP_SPANS   8                  /* purged by one step at most: a slow path's caller waits for it */
#define BIG          ((size_t)1 << 20)  /* a free span from here on is purged at once, above ALLOWANCE */
#define ALLOWANCE    ((size_t)4 << 20)  /* dirty memory that is never purged at once; measured: below, compilers fault more */
#define PURGE_LEAST_BYTES ((size_t)64 << 10)

enum stook_thp stook_pages_thp = STOOK_THP_SYSTEM;
static uint32_t decay_ms = DECAY_MS;    /* atomic, relaxed */

void stook_pages_set_decay_ms(uint32_t ms)
{
        __atomic_store_n(&decay_ms, ms, __ATOMIC_RELAXED);
}

void stook_pages_set_thp(enum stook_thp policy)
{
        stook_pages_thp = policy;
}

/* Drops the content of @span, which is the caller's, and releases it. Returns bytes purged. */
static size_t drop(struct stook_pages_node *node, struct stook_span *span)
{
        size_t bytes = span->bytes;
        bool done = stook_os_purge((void *)span->start, bytes);

        if (done)
                span->state = STOOK_SPAN_PURGED;
        else
                span->age_ms = (uint32_t)stook_os_clock_ms();
        stook_pages_release(node, span);
        return done ? bytes : 0;
}

/*
 * Bytes of dirty free memory that may stay. What was purged and is taken again was purged for nothing: a program
 * that frees and allocates the same megabytes in turn keeps them, one that is idle after a spike does not.
 */
static size_t allowance(struct stook_pages_node *node)
{
        size_t share = __atomic_load_n(&node->taken_bytes, __ATOMIC_RELAXED) / 8;

        return (share > ALLOWANCE ? share : ALLOWANCE) + __atomic_load_n(&node->retaken_bytes, __ATOMIC_RELAXED);
}

void stook_pages_purge_big(struct stook_pages_node *node)
{
        struct stook_span *big;

        /* racy: whoever frees last sees all */
        if (stook_lock_may_not_wait() || __atomic_load_n(&node->bins[STOOK_SET_DIRTY].bytes, __ATOMIC_RELAXED) <= allowance(node) ||
            !stook_pages_lock(node))
                return;
        big = stook_bins_largest(&node->bins[STOOK_SET_DIRTY]);
        if (big && big->bytes >= BIG && node->bins[STOOK_SET_DIRTY].bytes > allowance(node))
                stook_pages_remove(node, big);
        else
                big = NULL;
        stook_pages_unlock(node);
        if (big)
                drop(node, big);
}

void stook_pages_step(void)
{
        if (stook_lock_may_not_wait())
                return;
        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                struct stook_pages_node *node = &stook_pages_nodes[n];
                uint32_t now, next = __atomic_load_n(&node->next_step_ms, __ATOMIC_RELAXED);
                uint32_t decay = __atomic_load_n(&decay_ms, __ATOMIC_RELAXED);

                size_t retaken = __atomic_load_n(&node->retaken_bytes, __ATOMIC_RELAXED);

                if (!__atomic_load_n(&node->bins[STOOK_SET_DIRTY].spans, __ATOMIC_RELAXED) && !retaken)
                        continue;
                now = (uint32_t)stook_os_clock_ms();
                if ((int32_t)(now - next) < 0)
                        continue;
                /* one thread steps at a time; a lost race is somebody else's step */
                if (!__atomic_compare_exchange_n(&node->next_step_ms, &next, now + decay / 8 + 1, false,
                                                 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                        continue;
                /* eight steps in a decay time: forgotten by two thirds in it */
                __atomic_fetch_sub(&node->retaken_bytes, retaken / 8 + !!retaken, __ATOMIC_RELAXED);
                for (unsigned i = 0; i < STEP_SPANS; i++) {
                        struct stook_span *oldest = NULL;

                        if (!stook_pages_lock(node))
                                return;
                        if (!stook_list_empty(&node->aged)) {
                                oldest = stook_container_of(node->aged.next, struct stook_span, list);
                                if (now - oldest->age_ms < decay)
                                        oldest = NULL;
                                else
                                        stook_pages_remove(node, oldest);
                        }
                        stook_pages_unlock(node);
                        if (!oldest)
                                break;
                        drop(node, oldest);
                }
        }
}

size_t stook_pages_purge(size_t keep_bytes)
{
        size_t purged = 0;

        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                struct stook_pages_node *node = &stook_pages_nodes[n];
                size_t refused = 0;

                for (;;) {
                        struct stook_span *span = NULL;
                        size_t got, bytes;

                        if (!stook_pages_lock(node))
                                break;
                        if (node->bins[STOOK_SET_DIRTY].bytes > keep_bytes + refused)
                                span = stook_bins_largest(&node->bins[STOOK_SET_DIRTY]);
                        if (span)
                                stook_pages_remove(node, span);
                        stook_pages_unlock(node);
                        if (!span)
                                break;
                        bytes = span->bytes;
                        got = drop(node, span);
                        purged += got;
                        if (!got) {
                                refused += bytes;
                                break;          /* mlocked: the next largest would be refused as well */
                        }
                }
        }
        return purged;
}
