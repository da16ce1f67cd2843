/*
 * Purpose: a source in the child of a fork.
 * State words are sound there whatever other threads were doing: each change of one is a single store. What is
 * not: locks whose holders are gone, lists that were being changed under them.
 *  - After a prepare that had every lock the lists are sound, and the locks ours to drop.
 *  - Otherwise locks are reset and the lists made anew from the words.
 * Either way slabs that vanished threads had detached are listed again: `owner` tells them from those of this
 * thread, which the handler that forked interrupted. Their claims are settled and what they were about to release is
 * released: such work of this thread there is none (slab_partial.c P4). What a vanished thread costs is the objects it
 * had in its hands, or the one slab it was making or releasing.
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

void stook_slabs_fork_child(struct stook_slabs *slabs, bool whole)
{
        for (unsigned i = 0; slabs->node && i < stook_os_node_count(); i++) {
                stook_pending_stack_take_all(&slabs->node[i].pending);  /* each slab's word says that it is there */
                if (whole)
                        continue;
                stook_lock_reset(&slabs->node[i].lock);
                stook_list_init(&slabs->node[i].list);
                slabs->node[i].partial = 0;
        }
}

static void mend(struct stook_span *span, void *data)
{
        const bool *whole = data;
        struct stook_slab *slab = stook_slab_of(span);
        struct stook_slab_hold hold;
        uint64_t word;

        if (span->kind != STOOK_SPAN_SLAB)
                return;
        word = stook_slab_word(slab);
        if (word & STOOK_SLAB_RELEASING) {      /* nothing else was done to it yet */
                stook_slab_release(slab);
                return;
        }
        hold = (struct stook_slab_hold){ .slabs = slab->slabs, .node = &slab->slabs->node[span->node] };
        if ((word & STOOK_SLAB_DETACHED) && slab->owner != stook_self) {
                stook_slab_list(slab, false);
                stook_slab_add(&hold, slab, false);
        } else if ((word & STOOK_SLAB_LISTED) && !*whole) {
                stook_slab_add(&hold, slab, false);
        }
        if (word & STOOK_SLAB_CLAIM)
                stook_slab_settle_one(&hold, slab);
        if (hold.dead)
                stook_slab_release(slab);
}

void stook_slabs_fork_mend(bool whole)
{
        stook_meta_span_for_each(mend, &whole);
}
