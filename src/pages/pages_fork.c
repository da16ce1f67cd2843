/*
 * Purpose: bins made anew: of the page layer over a fork, and after a jump out of a call that held
 * the lock. A fork is a consistent cut of other threads' stores. Where prepare had all locks the
 * child's bins are sound. Otherwise they are rebuilt from the descriptors, whose stores are so
 * ordered that two of them never cover the same pages (span.c). What a vanished thread had in hands
 * comes back, too: a span that is free and MOVING has no other owner in the child, because a thread
 * with one in hands does not come here (pages_node.h). After a jump (stook_lock_inherit) other
 * threads go on. A MOVING span may be theirs, and stays so. A FREE one changes under the lock only.
 * What the call itself had in hands is lost. A rebuilding that is jumped out of is done again: what
 * is LOOSE was FREE.
 */
#include <string.h>
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/pages_node.h"
#include "pages/purge.h"
#include "pages/source.h"
#include "policy/dirty.h"

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

static void init(struct stook_pages_node *node)
{
        for (unsigned set = 0; set < STOOK_SETS; set++)
                memset(&node->bins[set], 0, sizeof(node->bins[set]));
        stook_list_init(&node->aged);
}

static void loosen(struct stook_span *span, void *node)
{
        if (stook_pages_is(span, STOOK_SPAN_FREE, node))
                __atomic_store_n(&span->kind, (uint8_t)(STOOK_SPAN_LOOSE + span->node),
                                 __ATOMIC_RELAXED);
}

static void insert_loose(struct stook_span *span, void *node)
{
        if (!stook_pages_is(span, STOOK_SPAN_LOOSE, node))
                return;
        span->list.next = span->list.prev = NULL;
        stook_pages_insert(node, span);
}

void stook_pages_rebuild(struct stook_pages_node *node)
{
        init(node);
        stook_meta_span_for_each(loosen, node);
        stook_meta_span_for_each(insert_loose, node);
}

static void set_moving(struct stook_span *span, void *data)
{
        (void)data;
        if (span->kind >= STOOK_SPAN_FREE)
                span->kind = STOOK_SPAN_MOVING;
}

static void insert_again(struct stook_span *span, void *data)
{
        (void)data;
        if (span->kind != STOOK_SPAN_MOVING || !span->bytes)
                return;
        if (span->own_mapping) {
                /*
                 * An own mapping whose giver vanished: its memory is unknown, its address space is
                 * lost.
                 */
                stook_pagemap_set(span->start, (uint64_t)(uintptr_t)span);
                span->kind = STOOK_SPAN_TAKEN;
                return;
        }
        span->list.next = span->list.prev = NULL;
        stook_pages_insert(&stook_pages_nodes[span->node], span);
}

void stook_pages_fork_child(bool whole)
{
        stook_dirty_set_threaded(false);        /* the child does not have that thread */
        stook_space_forked();
        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                struct stook_pages_node *node = &stook_pages_nodes[n];

                if (whole) {
                        stook_pages_unlock(node);
                        continue;
                }
                stook_lock_reset(&node->lock);
                init(node);
                stook_pending_stack_take_all(&node->pending);
                node->recent = 0;
        }
        if (whole)
                return;
        stook_meta_span_for_each(set_moving, NULL);
        stook_meta_span_for_each(insert_again, NULL);
}
