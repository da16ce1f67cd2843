/*
 * Purpose: free spans by size, see bins.h.
 */
#include <string.h>
#include "base/compiler.h"
#include "pages/bins.h"
#include "pages/pagemap.h"

static struct stook_span_links *links(struct stook_span *span)
{
        return &span->use.links;
}

/*
 * The word that leads to @span from another one. A removal that does not have to look which of two
 * words it is waits for no memory: it only stores. Atomic: a late pop of free descriptors may read
 * it, in vain (base/tagged_stack.h).
 */
static void set_holder(struct stook_span *span, struct stook_span **holder)
{
        __atomic_store_n(&span->holder, holder, __ATOMIC_RELAXED);
}

/* Of links or a root. Atomic: see stook_span_set_node. */
static void set(struct stook_span **word, struct stook_span *span)
{
        __atomic_store_n(word, span, __ATOMIC_RELAXED);
}

static unsigned bin_of(size_t bytes)
{
        size_t pages = bytes >> STOOK_MAP_SHIFT;
        unsigned msb;

        if (pages <= STOOK_BINS_EXACT)
                return (unsigned)pages - 1;
        msb = 63 - (unsigned)__builtin_clzl(pages);                     /* at least 6 */
        unsigned bin = STOOK_BINS_EXACT + (msb - 6) * 8 + (unsigned)(pages >> (msb - 3) & 7);

        return bin < STOOK_BINS ? bin : STOOK_BINS - 1;
}

static struct stook_span *meld(struct stook_span *a, struct stook_span *b)
{
        if (!a || !b)
                return a ? a : b;
        if (b->start < a->start) {
                struct stook_span *t = a;

                a = b;
                b = t;
        }
        set(&links(b)->next, links(a)->child);
        if (links(b)->next)
                set_holder(links(b)->next, &links(b)->next);
        set(&links(a)->child, b);
        set_holder(b, &links(a)->child);
        set(&links(a)->next, NULL);
        return a;
}

/* Melds the siblings from @first on into one heap: pairs from the left, then all from the right. */
static struct stook_span *meld_siblings(struct stook_span *first)
{
        struct stook_span *pairs = NULL, *heap = NULL;

        while (first) {
                struct stook_span *a = first, *b = links(a)->next;

                first = b ? links(b)->next : NULL;
                set(&links(a)->next, NULL);
                if (b)
                        set(&links(b)->next, NULL);
                a = meld(a, b);
                set(&links(a)->next, pairs);
                pairs = a;
        }
        while (pairs) {
                struct stook_span *a = pairs;

                pairs = links(a)->next;
                set(&links(a)->next, NULL);
                heap = meld(heap, a);
        }
        return heap;
}

void stook_bins_init(struct stook_bins *bins)
{
        memset(bins, 0, sizeof(*bins));
}

/* Changed under the lock, but looked at without it: hints whether it is worth taking. */
static void recount(struct stook_bins *bins, size_t bytes, size_t spans)
{
        __atomic_store_n(&bins->bytes, bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&bins->spans, spans, __ATOMIC_RELAXED);
}

void stook_bins_insert(struct stook_bins *bins, struct stook_span *span)
{
        unsigned bin = bin_of(span->bytes);
        struct stook_span_links *l = links(span);

        set(&l->child, NULL);
        set(&l->next, NULL);
        bins->root[bin] = meld(bins->root[bin], span);
        bins->bitmap[bin / 64] |= UINT64_C(1) << bin % 64;
        recount(bins, bins->bytes + span->bytes, bins->spans + 1);
        __atomic_store_n(&span->kind, (uint8_t)(STOOK_SPAN_FREE + span->node), __ATOMIC_RELAXED);
}

void stook_bins_remove(struct stook_bins *bins, struct stook_span *span)
{
        unsigned bin = bin_of(span->bytes);
        struct stook_span_links *l = links(span);
        struct stook_span *below = meld_siblings(l->child);

        if (bins->root[bin] == span) {
                bins->root[bin] = below;
        } else {
                set(span->holder, l->next);
                if (l->next)
                        set_holder(l->next, span->holder);
                bins->root[bin] = meld(bins->root[bin], below);
        }
        set(&l->child, NULL);
        set(&l->next, NULL);
        if (!bins->root[bin])
                bins->bitmap[bin / 64] &= ~(UINT64_C(1) << bin % 64);
        recount(bins, bins->bytes - span->bytes, bins->spans - 1);
        __atomic_store_n(&span->kind, STOOK_SPAN_MOVING, __ATOMIC_RELAXED);
}

struct stook_span *stook_bins_find(const struct stook_bins *bins, size_t bytes)
{
        unsigned bin = bin_of(bytes), word;
        uint64_t bits;

        if (bins->root[bin] && bins->root[bin]->bytes >= bytes)
                return bins->root[bin];
        if (++bin == STOOK_BINS)
                return NULL;
        word = bin / 64;
        bits = bins->bitmap[word] & ~UINT64_C(0) << bin % 64;
        while (!bits) {
                if (++word == STOOK_BINS / 64)
                        return NULL;
                bits = bins->bitmap[word];
        }
        return bins->root[word * 64 + (unsigned)__builtin_ctzl(bits)];
}

bool stook_bins_has_size(const struct stook_bins *bins, size_t bytes)
{
        return bins->root[bin_of(bytes)] != NULL;
}

struct stook_span *stook_bins_largest(const struct stook_bins *bins)
{
        for (unsigned word = STOOK_BINS / 64; word-- > 0;)
                if (bins->bitmap[word])
                        return bins->root[word * 64 + 63 -
                                          (unsigned)__builtin_clzl(bins->bitmap[word])];
        return NULL;
}
