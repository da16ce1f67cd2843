/*
 * Purpose: a cache's slabs in the child of a fork.
 * The states of parts are sound there, because each change is one compare-and-swap. Not sound are
 * locks whose holders are gone, and lists that were being changed under them.
 *  - After a prepare that had every lock the lists are sound, and the locks are the child's to
 *    drop.
 *  - Otherwise the locks are reset and the lists made anew from the parts' flags.
 * Either way the claims of vanished threads are settled, and the slabs that they were giving back
 * are released. The forking thread has no such work under way (slab_partial.c P4). A vanished
 * thread costs the objects that it had in its hands, and the one slab that it was making or giving
 * back to the pages.
 * Concurrency: M1: the release of a slab's cache and of its node, when a descriptor becomes a slab
 *  (slab_birth.c), pairs with the acquires of stook_slab_relist: what sees them sees that the
 *  descriptor's last life as a slab is over.
 * Place: called by life in the child, which has one thread. stook_slab_relist, at the end, makes
 * one list anew after a jump out of a call that held its lock (stook_lock_inherit). It is called by
 * slab_partial.c, while other threads go on.
 */
#include "base/inject.h"
#include "os/os.h"
#include "pages/meta.h"
#include "slab/slab_inside.h"

/* Drops the locks of the first @n nodes, and looks at what is pending there (slab_partial.c P2). */
static void unhold_before(struct stook_slabs *slabs, unsigned n)
{
        while (n--)
                stook_slab_unhold(&(struct stook_slab_hold){
                        .slabs = slabs, .node = &slabs->node[n] });
}

bool stook_slabs_fork_prepare(struct stook_slabs *slabs)
{
        for (unsigned n = 0; n < stook_os_node_count(); n++)
                if (!stook_lock_try(&slabs->node[n].lock)) {
                        unhold_before(slabs, n);
                        return false;
                }
        return true;
}

void stook_slabs_fork_parent(struct stook_slabs *slabs)
{
        unhold_before(slabs, stook_os_node_count());
}

void stook_slabs_fork_child(struct stook_slabs *slabs, bool whole)
{
        for (unsigned n = 0; slabs->node && n < stook_os_node_count(); n++) {
                struct stook_slabs_node *node = &slabs->node[n];

                /* Nothing is lost: each claim is a flag of its part. */
                stook_pending_stack_take_all(&node->pending);
                if (node->going)
                        node->going = 0;        /* what goes is released anew: mend() */
                if (whole)
                        continue;
                stook_lock_reset(&node->lock);
                stook_list_init(&node->list);
                node->partial = 0;
        }
}

static void mend(struct stook_span *span, void *data)
{
        const bool *whole = data;
        struct stook_slab *slab = stook_slab_of(span);
        struct stook_slab_hold hold;
        uint64_t listed, claims;

        if (span->kind != STOOK_SPAN_SLAB)
                return;
        hold = (struct stook_slab_hold){ .slabs = slab->slabs, .node = stook_slab_node(slab) };
        if (slab->pending)
                slab->pending = 0;
        if (!*whole) {
                /*
                 * The lists were made empty. A holder may have taken a slab's last object, and may
                 * not have taken the slab off the list yet.
                 */
                slab->listed = 0;
                span->list.next = span->list.prev = NULL;
        }
        /* Then all parts of the slab were found empty. */
        if (stook_slab_parts_with(slab, STOOK_PART_RELEASED)) {
                if (slab->listed)
                        stook_slab_remove(&hold, slab, ~UINT64_C(0));
                stook_link_set_next(&span->link, NULL);
                slab->slabs->node[slab->node].going++;
                stook_slab_release(&span->link);
                return;
        }
        if (!*whole) {
                listed = stook_slab_parts_with(slab, STOOK_PART_LISTED);
                if (listed)
                        stook_slab_add(&hold, slab, listed, false);
        }
        claims = stook_slab_parts_with(slab, STOOK_PART_CLAIM);
        for (; claims && !hold.dead; claims &= claims - 1)
                stook_slab_settle_one(&hold, slab, (unsigned)__builtin_ctzll(claims));
        stook_slab_release(hold.dead);
}

void stook_slabs_fork_mend(bool whole)
{
        stook_meta_span_for_each(mend, &whole);
}

/* ---- after a jump ---- */

/* The descriptor may serve another span by now, so none of its pointers is followed. */
static bool is_slab_of(struct stook_span *span, const struct stook_slab_hold *hold)
{
        struct stook_slab *slab = stook_slab_of(span);
        size_t node = (size_t)(hold->node - hold->slabs->node);

        return __atomic_load_n(&span->kind, __ATOMIC_ACQUIRE) == STOOK_SPAN_SLAB &&
               __atomic_load_n(&slab->slabs, __ATOMIC_ACQUIRE) == hold->slabs &&        /* M1 */
               __atomic_load_n(&slab->node, __ATOMIC_ACQUIRE) == node &&                /* M1 */
               __atomic_load_n(&span->node, __ATOMIC_RELAXED) == node;
}

/*
 * Which life the parts at a place are in. The generation of the first part changes when a slab
 * comes to be there, that of the second one at the latest when it is gone: a free block has a link
 * in the first part's place (slab_birth.c A1). So what is the same twice was one slab's in between,
 * or none's.
 */
struct life {
        uint64_t first, second;
};

static uint64_t generation_of(const struct stook_pair *part)
{
        return __atomic_load_n(&part->lo, __ATOMIC_ACQUIRE) & ~STOOK_PART_FLAGS;
}

static struct life life_at(uintptr_t parts)
{
        const struct stook_pair *part = stook_parts_at(parts);

        return (struct life){ generation_of(&part[0]), generation_of(&part[1]) };
}

static bool is_life_at(uintptr_t parts, struct life life)
{
        struct life now = life_at(parts);

        return now.first == life.first && now.second == life.second;
}

/*
 * Descriptors of others change meanwhile: one may come to be a slab of another node, then of
 * another cache, and its parts may be at the same place again. So all looks count only if they were
 * at one life: the life at that place was the same before them and after them, and in between,
 * after the others, the descriptor had its parts there. A slab with a listed part, or with a bit in
 * `listed`, is released only under the lock, which is held: from there on it stays.
 */
static void list_again(struct stook_span *span, void *data)
{
        struct stook_slab_hold *hold = data;
        struct stook_slab *slab = stook_slab_of(span);
        uint64_t listed = 0;
        struct life life;
        uintptr_t parts;
        unsigned count;

        if (!is_slab_of(span, hold))
                return;
        parts = __atomic_load_n(&slab->parts, __ATOMIC_ACQUIRE);
        if (!stook_parts_have_room(parts, 1))
                return;
        life = life_at(parts);
        STOOK_INJECT_CALL(relisting, span);
        count = __atomic_load_n(&slab->part_count, __ATOMIC_ACQUIRE);
        for (unsigned p = 0; p < count && stook_parts_have_room(parts, p); p++)
                if (__atomic_load_n(&stook_parts_at(parts)[p].lo, __ATOMIC_ACQUIRE) &
                    STOOK_PART_LISTED)
                        listed |= UINT64_C(1) << p;
        if (!listed && !__atomic_load_n(&slab->listed, __ATOMIC_ACQUIRE))
                return;
        if (!is_slab_of(span, hold) || __atomic_load_n(&slab->parts, __ATOMIC_ACQUIRE) != parts ||
            !is_life_at(parts, life))
                return;
        __atomic_store_n(&slab->listed, 0, __ATOMIC_RELAXED);
        span->list.next = span->list.prev = NULL;
        if (listed)
                stook_slab_add(hold, slab, listed, false);
}

/*
 * What the call that was jumped out of had taken or claimed is lost. It is not taken back, because
 * a claim that is found may belong to another call, further up the stack.
 */
void stook_slab_relist(struct stook_slab_hold *hold)
{
        stook_list_init(&hold->node->list);
        __atomic_store_n(&hold->node->partial, 0, __ATOMIC_RELAXED);
        stook_meta_span_for_each(list_again, hold);
}
