/*
 * Purpose: a source in the child of a fork.
 * State words are sound there whatever other threads were doing: each change of one is a single store. What is
 * not: locks whose holders are gone, lists that were being changed under them.
 *  - After a prepare that had every lock the lists are sound, and the locks ours to drop. Slabs that other threads
 *    had detached, or claimed but not yet settled, are lost to new allocations; what is freed to them is kept.
 *  - Otherwise locks are reset and the lists made anew from the words. `owner` tells slabs that vanished threads
 *    had detached (they are listed again) from those of this thread, interrupted by the handler that forked.
 * Place: called by life; the only thread there is.
 */
#include "base/thread.h"
#include "os/os.h"
#include "pages/meta.h"
#include "slab/slab_partial.h"

bool stook_slabs_fork_prepare(struct stook_slabs *slabs)
{
        for (unsigned i = 0; i < stook_os_node_count(); i++)
                if (!stook_lock_try(&slabs->node[i].lock)) {
                        while (i--)
                                stook_lock_drop(&slabs->node[i].lock);
                        return false;
                }
        return true;
}

void stook_slabs_fork_parent(struct stook_slabs *slabs)
{
        for (unsigned i = 0; i < stook_os_node_count(); i++)
                stook_slab_unhold(&(struct stook_slab_hold){ .slabs = slabs, .node = &slabs->node[i] });
}

static void list_again(struct stook_span *span, void *data)
{
        struct stook_slabs *slabs = data;
        struct stook_slab *slab = stook_slab_of(span);
        uint64_t word;

        if (span->kind != STOOK_SPAN_SLAB || slab->slabs != slabs)
                return;
        word = stook_slab_word(slab);
        if ((word & STOOK_SLAB_DETACHED) && slab->owner != stook_self)
                stook_slab_list(slab, false);
        else if (!(word & STOOK_SLAB_LISTED))
                return;
        stook_slab_add(&(struct stook_slab_hold){ .slabs = slabs, .node = &slabs->node[span->node] }, slab, false);
}

void stook_slabs_fork_child(struct stook_slabs *slabs, bool whole)
{
        if (!slabs->node)
                return;
        if (whole) {
                stook_slabs_fork_parent(slabs);
                return;
        }
        for (unsigned i = 0; i < stook_os_node_count(); i++) {
                stook_lock_reset(&slabs->node[i].lock);
                stook_list_init(&slabs->node[i].list);
                slabs->node[i].partial = 0;
        }
        if (stook_slabs_count(slabs))
                stook_meta_span_for_each(list_again, slabs);
}
