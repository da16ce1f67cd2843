/*
 * Purpose: sheaves of other nodes' objects (slot/slot_remote.c), taken off all slots.
 * Place: called by evacuate_pairs.c, and by evacuate_idle.c within a visit of the barns; calls
 * slot, and barn to flush.
 *
 * No barrier is needed, and no mutex. A thread takes such a sheaf out of its word by an exchange,
 * and owns it until it puts it back. So what is taken out here is this thread's alone.
 * Concurrency: slot_remote.c M1, M2.
 * Failure: none.
 */
#include "barn/barn.h"
#include "evacuate/evacuate.h"
#include "slot/slot_node.h"
#include "slot/slot_regions.h"
#include "slot/slot_remote.h"

void stook_evacuate_remote(struct stook_front *front)
{
        if (!front->below->remote)
                return;
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                for (unsigned node = 0; node < stook_regions.nodes; node++) {
                        uintptr_t *word = stook_remote_word(front->below->remote, slot, node);
                        struct stook_sheaf *sheaf;

                        if (!__atomic_load_n(word, __ATOMIC_SEQ_CST))           /* M2 */
                                continue;
                        sheaf = stook_remote_take(word);
                        if (!sheaf)
                                continue;
                        stook_barn_discard(front->below, sheaf);
                }
}

bool stook_evacuate_idle_remote(struct stook_barns *barns, const struct stook_idle_look *look)
{
        struct stook_remote *remote = barns->remote;
        uint32_t looked_ms;
        bool due, any = false;

        if (!remote)
                return false;
        looked_ms = __atomic_load_n(&remote->looked_ms, __ATOMIC_RELAXED);
        due = look->now_ms - looked_ms >= look->after_ms;
        if (due)
                __atomic_store_n(&remote->looked_ms, look->now_ms, __ATOMIC_RELAXED);
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                bool gone = stook_evacuate_is_gone(slot, look);

                if ((!due && !gone) || !stook_slots_head(slot))
                        continue;
                for (unsigned node = 0; node < stook_regions.nodes; node++)
                        any |= stook_remote_reap(barns, stook_remote_word(remote, slot, node), node,
                                                 gone, STOOK_REMOTE_SEEN_BY_ROUND);
        }
        return any;
}
