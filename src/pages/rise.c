/*
 * Purpose: notice that the process reaches a new height: more bytes of a node than ever before are
 * with users or dirty. Only then does what lies free make its peak larger.
 * Place: span.c, span_resize.c and own_mapping.c tell it that more is with users; purge.c drops.
 * How: as much dirty memory as the process rose by is dropped, whatever its age and although it may
 *  be missed. So what was freed in other sizes than what is asked for next is given back. The peak
 *  is then near the most that was in use at once. A byte of height costs the purge of a byte at
 *  most, once in its life. So a program that works in phases keeps its memory between them.
 * Concurrency: relaxed words. If two threads rise at once, one rise may be lost, or be counted
 *  twice: some bytes more or less are purged.
 */
#include "pages/pages_node.h"

/*
 * Dirty bytes beside which a process may rise: this part of what is in use, or KEPT. Pieces of them
 * fit what comes next. Arbitrary.
 */
#define KEPT_PART 32
#define KEPT      ((size_t)256 << 10)
/*
 * The same where huge pages are asked for: what a large object leaves of its last huge page is
 * dirty, and the next object is to have it. A purge would break the huge page.
 */
#define KEPT_HUGE STOOK_HUGE_PAGE

static size_t share_of(size_t bytes, size_t part, size_t least)
{
        return bytes / part > least ? bytes / part : least;
}

size_t stook_pages_kept_at_rise(const struct stook_pages_node *node)
{
        return share_of(__atomic_load_n(&node->taken_bytes, __ATOMIC_RELAXED), KEPT_PART,
                        stook_huge_any() ? KEPT_HUGE : KEPT);
}

void stook_pages_note_rise(struct stook_pages_node *node)
{
        size_t dirty = stook_pages_dirty(node);
        size_t used = __atomic_load_n(&node->taken_bytes, __ATOMIC_RELAXED);
        size_t most = __atomic_load_n(&node->most_bytes, __ATOMIC_RELAXED), now = used + dirty;

        if (now <= most)
                return;
        __atomic_store_n(&node->most_bytes, now, __ATOMIC_RELAXED);
        if (dirty > stook_pages_kept_at_rise(node))
                __atomic_fetch_add(&node->risen_bytes, now - most, __ATOMIC_RELAXED);
}
