/*
 * Purpose: spans taken and given, see span.h. stook_span_move is in own_mapping.c,
 * stook_span_resize in span_resize.c.
 */
#include "base/inject.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/pages_node.h"

/* As many as there are nodes are used. */
struct stook_pages_node stook_pages_nodes[STOOK_NODES_MAX] STOOK_MOSTLY_UNUSED;

#define NOLOCK_LOOKS 16         /* pending spans looked at by one take without the lock */
#define ALIGN_MOST   ((size_t)1 << 30)

bool stook_pages_start(void)
{
        /* Bins without a span are all zero, and are left untouched. */
        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                stook_list_init(&stook_pages_nodes[n].aged);
                stook_lock_set_rank(&stook_pages_nodes[n].lock, STOOK_RANK_BINS);
        }
        if (!stook_ranges_start())
                return false;
        stook_meta_start();
        return true;
}

void stook_pages_stats(struct stook_pages_stats *stats)
{
        *stats = (struct stook_pages_stats){
                .reserved_bytes = stook_ranges_reserved(),
                .metadata_bytes = stook_meta_bytes(),
                .ranges = stook_ranges_count(),
        };
        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                struct stook_pages_node *node = &stook_pages_nodes[n];
                const struct stook_ledger *ledger = &node->ledger;

                stats->taken_bytes += stook_ledger_used(ledger);
                stats->committed_bytes += __atomic_load_n(&ledger->committed, __ATOMIC_RELAXED);
                stats->taken_peak_bytes += __atomic_load_n(&ledger->peak, __ATOMIC_RELAXED);
                stats->purged_bytes += __atomic_load_n(&ledger->purged, __ATOMIC_RELAXED);
                stats->purges += __atomic_load_n(&ledger->purges, __ATOMIC_RELAXED);
                stats->refaulted_bytes += __atomic_load_n(&ledger->refaulted, __ATOMIC_RELAXED);
                stats->free_dirty_bytes += stook_pages_dirty(node) + stook_recent_bytes(node);
                for (unsigned set = STOOK_SET_HUGE; set <= STOOK_SET_CLEAN; set++)
                        stats->free_clean_bytes += __atomic_load_n(&node->bins[set].bytes,
                                                                   __ATOMIC_RELAXED);
                for (unsigned set = 0; set < STOOK_SETS; set++)
                        stats->free_spans += __atomic_load_n(&node->bins[set].spans,
                                                             __ATOMIC_RELAXED);
        }
}

/*
 * Under the lock: a free span of @bytes or more in the bins, dirty before clean. @sets: a bit for
 * each set that may give it. The large object that was freed last goes there before memory would
 * grow.
 */
static struct stook_span *find(struct stook_pages_node *node, size_t bytes, unsigned sets)
{
        struct stook_span *span;

        do
                for (unsigned set = STOOK_SET_DIRTY; set <= STOOK_SET_CLEAN; set++)
                        if (sets >> set & 1 && (span = stook_bins_find(&node->bins[set], bytes)))
                                return span;
        while (stook_recent_insert(node));
        return NULL;
}

/* Under the lock. Return: @bytes; or more, in which *@again begins (advice.c). */
static struct stook_span *take_locked(struct stook_pages_node *node, size_t bytes, size_t align,
                                      unsigned sets, struct stook_span *spares[2],
                                      struct stook_pages_again *again)
{
        size_t page = stook_os_page_bytes(), room = bytes + (align > page ? align - page : 0);
        struct stook_span *span = find(node, room, sets);

        if (!span)
                return align == page ? stook_pages_take_joined(node, bytes, &spares[1]) : NULL;
        stook_pages_count_refault(node, span, bytes);
        if (align == page && stook_pages_begins_huge(node, span, bytes, again)) {
                stook_pages_begin_huge(node, span, bytes, again, &spares[1]);
                return span;
        }
        return stook_pages_take_out(node, span, bytes, align, spares);
}

/* Without the lock: takes the pending stack whole, and pushes all spans but one back. */
static struct stook_span *take_pending(struct stook_pages_node *node, size_t bytes, size_t align,
                                       struct stook_span *spares[2])
{
        struct stook_link *all = stook_pending_stack_take_all(&node->pending);
        struct stook_link *l = all, *before = NULL;
        struct stook_span *span = NULL, *left[2] = { NULL, NULL };

        for (unsigned i = 0; l && i < NOLOCK_LOOKS; i++, before = l, l = l->next) {
                struct stook_span *s = stook_container_of(l, struct stook_span, link);

                if (s->state != STOOK_SPAN_RESERVED && stook_pages_fit(s, bytes, align)) {
                        span = s;
                        break;
                }
        }
        if (span) {
                if (before)
                        stook_link_set_next(before, span->link.next);
                else
                        all = span->link.next;
        }
        stook_pending_stack_put_back(&node->pending, all);
        if (span)
                span = stook_pages_cut(span, bytes, align, spares, left);
        for (unsigned i = 0; i < 2; i++)
                if (left[i])
                        stook_pending_stack_push(&node->pending, &left[i]->link);
        return span;
}

size_t stook_pages_taken(unsigned node)
{
        return stook_ledger_used(&stook_pages_nodes[node].ledger);
}

/* The map leads to @span already. */
static void hand_out_tagged(struct stook_pages_node *node, struct stook_span *span)
{
        bool clean = span->state != STOOK_SPAN_DIRTY;

        span->list.next = span->list.prev = NULL;
        stook_span_clear(&span->use, sizeof(span->use));
        /* Last: the child of a fork finds it either free, or taken and in the pagemap. */
        __atomic_store_n(&span->kind, STOOK_SPAN_TAKEN, __ATOMIC_RELEASE);
        stook_ledger_take(&node->ledger, span->bytes);
        if (span->bytes >= STOOK_DENSITY_LARGE_LEAST)
                stook_ledger_take_large(&node->ledger);
        else if (span->bytes < STOOK_SLABS_MOST)
                stook_ledger_take_slabs(&node->ledger, span->bytes);
        stook_fresh_take(&node->ledger, span->bytes, clean, stook_pages_decay_ms());
        if (clean)
                stook_pages_owe(node, span->bytes, true);
}

static void hand_out(struct stook_pages_node *node, struct stook_span *span)
{
        stook_pages_tag(span);
        hand_out_tagged(node, span);
}

/* Under the lock, which it drops: of what lies free in these sets. */
static struct stook_span *take_free(struct stook_pages_node *node, size_t bytes, size_t align,
                                    unsigned sets, struct stook_span *spares[2])
{
        struct stook_pages_again again = { 0, 0 };
        struct stook_span *span = take_locked(node, bytes, align, sets, spares, &again);

        stook_pages_unlock(node);
        return span && again.end ? stook_pages_ask_again(node, span, bytes, &again, &spares[1])
                                 : span;
}

/*
 * What lies free; what becomes enough where the heap grows at its end; fresh memory; what is kept
 * for requests of another kind.
 */
static struct stook_span *take(struct stook_pages_node *node, size_t bytes, size_t align,
                               struct stook_span *spares[2])
{
        unsigned sets = stook_huge_sets(node, bytes);
        bool locked = stook_pages_lock(node);
        struct stook_span *span, *left[2];

        stook_lock_forbid_waits();      /* this thread owns a span from here on */
        span = locked ? take_free(node, bytes, align, sets, spares)
                      : take_pending(node, bytes, align, spares);
        if (!span && locked && align == stook_os_page_bytes() && bytes >= STOOK_HUGE_PAGE) {
                struct stook_span *rest = stook_pages_grow_end(node, bytes);

                if (stook_pages_lock(node))
                        span = take_free(node, bytes, align, sets, spares);
                if (rest)
                        stook_pages_insert_or_pend(node, rest);
        }
        /* No spare is left if the huge pages in hands went back for lack of a descriptor. */
        if (!span && spares[1] && (span = stook_pages_grow(node, bytes, bytes, align))) {
                span = stook_pages_cut(span, bytes, align, spares, left);
                if (left[1])
                        stook_pages_grown_beyond(left[1], bytes);
                for (unsigned i = 0; i < 2; i++)
                        if (left[i])
                                stook_pages_insert_or_pend(node, left[i]);
        }
        if (!span && spares[1] && locked && stook_pages_lock(node))
                span = take_free(node, bytes, align, ~0u, spares);
        if (span)
                hand_out(node, span);
        stook_lock_allow_waits();
        return span;
}

/* Not inlined: the frame of stook_span_take, which growth lies on, is smaller (check-stack). */
static STOOK_NOINLINE struct stook_span *take_recent(struct stook_pages_node *node, size_t bytes)
{
        struct stook_span *span;

        stook_lock_forbid_waits();      /* this thread owns a span from here on */
        span = stook_recent_take(node, bytes);
        if (span)
                hand_out_tagged(node, span);
        stook_lock_allow_waits();
        return span;
}

struct stook_span *stook_span_take(unsigned node_index, size_t bytes, size_t align)
{
        struct stook_pages_node *node = &stook_pages_nodes[node_index];
        size_t page = stook_os_page_bytes();
        struct stook_span *spares[2], *span = NULL;

        if (!bytes || bytes > PTRDIFF_MAX || align > ALIGN_MOST ||
            STOOK_INJECT_FROM(span_fail_from))
                return NULL;
        bytes = (bytes + page - 1) & ~(page - 1);
        if (align < page)
                align = page;
        if (bytes > STOOK_SPAN_OWN_MAPPING)
                return stook_span_take_own(node_index, bytes, align,
                                           stook_ranges_limited() ? 0 : bytes / 4);

        if (bytes >= STOOK_RECENT_LEAST && align == page && (span = take_recent(node, bytes)))
                return span;
        spares[0] = align > page ? stook_meta_span_new() : NULL;
        spares[1] = stook_meta_span_new();
        if (spares[1] && (align == page || spares[0]))
                span = take(node, bytes, align, spares);
        for (unsigned i = 0; i < 2; i++)
                if (spares[i])
                        stook_meta_span_free(spares[i]);
        return span;
}

/*
 * Under the lock, with waits forbidden: cuts one free span into up to @n spans of @bytes. Uses up
 * to as many of @spares. What begins a huge page that is to be asked for again is left to
 * stook_span_take. Return: how many spans.
 */
static unsigned take_pieces(struct stook_pages_node *node, size_t bytes, unsigned n,
                            struct stook_span **spares, struct stook_span **spans)
{
        struct stook_span *left = find(node, bytes, stook_huge_sets(node, bytes));
        struct stook_pages_again again;
        unsigned pieces = 0;

        if (!left || stook_pages_begins_huge(node, left, bytes, &again))
                return 0;
        stook_pages_remove(node, left);
        while (left && pieces < n) {
                struct stook_span *span = left;

                stook_pages_count_refault(node, span, bytes);
                left = span->bytes > bytes ? stook_pages_split(span, bytes, &spares[pieces]) : NULL;
                spans[pieces++] = span;
                if (left && (left->bytes < bytes ||
                             stook_pages_begins_huge(node, left, bytes, &again)))
                        break;
        }
        if (left)
                stook_pages_insert(node, left);
        return pieces;
}

unsigned stook_span_take_some(unsigned node_index, size_t bytes, unsigned n,
                              struct stook_span **spans)
{
        struct stook_pages_node *node = &stook_pages_nodes[node_index];
        struct stook_span *spares[STOOK_SPAN_SOME] = { NULL };
        unsigned count = 0, got = 0;

        if (STOOK_INJECT_FROM(span_fail_from))
                return 0;
        while (count < n && (spares[count] = stook_meta_span_new()))
                count++;
        if (count == n && stook_pages_lock(node)) {
                unsigned more;

                stook_lock_forbid_waits();                              /* this thread owns spans */
                do
                        got += more = take_pieces(node, bytes, n - got, spares + got, spans + got);
                while (more && got < n);
                stook_pages_unlock(node);
                for (unsigned i = 0; i < got; i++)
                        hand_out(node, spans[i]);
                stook_lock_allow_waits();
        }
        for (unsigned i = 0; i < count; i++)
                if (spares[i])
                        stook_meta_span_free(spares[i]);
        return got;
}

/*
 * Before anything is purged: were large objects written? @span tells, which is given and is large,
 * if it had no content when it was taken. Else what grew last may.
 */
static void look_at_large(struct stook_pages_node *node, const struct stook_span *span)
{
        struct stook_density *large = &node->ledger.density[STOOK_DENSITY_LARGE];

        if (!span->own_mapping && !span->use.guarded && !span->use.wiped &&
            span->state != STOOK_SPAN_DIRTY && !stook_ranges_limited()) {
                stook_density_forget(large, span->start, span->bytes);
                stook_density_look_at(large, span->start, span->bytes);
        } else if (stook_density_found(large) == STOOK_DENSITY_UNKNOWN) {
                stook_density_look(large, 0);
        }
}

void stook_span_give(struct stook_span *span)
{
        struct stook_pages_node *node = &stook_pages_nodes[span->node];
        bool large = span->bytes >= STOOK_DENSITY_LARGE_LEAST;

        stook_ledger_give(&node->ledger, span->bytes);
        if (large)
                look_at_large(node, span);
        if (span->own_mapping) {
                stook_own_give(node, span);
                return;
        }
        if (large)
                stook_ledger_give_large(&node->ledger);
        else if (span->bytes < STOOK_SLABS_MOST)
                stook_ledger_give_slabs(&node->ledger, span->bytes);
        span->state = STOOK_SPAN_DIRTY;
        stook_span_set_age(span, (uint32_t)stook_os_clock_ms());
        span->list.next = NULL;
        if (stook_recent_put(node, span))
                return;
        stook_pages_insert_or_pend(node, span);
        stook_pages_purge_excess_of(node);
}

void stook_span_give_chain(struct stook_link *first)
{
        struct stook_pages_node *node;
        size_t bytes = 0, slabs = 0;
        uint32_t now;

        if (!first)
                return;
        node = &stook_pages_nodes[stook_container_of(first, struct stook_span, link)->node];
        now = (uint32_t)stook_os_clock_ms();
        for (bool locked = false; first;) {
                struct stook_span *span = stook_container_of(first, struct stook_span, link);

                first = first->next;
                bytes += span->bytes;
                slabs += span->bytes < STOOK_SLABS_MOST ? span->bytes : 0;
                span->state = STOOK_SPAN_DIRTY;
                stook_span_set_age(span, now);
                span->list.next = NULL;
                if (!locked)
                        locked = stook_pages_lock(node);
                if (locked) {
                        __atomic_store_n(&span->kind, STOOK_SPAN_MOVING, __ATOMIC_RELAXED);
                        stook_pages_insert(node, span);
                } else {
                        stook_pages_pend(node, span);
                }
                if (locked && !first)
                        stook_pages_unlock(node);
        }
        stook_ledger_give(&node->ledger, bytes);
        stook_ledger_give_slabs(&node->ledger, slabs);
}

struct stook_span *stook_span_large_at(uintptr_t addr)
{
        uint64_t entry = stook_pagemap_get(addr);
        struct stook_span *s = stook_entry_span(entry);

        if (!s || stook_entry_cache(entry) ||
            __atomic_load_n(&s->kind, __ATOMIC_RELAXED) != STOOK_SPAN_LARGE ||
            s->start + __atomic_load_n(&s->use.lead, __ATOMIC_RELAXED) != addr)
                return NULL;
        return s;
}
