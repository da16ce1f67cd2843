/*
 * What this proves: each node's spans lie in a part of the address space of its own; 100 GiB over 8
 * nodes, taken, given and taken again in large spans and in crumbs, are fewer than 100 mappings; a
 * node that outgrows its part goes on in pieces; where a limit binds, each node has pieces of its
 * own; memory given back reads as zeros when it comes again; a stale entry of the map that leads to
 * another node's free span has no span coalesced with it. Run with STOOK_TOPOLOGY=nodes=8.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include "pages_env.h"
#include "../os/child.h"
#include "pages/pagemap.h"
#include "pages/source.h"

#define NODES 8
#define GIB ((size_t)1 << 30)
/* Spans of 32 MiB: larger ones have two mappings each, on one node too. */
#define BIG 3200
#define CRUMBS 512

static void start(void)
{
        stook_os_topology_detect();
        CHECK(stook_os_node_count() == NODES);
        CHECK(stook_pages_start());
}

static struct stook_span *take(unsigned node, size_t bytes)
{
        struct stook_span *span = stook_span_take(node, bytes, 0);

        CHECK(span && span->node == node && stook_address_node(span->start) == node);
        CHECK(stook_address_node(span->start + span->bytes - 1) == node);
        CHECK(stook_span_is_zero(span) ? *(volatile uint64_t *)span->start == 0 : true);
        span->kind = STOOK_SPAN_LARGE;
        *(volatile uint64_t *)span->start = 1;
        return span;
}

/* VMAs before and after, for what the C library and the sanitizers have. */
static void few_mappings(void)
{
        static struct stook_span *big[BIG], *crumb[CRUMBS];
        unsigned before = vmas(), most = 0;

        /* Each span's first page is written: 6 GiB, if the system made them huge by itself. */
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
        start();
        for (unsigned round = 0; round < 3; round++) {
                for (unsigned i = 0; i < BIG; i++) {
                        if (!big[i])
                                big[i] = take(i % NODES, 32 << 20);
                        if (i < CRUMBS && !crumb[i])
                                crumb[i] = take((3 * i + 1) % NODES, (size_t)4096 << i % 6);
                }
                most = most > vmas() ? most : vmas();
                for (unsigned i = round; i < BIG; i += 3) {
                        stook_span_give(big[i]);
                        big[i] = NULL;
                }
                for (unsigned i = round; i < CRUMBS; i += 2) {
                        stook_span_give(crumb[i]);
                        crumb[i] = NULL;
                }
                stook_pages_purge(0);
                most = most > vmas() ? most : vmas();
                CHECK(stook_pages_validate(print_fault) == 0);
        }
        fprintf(stderr, "%u GiB over %u nodes: %u mappings more\n", BIG / 32, NODES, most - before);
        CHECK(most - before < 100);
}

/* Of the address space below, each node has one run. */
static void parts_are_contiguous(void)
{
        unsigned changes = 0, last = NODES;

        start();
        for (unsigned node = 0; node < NODES; node++)
                take(node, 64 << 20);
        for (uintptr_t at = stook_range.base; at - stook_range.base < stook_range.bytes;
             at += GIB) {
                changes += stook_address_node(at) != last;
                last = stook_address_node(at);
        }
        CHECK(changes == NODES && stook_ranges_count() == NODES);
        /* A lookup of an address that was not used yet finds nothing. */
        CHECK(stook_pagemap_get(stook_range.base + stook_range.bytes / NODES - 4096) == 0);
}

/* In spans of which each would fit into the machine's memory. */
static void a_part_overflows(void)
{
        static struct stook_span *span[600];

        start();
        for (unsigned i = 0; i < 600; i++)
                span[i] = take(5, GIB);
        CHECK(stook_ranges_count() > NODES && stook_pages_validate(print_fault) == 0);
        for (unsigned i = 0; i < 600; i++)
                stook_span_give(span[i]);
        CHECK(stook_pages_validate(print_fault) == 0);
}

static void limited(void)
{
        struct rlimit limit = { 4 * GIB, 4 * GIB };

        NEEDS(!setrlimit(RLIMIT_AS, &limit));
        start();
        CHECK(stook_ranges_limited());
        for (unsigned i = 0; i < 40; i++)
                take(i % NODES, 1 << 20);
        CHECK(stook_ranges_count() >= NODES);
        CHECK(stook_pages_validate(print_fault) == 0);
}

static void moved_and_given_back(void)
{
        struct stook_span *span;

        start();
        for (unsigned round = 0; round < 4; round++) {
                span = take(3, 40 << 20);
                memset((void *)span->start, 7, span->bytes);
                span = stook_span_move(span, 80 << 20);
                CHECK(span && span->node == 3 && stook_address_node(span->start) == 3);
                CHECK(*(char *)(span->start + (39 << 20)) == 7 &&
                      *(char *)(span->start + (41 << 20)) == 0);
                CHECK(stook_span_resize(span, 34 << 20) && stook_span_resize(span, 40 << 20));
                CHECK(*(char *)(span->start + (33 << 20)) == 7 &&
                      *(char *)(span->start + (35 << 20)) == 0);
                stook_span_give(span);
                span = stook_span_move(take(6, 2 << 20), 3 << 20);
                CHECK(span && stook_address_node(span->start) == 6 && *(char *)span->start == 1);
                stook_span_give(span);
        }
        CHECK(stook_pages_validate(print_fault) == 0);
}

/* Two neighbours of node 5 that are taken, and a dirty free span of node 6. */
static void start_at_5_and_6(struct stook_span **before, struct stook_span **given,
                             struct stook_span **other)
{
        struct stook_span *at_6;

        start();
        *before = take(5, 1 << 20);
        *given = take(5, 1 << 20);
        CHECK((*before)->start + (*before)->bytes == (*given)->start);
        at_6 = take(6, 1 << 20);
        take(6, 1 << 20);
        stook_span_give(at_6);
        *other = stook_entry_span(stook_pagemap_get(at_6->start));
        CHECK(stook_span_kind_of(*other) == STOOK_SPAN_FREE && (*other)->node == 6);
        CHECK((*other)->state == STOOK_SPAN_DIRTY);
}

/*
 * The moment that a stale entry and a reuse make: an entry of node 5 still leads to a descriptor
 * that is in the bins of node 6, and the fields of what it becomes next, a piece of node 5, are
 * there already. (In a run of threads the reader is stopped between two loads meanwhile.)
 */
static void a_stale_entry_leads_to_another_node(void)
{
        struct stook_span *before, *given, *other, kept;
        uintptr_t start;

        start_at_5_and_6(&before, &given, &other);
        start = given->start;
        kept = *other;
        other->start = before->start;
        other->bytes = before->bytes;
        other->node = 5;
        stook_pagemap_set(start - STOOK_MAP_PAGE, (uint64_t)(uintptr_t)other);
        stook_span_give(given);
        other->start = kept.start;
        other->bytes = kept.bytes;
        other->node = kept.node;
        CHECK(!memcmp(other, &kept, sizeof(kept)));
        stook_pagemap_set(start - STOOK_MAP_PAGE, (uint64_t)(uintptr_t)before);
        CHECK(stook_pagemap_get(start) == (uint64_t)(uintptr_t)given && given->start == start);
        CHECK(stook_span_kind_of(given) == STOOK_SPAN_FREE);
        CHECK(stook_pages_validate(print_fault) == 0);
        stook_span_give(before);
        CHECK(stook_pages_validate(print_fault) == 0);
}

#define IN_CHILD(step)                                  \
        static void test_##step(void **state)           \
        {                                               \
                (void)state;                            \
                assert_child_fine(step);                \
        }

IN_CHILD(few_mappings)
IN_CHILD(parts_are_contiguous)
IN_CHILD(a_part_overflows)
IN_CHILD(limited)
IN_CHILD(moved_and_given_back)
IN_CHILD(a_stale_entry_leads_to_another_node)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_few_mappings),
                cmocka_unit_test(test_parts_are_contiguous),
                cmocka_unit_test(test_a_part_overflows),
                cmocka_unit_test(test_limited),
                cmocka_unit_test(test_moved_and_given_back),
                cmocka_unit_test(test_a_stale_entry_leads_to_another_node),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
