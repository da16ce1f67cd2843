/*
 * Purpose: the large object that was freed last, beside the bins.
 *
 * A program that allocates and frees a large buffer of one size again and again gets it back
 * without the lock, and without a search.
 * Place: span.c puts and takes. purge.c flushes it to the bins at each step that is due, so it ages
 *  there. A take that finds nothing else has it flushed, too.
 * How: it is put there only if the last request for a large object was of its size, and goes to the
 *  bins with the next one of another size. Kept for longer it is in the way where sizes are mixed,
 *  because it is not joined with its neighbours.
 * Invariants:
 *  I1 the span is MOVING and dirty, and in no other place; a child of fork finds it among the
 *     descriptors, if it has to make the bins anew (pages_fork.c).
 *  I2 it is one that may stay (policy/dirty.h) when it is put: below 1 MiB, and nothing that a give
 *     would have purged.
 * Concurrency: one word for each node. To change it is to own what was in it. M1: its release in
 *  put pairs with the acquire in take, flush and the next put.
 */
#include "pages/pagemap.h"
#include "pages/pages_node.h"

#define MOST       STOOK_DIRTY_LEAST    /* from here on a give may purge at once */
#define SIZE_SHIFT STOOK_RECENT_SIZE_SHIFT
#define PAGE_SHIFT STOOK_RECENT_PAGE_SHIFT

_Static_assert(MOST >> PAGE_SHIFT < 1 << (64 - SIZE_SHIFT), "a size fits above an address");

static uint64_t word_of(const struct stook_span *span)
{
        return (uint64_t)(uintptr_t)span | (uint64_t)(span->bytes >> PAGE_SHIFT) << SIZE_SHIFT;
}

static struct stook_span *span_of(uint64_t word)
{
        return (struct stook_span *)(uintptr_t)(word & ((UINT64_C(1) << SIZE_SHIFT) - 1));
}

bool stook_recent_put(struct stook_pages_node *node, struct stook_span *span)
{
        uint64_t before, word = word_of(span);

        if (__atomic_load_n(&node->asked_bytes, __ATOMIC_RELAXED) != span->bytes ||
            span->bytes >= MOST || span_of(word) != span ||
            stook_pages_dirty(node) + span->bytes > stook_dirty_limit(&node->ledger))
                return false;
        stook_lock_forbid_waits();
        __atomic_store_n(&span->kind, STOOK_SPAN_MOVING, __ATOMIC_RELAXED);
        before = __atomic_exchange_n(&node->recent, word, __ATOMIC_ACQ_REL);    /* M1 */
        if (before)
                stook_pages_insert_or_pend(node, span_of(before));
        stook_lock_allow_waits();
        return true;
}

struct stook_span *stook_recent_take(struct stook_pages_node *node, size_t bytes)
{
        uint64_t word = __atomic_load_n(&node->recent, __ATOMIC_RELAXED);

        if (__atomic_load_n(&node->asked_bytes, __ATOMIC_RELAXED) != bytes)
                __atomic_store_n(&node->asked_bytes, bytes, __ATOMIC_RELAXED);
        if (word >> SIZE_SHIFT != bytes >> PAGE_SHIFT) {
                stook_recent_flush(node);
                return NULL;
        }
        /* M1. If the word came back meanwhile, it means the same again. */
        return __atomic_compare_exchange_n(&node->recent, &word, 0, false, __ATOMIC_ACQUIRE,
                                           __ATOMIC_RELAXED)
                       ? span_of(word) : NULL;
}

bool stook_recent_insert(struct stook_pages_node *node)
{
        uint64_t word = __atomic_load_n(&node->recent, __ATOMIC_RELAXED);

        if (word)
                word = __atomic_exchange_n(&node->recent, 0, __ATOMIC_ACQUIRE);         /* M1 */
        if (word)
                stook_pages_insert(node, span_of(word));
        return word;
}

void stook_recent_flush(struct stook_pages_node *node)
{
        uint64_t word;

        if (!__atomic_load_n(&node->recent, __ATOMIC_RELAXED))
                return;
        stook_lock_forbid_waits();
        word = __atomic_exchange_n(&node->recent, 0, __ATOMIC_ACQUIRE);         /* M1 */
        if (word)
                stook_pages_insert_or_pend(node, span_of(word));
        stook_lock_allow_waits();
}
