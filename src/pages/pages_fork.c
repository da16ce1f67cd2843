/*
 * Purpose: the page layer over a fork. A fork is a consistent cut of other threads' stores; where prepare had
 * all locks the child's bins are sound, otherwise they are rebuilt from the descriptors, whose stores are so
 * ordered that two of them never cover the same pages (span.c). What a vanished thread held in its hands comes
 * back too: a span that is free and MOVING has no other owner in the child, for a thread that has one in its hands
 * does not come here (pages_node.h).
 */
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/pages_node.h"

bool stook_pages_fork_prepare(void)
{
        for (unsigned n = 0; n < stook_os_node_count(); n++)
                if (!stook_pages_lock(&stook_pages_nodes[n])) {
                        while (n-- > 0)
                                stook_pages_unlock(&stook_pages_nodes[n]);
                        return false;
                }
        return true;
}

void stook_pages_fork_parent(void)
{
        for (unsigned n = stook_os_node_count(); n-- > 0;)
                stook_pages_unlock(&stook_pages_nodes[n]);
}

static void set_moving(struct stook_span *span, void *data)
{
        (void)data;
        if (span->kind == STOOK_SPAN_FREE)
                span->kind = STOOK_SPAN_MOVING;
}

static void insert_again(struct stook_span *span, void *data)
{
        (void)data;
        if (span->kind != STOOK_SPAN_MOVING || !span->bytes)
                return;
        if (span->own_mapping) {
                /* an own mapping whose giver vanished: its memory is unknown, its address space is lost */
                stook_pagemap_set(span->start, (uint64_t)(uintptr_t)span);
                span->kind = STOOK_SPAN_TAKEN;
                return;
        }
        span->list.next = span->list.prev = NULL;
        stook_pages_insert(&stook_pages_nodes[span->node], span);
}

void stook_pages_fork_child(bool whole)
{
        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                struct stook_pages_node *node = &stook_pages_nodes[n];

                if (whole) {
                        stook_pages_unlock(node);
                        continue;
                }
                stook_lock_reset(&node->lock);
                for (unsigned set = 0; set < STOOK_SETS; set++)
                        stook_bins_init(&node->bins[set]);
                stook_list_init(&node->aged);
                stook_pending_stack_take_all(&node->pending);
        }
        if (whole)
                return;
        stook_meta_span_for_each(set_moving, NULL);
        stook_meta_span_for_each(insert_again, NULL);
}
