/*
 * Purpose: the check of the invariants of the page layer (quiescent).
 */
#include "inspect/validate.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/pages_node.h"

struct check {
        void (*fault)(const char *what, const struct stook_span *span);
        int faults;
        size_t free_spans, free_bytes[STOOK_SETS];
};

static void expect(struct check *c, bool holds, const char *what, const struct stook_span *span)
{
        if (holds)
                return;
        c->faults++;
        if (c->fault)
                c->fault(what, span);
}

static void check_span(struct stook_span *span, void *data)
{
        struct check *c = data;
        size_t page = stook_os_page_bytes();
        uint64_t first, last, next;
        struct stook_span *after;

        expect(c, span->bytes && !(span->bytes & (page - 1)) && !(span->start & (page - 1)),
               "span of odd size", span);
        expect(c, stook_pagemap_ours(span->start), "span outside the ranges", span);
        expect(c, stook_address_node(span->start) == span->node, "memory of another node", span);
        first = stook_pagemap_get(span->start);
        /*
         * Nothing leads to a span on its way from a slab to the pages. That of a type-stable slab
         * is on its way until readers have left; any other only where a fork comes in between.
         */
        expect(c,
               span->kind == STOOK_SPAN_MOVING || stook_entry_span(first) == span ||
                       (span->kind == STOOK_SPAN_TAKEN && !first),
               "the map does not lead to the span", span);
        if (span->kind == STOOK_SPAN_SLAB)
                expect(c, stook_entry_cache(first) != 0, "a slab without a cache in the map", span);
        if (stook_span_kind_of(span) != STOOK_SPAN_FREE)
                return;
        expect(c, stook_pages_is(span, STOOK_SPAN_FREE, &stook_pages_nodes[span->node]),
               "in the bins of another node", span);
        c->free_spans++;
        c->free_bytes[stook_pages_set_of(span)] += span->bytes;
        last = stook_pagemap_get(span->start + span->bytes - STOOK_MAP_PAGE);
        expect(c, stook_entry_span(last) == span && !stook_entry_cache(last),
               "last page leads elsewhere", span);
        next = stook_pagemap_get(span->start + span->bytes);
        after = stook_entry_span(next);
        expect(c,
               !after || stook_entry_cache(next) || after->kind != span->kind ||
                       after->start != span->start + span->bytes ||
                       stook_pages_set_of(after) != stook_pages_set_of(span),
               "free neighbours not coalesced", span);
}

int stook_pages_validate(void (*fault)(const char *what, const struct stook_span *span))
{
        struct check c = { .fault = fault };
        size_t spans = 0, bytes[STOOK_SETS] = { 0 };

        stook_meta_span_for_each(check_span, &c);
        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                for (unsigned set = 0; set < STOOK_SETS; set++) {
                        const struct stook_bins *bins = &stook_pages_nodes[n].bins[set];

                        spans += bins->spans;
                        bytes[set] += bins->bytes;
                        for (unsigned i = 0; i < STOOK_BINS; i++)
                                expect(&c,
                                       (bins->root[i] != NULL) ==
                                               (bins->bitmap[i / 64] >> i % 64 & 1),
                                       "bitmap does not agree with its bins", bins->root[i]);
                }
        }
        expect(&c, spans == c.free_spans, "free spans that are in no bin, or too many", NULL);
        for (unsigned set = 0; set < STOOK_SETS; set++)
                expect(&c, bytes[set] == c.free_bytes[set], "bytes of the bins do not add up",
                       NULL);
        return c.faults;
}
