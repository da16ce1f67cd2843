/*
 * Purpose: which spans a heap has: slabs of its caches, and large objects. So the end of a heap
 * looks at its own, and not at all that the process has.
 *
 * A table of pointers, in pieces that double, which a heap keeps for the next one of its memory. A
 * span's descriptor says which entry is its own. Entries that were left are a stack: each has the
 * number of the next.
 * Place: called by heap_life.c and heap_objects.c, as spans come and go, and by heap_drop.c.
 * Invariants:
 *  I1 an entry is one of: 0, never used; a span, an even word; free, an odd word.
 *  I2 an entry whose span is the caller's alone is changed by the caller alone. So a span leaves it
 *     once.
 * Concurrency: lock-free; any thread, any instruction. `top` has a tag, which each change of it
 *  raises: a pop that read the link of an entry which is used by now fails. M1: the release that
 *  stores a piece pairs with the acquire of each look for an entry: the piece reads as zeros. A
 *  thread that vanishes in between loses one entry.
 * Failure: no memory for a piece: the span is not noted.
 */
#include "heap/heaps.h"
#include "pages/meta.h"

#define FREE_BIT UINT64_C(1)

/* NULL: there is no such piece. */
static uint64_t *entry_at(const struct stook_heap_spans *spans, uint32_t at)
{
        uint64_t place = (uint64_t)at + STOOK_HEAP_PIECE;
        unsigned k = 63 - (unsigned)__builtin_clzll(place / STOOK_HEAP_PIECE);
        uint64_t *piece = __atomic_load_n(&spans->piece[k], __ATOMIC_ACQUIRE);          /* M1 */

        return piece ? piece + (place - ((uint64_t)STOOK_HEAP_PIECE << k)) : NULL;
}

/* Of two threads that make it, one wastes its piece. */
static uint64_t *make_entry(struct stook_heap_spans *spans, uint32_t at)
{
        uint64_t place = (uint64_t)at + STOOK_HEAP_PIECE, *none = NULL, *piece;
        unsigned k = 63 - (unsigned)__builtin_clzll(place / STOOK_HEAP_PIECE);

        if (entry_at(spans, at))
                return entry_at(spans, at);
        piece = stook_meta_bump(sizeof(*piece) * STOOK_HEAP_PIECE << k, 0);
        if (!piece)
                return NULL;
        __atomic_compare_exchange_n(&spans->piece[k], &none, piece, false, __ATOMIC_RELEASE,
                                    __ATOMIC_ACQUIRE);                                  /* M1 */
        return entry_at(spans, at);
}

/* The number + 1 of an entry that was left; 0: none was. */
static uint32_t pop(struct stook_heap_spans *spans)
{
        uint64_t top = __atomic_load_n(&spans->top, __ATOMIC_ACQUIRE), next;

        while ((uint32_t)top) {
                next = __atomic_load_n(entry_at(spans, (uint32_t)top - 1), __ATOMIC_RELAXED) >> 1;
                next = ((top >> 32) + 1) << 32 | (uint32_t)next;
                if (__atomic_compare_exchange_n(&spans->top, &top, next, true, __ATOMIC_ACQ_REL,
                                                __ATOMIC_ACQUIRE))
                        break;
        }
        return (uint32_t)top;
}

static void set(uint64_t *entry, uint32_t at, struct stook_span *span)
{
        __atomic_store_n(&span->heap_entry, at, __ATOMIC_RELAXED);
        __atomic_store_n(entry, (uintptr_t)span, __ATOMIC_RELEASE);
}

bool stook_heap_note_span(struct stook_heap *heap, struct stook_span *span)
{
        uint32_t at = pop(&heap->spans);
        uint64_t *entry;

        at = at ? at - 1 : __atomic_fetch_add(&heap->spans.used, 1, __ATOMIC_RELAXED);
        entry = make_entry(&heap->spans, at);
        if (STOOK_UNLIKELY(!entry))
                return false;
        set(entry, at, span);
        return true;
}

void stook_heap_span_moved(struct stook_heap *heap, uint32_t at, struct stook_span *to)
{
        set(entry_at(&heap->spans, at), at, to);
}

void stook_heap_forget_span(struct stook_heap *heap, const struct stook_span *span)
{
        uint32_t at = __atomic_load_n(&span->heap_entry, __ATOMIC_RELAXED);
        struct stook_heap_spans *spans = &heap->spans;
        uint64_t top = __atomic_load_n(&spans->top, __ATOMIC_RELAXED), next;
        uint64_t *entry = entry_at(spans, at);

        if (STOOK_UNLIKELY(!entry || __atomic_load_n(entry, __ATOMIC_RELAXED) != (uintptr_t)span))
                return;
        do {
                __atomic_store_n(entry, (uint64_t)(uint32_t)top << 1 | FREE_BIT, __ATOMIC_RELAXED);
                next = ((top >> 32) + 1) << 32 | (at + 1);
        } while (!__atomic_compare_exchange_n(&spans->top, &top, next, true, __ATOMIC_ACQ_REL,
                                              __ATOMIC_RELAXED));
}

void stook_heap_for_each_span(struct stook_heap *heap,
                              void (*each)(struct stook_span *span, void *data), void *data)
{
        uint32_t used = __atomic_load_n(&heap->spans.used, __ATOMIC_RELAXED);

        for (uint32_t at = 0; at < used; at++) {
                const uint64_t *entry = entry_at(&heap->spans, at);
                uint64_t word = entry ? __atomic_load_n(entry, __ATOMIC_ACQUIRE) : 0;

                if (word && !(word & FREE_BIT))
                        each((struct stook_span *)(uintptr_t)word, data);
        }
}

void stook_heap_forget_all(struct stook_heap *heap)
{
        __atomic_store_n(&heap->spans.top, (heap->spans.top >> 32) << 32, __ATOMIC_RELAXED);
        __atomic_store_n(&heap->spans.used, 0, __ATOMIC_RELAXED);
}
