/*
 * Purpose: spans with a mapping of their own inside the range: what is above 32 MiB, and what
 * realloc moves. A take maps fresh pages over reserved address space. A give puts PROT_NONE back
 * over it: no memory of such a span is kept, and no hole is left. Behind its bytes such a span has
 * address space in reserve (headroom), so that it grows in place, step by step. Pages come in steps
 * of an eighth; untouched ones cost nothing.
 * Invariants:
 *  I1 bytes <= committed <= reserved; all three are multiples of the page size.
 *  I2 a span moved here by mremap has mappings that never merge with their neighbours; they are
 *     gone with the PROT_NONE that is mapped over them at the end.
 *  I3 a span that may have a hole after a move that was refused stays taken for ever: nothing of it
 *     is touched again, and it counts for nothing.
 * Concurrency: the fields of a taken span are its user's.
 */
#include <string.h>
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "pages/pages_node.h"

#define AHEAD_SHARE 8           /* pages mapped ahead of a growing span: an eighth of it */
/* Copying less than this is cheaper than mremap and its faults; measured roughly. */
#define MOVE_LEAST  ((size_t)256 << 10)
/*
 * From here on realloc may move things into mappings of their own. Below, they are copied.
 * Microseconds on a virtual machine:
 *
 *     KiB    copy to pages    copy to        mremap and      faults for the
 *            at hand          fresh pages    its mappings    pages it took away
 *     512          16             185               8              181
 *    1024          52             415              19              416
 *    4096         595            2511              40             1846
 *   32768        5592           23265              46            15811
 *
 * So a copy wins at any size where pages are at hand, and are wanted again: the memory of a mapping
 * of its own is gone at its end. The border is what a process may keep in vain.
 */
#define OWN_LEAST   ((size_t)4 << 20)

/* The first @bytes of the span have pages from here on. False: the system refuses them. */
static bool commit_to(struct stook_pages_node *node, struct stook_span *span, size_t bytes)
{
        size_t more;
        bool huge;

        if (bytes <= span->committed)
                return true;
        more = bytes - span->committed;
        huge = stook_huge_own_wanted(node, span->start, span->committed, more);
        if (!stook_range_commit(span->start + span->committed, more))
                return false;
        if (huge)
                stook_os_advise((void *)(span->start + span->committed), more, STOOK_OS_HUGEPAGE);
        span->committed = bytes;
        __atomic_fetch_add(&node->ledger.committed, more, __ATOMIC_RELAXED);
        return true;
}

/*
 * An own mapping with address space for @bytes + @headroom, no page behind it yet; for commit_to.
 */
static struct stook_span *make(struct stook_pages_node *node, size_t bytes, size_t align,
                               size_t headroom)
{
        struct stook_span *span = NULL;

        headroom = stook_os_whole_pages(headroom);
        if (bytes + headroom >= bytes)
                span = stook_pages_reserve(node, bytes + headroom, align);
        if (!span && headroom)
                span = stook_pages_reserve(node, bytes, align);
        if (!span)
                return NULL;
        span->reserved = span->bytes;
        span->committed = 0;
        span->bytes = bytes;
        span->own_mapping = 1;
        return span;
}

/* Its address space is reserved and free again. */
static void unmake(struct stook_pages_node *node, struct stook_span *span)
{
        if (span->committed && !stook_range_decommit(span->start, span->committed, span->node)) {
                /*
                 * No more VMAs to be had: keep it as ordinary memory, without its content if that
                 * can be.
                 */
                size_t committed = span->committed;
                bool wiped = span->use.wiped;   /* before a bin's links are there */
                struct stook_span *spare = span->reserved > committed ? stook_meta_span_new()
                                                                      : NULL;

                span->bytes = span->reserved;
                span->own_mapping = 0;
                if (span->bytes > committed && spare) {
                        struct stook_span *rest = stook_pages_split(span, committed, &spare);

                        rest->own_mapping = 0;
                        rest->state = STOOK_SPAN_RESERVED;
                        stook_pages_insert_or_pend(node, rest);
                } else {
                        span->bytes = committed;        /* the address space behind it is lost */
                }
                span->state = STOOK_SPAN_PURGED;
                if (!stook_os_purge((void *)span->start, committed)) {
                        if (wiped)
                                memset((void *)span->start, 0, committed);
                        span->state = STOOK_SPAN_DIRTY;
                }
        } else {
                __atomic_fetch_sub(&node->ledger.committed, span->committed, __ATOMIC_RELAXED);
                span->bytes = span->reserved;
                span->state = STOOK_SPAN_RESERVED;
                span->own_mapping = 0;
        }
        span->committed = span->reserved = 0;
        span->list.next = NULL;
        stook_pages_insert_or_pend(node, span);
}

static void hand_out(struct stook_pages_node *node, struct stook_span *span)
{
        span->state = STOOK_SPAN_ZERO;
        stook_span_clear(&span->use, sizeof(span->use));
        stook_pagemap_set(span->start, (uint64_t)(uintptr_t)span);
        /* Its neighbours look at the last page of the reserved space. */
        stook_pagemap_set(span->start + span->reserved - STOOK_MAP_PAGE, (uint64_t)(uintptr_t)span);
        __atomic_store_n(&span->kind, STOOK_SPAN_TAKEN, __ATOMIC_RELEASE);
        stook_ledger_take(&node->ledger, span->bytes);
        stook_pages_owe(node, 0, false);
}

struct stook_span *stook_span_take_own(unsigned node_index, size_t bytes, size_t align,
                                       size_t headroom)
{
        struct stook_pages_node *node = &stook_pages_nodes[node_index];
        struct stook_span *span;

        stook_lock_forbid_waits();
        span = make(node, bytes, align, headroom);
        if (span && commit_to(node, span, bytes)) {
                hand_out(node, span);
        } else if (span) {
                unmake(node, span);
                span = NULL;
        }
        stook_lock_allow_waits();
        return span;
}

void stook_own_give(struct stook_pages_node *node, struct stook_span *span)
{
        stook_lock_forbid_waits();
        __atomic_store_n(&span->kind, STOOK_SPAN_MOVING, __ATOMIC_RELAXED);
        if (!stook_ranges_limited())
                stook_density_look_at(&node->ledger.density[STOOK_DENSITY_LARGE], span->start,
                                      span->bytes);
        unmake(node, span);
        stook_lock_allow_waits();
}

bool stook_own_resize(struct stook_pages_node *node, struct stook_span *span, size_t bytes)
{
        size_t was = span->bytes;

        if (bytes > span->reserved)
                return false;
        if (bytes > span->committed) {
                size_t ahead = bytes;

                if (!stook_ranges_limited())
                        ahead = stook_os_whole_pages(bytes + bytes / AHEAD_SHARE);
                if (ahead > span->reserved)
                        ahead = span->reserved;
                if (!commit_to(node, span, ahead) && !commit_to(node, span, bytes))
                        return false;
        } else if (bytes < was) {
                /*
                 * What is cut off gives its memory back; its address space stays for growing again.
                 */
                if (stook_range_decommit(span->start + bytes, span->committed - bytes,
                                         span->node)) {
                        __atomic_fetch_sub(&node->ledger.committed, span->committed - bytes,
                                           __ATOMIC_RELAXED);
                        span->committed = bytes;
                }
        }
        span->bytes = bytes;
        if (bytes < was) {
                stook_ledger_give(&node->ledger, was - bytes);
                return true;
        }
        stook_ledger_take(&node->ledger, bytes - was);
        stook_pages_owe(node, 0, false);
        return true;
}

/*
 * True: what grows to @bytes gets a mapping of its own. In small steps it does: it then has room
 * for further steps. A size that doubles goes to ordinary pages if free ones have content, or if
 * memory that was given back refaulted lately. Otherwise that is noted as a refault, so that a
 * program that grows things again and again takes the faults once.
 */
static bool is_to_own(struct stook_pages_node *node, const struct stook_span *span, size_t bytes)
{
        if (bytes <= span->bytes || bytes < OWN_LEAST)
                return false;
        if (bytes > STOOK_SPAN_OWN_MAPPING || bytes - span->bytes < span->bytes / 2)
                return true;
        if (stook_pages_dirty(node) >= bytes ||
            stook_ledger_refaults(&node->ledger) >= bytes)
                return false;
        __atomic_fetch_add(&node->ledger.refault, bytes, __ATOMIC_RELAXED);
        return true;
}

/* All pages of @span, an ordinary one, were moved away. */
static void give_emptied(struct stook_pages_node *node, struct stook_span *span)
{
        span->state = STOOK_SPAN_ZERO;
        if (!stook_range_renew(span->start, span->bytes, span->node)) {
                __atomic_fetch_sub(&node->ledger.committed, span->bytes, __ATOMIC_RELAXED);
                span->state = STOOK_SPAN_RESERVED;
        }
        stook_ledger_give(&node->ledger, span->bytes);
        span->list.next = NULL;
        stook_pages_insert_or_pend(node, span);
}

/* I3. */
static void lose(struct stook_pages_node *node, struct stook_span *span)
{
        __atomic_fetch_sub(&node->ledger.committed, span->committed, __ATOMIC_RELAXED);
        stook_ledger_give(&node->ledger, span->bytes);
}

/* A span of @bytes, for what is in @span now. */
static struct stook_span *take_to(struct stook_pages_node *node, const struct stook_span *span,
                                  size_t bytes)
{
        size_t page = stook_os_page_bytes();

        if (is_to_own(node, span, bytes))
                /* What grows gets room to grow again, as much as it has, so that moves are few. */
                return stook_span_take_own(span->node, bytes, page,
                                           stook_ranges_limited() ? bytes / AHEAD_SHARE : bytes);
        return stook_span_take(span->node, bytes, page);
}

struct stook_span *stook_span_move(struct stook_span *span, size_t bytes)
{
        struct stook_pages_node *node = &stook_pages_nodes[span->node];
        enum stook_os_move move;
        struct stook_span *to;
        size_t keep;

        if (!bytes || bytes > PTRDIFF_MAX)
                return NULL;
        bytes = stook_os_whole_pages(bytes);
        keep = bytes < span->bytes ? bytes : span->bytes;
        do {
                to = take_to(node, span, bytes);
                if (!to)
                        return NULL;
                move = to->own_mapping && keep >= MOVE_LEAST
                               ? stook_os_move((void *)span->start, (void *)to->start, keep)
                               : STOOK_OS_STAYED;
                if (move == STOOK_OS_LOST)
                        lose(node, to);
        } while (move == STOOK_OS_LOST);
        if (move == STOOK_OS_STAYED)
                memcpy((void *)to->start, (void *)span->start, keep);
        __atomic_store_n(&to->kind, span->kind, __ATOMIC_RELEASE);
        if (move == STOOK_OS_MOVED && !span->own_mapping)
                give_emptied(node, span);
        else
                stook_span_give(span);
        return to;
}
