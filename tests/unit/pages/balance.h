/*
 * Purpose: what the page layer never loses, for its tests (quiescent): address space below a
 * range's frontier is in exactly one span, which is taken or free; committed bytes are those of the
 * spans that have memory; and a descriptor is a span's or is free.
 */
#ifndef PAGES_BALANCE_H
#define PAGES_BALANCE_H

#include "pages_env.h"
#include "pages/meta.h"
#include "pages/pages_node.h"
#include "pages/source.h"

#define BALANCE_RANGES 64
#define BALANCE_SKEW   ((size_t)13 << 12)       /* what range.c leaves out at a range's start */

struct balance {
        const struct stook_range_record *ranges[BALANCE_RANGES];
        unsigned range_count;
        size_t space, committed, lost;
};

static inline void balance_add_range(struct balance *b, const struct stook_range_record *range)
{
        size_t page = stook_os_page_bytes();

        assert_non_null(range);
        for (unsigned i = 0; i < b->range_count; i++)
                if (b->ranges[i] == range)
                        return;
        assert_true(b->range_count < BALANCE_RANGES);
        b->ranges[b->range_count++] = range;
        b->space -= range->frontier - ((BALANCE_SKEW + page - 1) & ~(page - 1));
}

static inline void balance_add(struct stook_span *span, void *balance)
{
        struct balance *b = balance;

        b->lost += stook_span_kind_of(span) == STOOK_SPAN_MOVING;
        balance_add_range(b, stook_range_of(span->start));
        b->space += span->own_mapping ? span->reserved : span->bytes;
        if (span->own_mapping)
                b->committed += span->committed;
        else if (span->state != STOOK_SPAN_RESERVED)
                b->committed += span->bytes;
}

/* The free ones serve before new ones are made. */
static inline void assert_no_descriptor_is_lost(void)
{
        size_t before = stook_meta_bytes(), n = 0;
        struct stook_link *l, *first = NULL;

        for (l = __atomic_load_n(&stook_span_blocks, __ATOMIC_ACQUIRE); l; l = l->next) {
                struct stook_span_block *block = stook_container_of(l, struct stook_span_block,
                                                                    link);

                for (unsigned i = 0; i < STOOK_SPAN_BLOCK; i++)
                        n += block->span[i].kind == STOOK_SPAN_UNUSED;
        }
        while (n--) {
                struct stook_span *span = stook_meta_span_new();

                assert_non_null(span);
                stook_link_set_next(&span->link, first);
                first = &span->link;
        }
        assert_int_equal(stook_meta_bytes(), before);
        while (first) {
                struct stook_span *span = stook_container_of(first, struct stook_span, link);

                first = first->next;
                stook_meta_span_free(span);
        }
}

static inline void assert_balance(void)
{
        struct balance b = { .range_count = 0 };
        struct stook_pages_stats stats;

        /* Nothing is in any hands from here on. */
        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                stook_recent_flush(&stook_pages_nodes[n]);
                if (stook_pages_lock(&stook_pages_nodes[n]))
                        stook_pages_unlock(&stook_pages_nodes[n]);
        }
        stook_pages_stats(&stats);
        stook_meta_span_for_each(balance_add, &b);
        assert_int_equal(b.lost, 0);
        assert_int_equal(b.space, 0);
        assert_int_equal(b.committed, stats.committed_bytes);
        assert_no_descriptor_is_lost();
}

#endif
