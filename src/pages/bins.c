/*
 * Purpose: the free spans of a node, by size and coalesced: for each bin (a class of sizes) a heap
 * ordered by address, and a bitmap of the bins that hold any. The best bin that fits gives its
 * lowest span, so that memory in use stays low and together. Bins: exact up to 64 map pages (256
 * KiB), then eight to a doubling.
 * Invariants:
 *  I1 bit i of the bitmap is set exactly if root[i] is not NULL.
 *  I2 a span in the bins has kind FREE; the heap's links are what it is used for then (`use`,
 *     span.h).
 * Concurrency: the lock of the node.
 *  M1: a thread that pushes to `pending` and then fails to get the lock, and a thread that drops
 *  the lock and then finds `pending` empty, are ordered by a full fence on each side: one of them
 *  sees the other.
 * Source of the heap: M. L. Fredman, R. Sedgewick, D. D. Sleator, R. E. Tarjan, "The pairing heap",
 * 1986.
 */
#include "base/compiler.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/pages_node.h"

#define LOOKS 16                        /* arbitrary; a take that would grow the node does them */

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

/* Changed under the lock, but looked at without it: hints whether it is worth taking. */
static void recount(struct stook_bins *bins, size_t bytes, size_t spans)
{
        __atomic_store_n(&bins->bytes, bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&bins->spans, spans, __ATOMIC_RELAXED);
}

static void insert(struct stook_bins *bins, struct stook_span *span)
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

static void remove_from(struct stook_bins *bins, struct stook_span *span)
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

struct stook_span *stook_bins_largest(const struct stook_bins *bins)
{
        for (unsigned word = STOOK_BINS / 64; word-- > 0;)
                if (bins->bitmap[word])
                        return bins->root[word * 64 + 63 -
                                          (unsigned)__builtin_clzl(bins->bitmap[word])];
        return NULL;
}

/* ---- coalesced, under the lock or pending ---- */

struct stook_span *stook_pages_free_at(struct stook_pages_node *node, uintptr_t addr)
{
        uint64_t entry = stook_pagemap_get(addr);
        struct stook_span *s = stook_entry_span(entry);

        if (stook_entry_cache(entry) || !s || !stook_pages_is(s, STOOK_SPAN_FREE, node))
                return NULL;
        return s;
}

void stook_pages_remove(struct stook_pages_node *node, struct stook_span *span)
{
        remove_from(&node->bins[stook_pages_set_of(span)], span);
        if (stook_list_linked(&span->list))
                stook_list_remove(&span->list);
}

/*
 * When two neighbours of one set become one span, it gets the state of the larger one. Otherwise a
 * small purged piece would make all of a growth beside it count as purged, and later as refaulted.
 */
static uint8_t state_of_both(const struct stook_span *a, const struct stook_span *b)
{
        return a->bytes >= b->bytes ? a->state : b->state;
}

struct stook_span *stook_pages_insert(struct stook_pages_node *node, struct stook_span *span)
{
        enum stook_pages_set set = stook_pages_set_of(span);
        struct stook_span *before = stook_pages_before(node, span->start);
        struct stook_span *after = stook_pages_behind(node, span->start + span->bytes);

        if (after && stook_pages_set_of(after) == set) {
                stook_pages_remove(node, after);
                span->state = state_of_both(span, after);
                stook_pages_keep_age(span, after);
                size_t bytes = after->bytes;

                /* Before the span grows over it: in a fork's child pages may leak, not overlap. */
                stook_meta_span_free(after);
                span->bytes += bytes;
        }
        if (before && stook_pages_set_of(before) == set) {
                size_t bytes = span->bytes;

                stook_pages_remove(node, before);
                before->state = state_of_both(before, span);
                stook_pages_keep_age(before, span);
                stook_meta_span_free(span);
                before->bytes += bytes;
                span = before;
        }
        stook_pages_tag(span);
        insert(&node->bins[set], span);
        if (set == STOOK_SET_DIRTY)
                stook_list_add_tail(&node->aged, &span->list);
        return span;
}

/* Under the lock: empties the pending stack. */
static void unpend(struct stook_pages_node *node)
{
        struct stook_link *l = stook_pending_stack_take_all(&node->pending);

        while (l) {
                struct stook_span *span = stook_container_of(l, struct stook_span, link);

                l = l->next;
                stook_pages_insert(node, span);
        }
}

bool stook_pages_lock(struct stook_pages_node *node)
{
        if (!stook_lock_take(&node->lock)) {
                if (STOOK_LIKELY(!stook_lock_inherit(&node->lock)))
                        return false;
                stook_pages_rebuild(node);
        }
        unpend(node);
        return true;
}

void stook_pages_unlock(struct stook_pages_node *node)
{
        do {
                stook_lock_drop(&node->lock);
                stook_lock_fence_after_drop();                          /* M1 */
                if (stook_pending_stack_empty_racy(&node->pending) || !stook_lock_try(&node->lock))
                        return;
                unpend(node);
        } while (true);
}

void stook_pages_pend(struct stook_pages_node *node, struct stook_span *span)
{
        stook_lock_forbid_waits();
        __atomic_store_n(&span->kind, STOOK_SPAN_MOVING, __ATOMIC_RELAXED);
        stook_pending_stack_push(&node->pending, &span->link);
        stook_lock_allow_waits();
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                        /* M1 */
        if (stook_lock_try(&node->lock)) {
                unpend(node);
                stook_pages_unlock(node);
        }
}

void stook_pages_insert_or_pend(struct stook_pages_node *node, struct stook_span *span)
{
        if (stook_pages_lock(node)) {
                __atomic_store_n(&span->kind, STOOK_SPAN_MOVING, __ATOMIC_RELAXED);
                stook_pages_insert(node, span);
                stook_pages_unlock(node);
                return;
        }
        stook_pages_pend(node, span);
}

struct stook_span *stook_pages_split(struct stook_span *span, size_t bytes,
                                     struct stook_span **spare)
{
        struct stook_span *rest = *spare;

        *spare = NULL;
        rest->start = span->start + bytes;
        rest->bytes = span->bytes - bytes;
        rest->state = span->state;
        stook_span_set_node(rest, span->node);
        stook_span_set_age(rest, span->dirty_since_ms);
        span->bytes = bytes;
        __atomic_store_n(&rest->kind, STOOK_SPAN_MOVING, __ATOMIC_RELEASE);
        return rest;
}

uintptr_t stook_pages_fit(const struct stook_span *span, size_t bytes, size_t align)
{
        uintptr_t start = (span->start + align - 1) & ~(uintptr_t)(align - 1);

        return start + bytes <= span->start + span->bytes && start + bytes > start ? start : 0;
}

struct stook_span *stook_pages_cut(struct stook_span *span, size_t bytes, size_t align,
                                   struct stook_span *spares[2], struct stook_span *left[2])
{
        uintptr_t start = stook_pages_fit(span, bytes, align);

        left[0] = left[1] = NULL;
        if (start != span->start) {
                struct stook_span *back = stook_pages_split(span, start - span->start, &spares[0]);

                left[0] = span;
                span = back;
        }
        if (span->bytes > bytes)
                left[1] = stook_pages_split(span, bytes, &spares[1]);
        return span;
}

struct stook_span *stook_pages_take_out(struct stook_pages_node *node, struct stook_span *span,
                                        size_t bytes, size_t align, struct stook_span *spares[2])
{
        struct stook_span *left[2];

        stook_pages_remove(node, span);
        span = stook_pages_cut(span, bytes, align, spares, left);
        for (unsigned i = 0; i < 2; i++)
                if (left[i])
                        stook_pages_insert(node, left[i]);
        return span;
}

/*
 * ---- joined of different sets ----
 * Dirty and clean neighbours stay apart in the bins (span.h, I2). So a take may find no free span,
 * though a dirty one and the clean ones around it would do together. Fresh memory instead would
 * leave all of them free. A take looks at the dirty spans that were inserted last. What it takes is
 * dirty as a whole. Of the neighbours it takes only what is missing, so nothing clean gets dirty
 * that stays free. Stores are so ordered that two descriptors never cover the same pages
 * (pages_fork.c).
 */

void stook_pages_absorb(struct stook_pages_node *node, struct stook_span *span,
                        struct stook_span *after, size_t more, struct stook_span **spare)
{
        stook_pages_remove(node, after);
        if (after->bytes > more)
                stook_pages_insert(node, stook_pages_split(after, more, spare));
        /* Before the span grows over it: in a fork's child pages may leak, not overlap. */
        stook_meta_span_free(after);
        span->bytes += more;
}

/* The last @more bytes of @before become the front of @span. Return: the descriptor of both. */
static struct stook_span *absorb_before(struct stook_pages_node *node, struct stook_span *span,
                                        struct stook_span *before, size_t more,
                                        struct stook_span **spare)
{
        struct stook_span *front = before;
        size_t bytes = span->bytes;

        stook_pages_count_refault(node, before, more);
        stook_pages_remove(node, before);
        if (before->bytes > more) {
                front = stook_pages_split(before, before->bytes - more, spare);
                stook_pages_insert(node, before);
        }
        front->state = span->state;
        stook_meta_span_free(span);
        front->bytes += bytes;
        return front;
}

static size_t clean_bytes(const struct stook_span *span)
{
        return span && stook_pages_is_clean(span) ? span->bytes : 0;
}

/* @span, which is dirty, with its clean neighbours, if they are @bytes together. */
static struct stook_span *join(struct stook_pages_node *node, struct stook_span *span,
                               size_t bytes, struct stook_span **spare)
{
        struct stook_span *before = stook_pages_before(node, span->start);
        struct stook_span *after = stook_pages_behind(node, span->start + span->bytes);
        size_t missing = bytes - span->bytes, front = clean_bytes(before), end = clean_bytes(after);

        if (span->bytes >= bytes || front + end < missing)
                return NULL;
        end = end < missing ? end : missing;
        stook_pages_remove(node, span);
        if (end) {
                stook_pages_count_refault(node, after, end);
                stook_pages_absorb(node, span, after, end, spare);
        }
        if (missing > end)
                span = absorb_before(node, span, before, missing - end, spare);
        return span;
}

struct stook_span *stook_pages_take_joined(struct stook_pages_node *node, size_t bytes,
                                           struct stook_span **spare)
{
        struct stook_list *next = node->aged.prev;

        for (unsigned i = 0; i < LOOKS && next != &node->aged; i++, next = next->prev) {
                struct stook_span *span = stook_container_of(next, struct stook_span, list);

                if ((span = join(node, span, bytes, spare)))
                        return span;
        }
        return NULL;
}
