/*
 * Purpose: see place.h.
 * A policy is set on unused address space, in steps of 1 GiB (range.c). With one call for every
 * 2 MiB a process ends at 127 GiB, out of mappings. The policy is a preference: a node that is full
 * is no failure. Where the task has a policy of its own (numactl), that is what its user wants, and
 * no other is set. With STOOK_STRICT_NUMA the layers above follow that policy: each call names the
 * node that it found there. So pages are placed then, too, or they would come from another one.
 * Where the system refuses (a sandbox), pages come from where they are touched first. That is right
 * except for requests for another node.
 * Invariants:
 *  I1 each step that replaces a mapping inside a range sets its policy again.
 * Concurrency: any thread, on parts it owns.
 */
#include "base/probe.h"
#include "os/os.h"
#include "pages/place.h"
#include "pages/purge.h"

static bool several, over_policy;       /* const after start */
static uint32_t places;                 /* atomic, relaxed: 1 until the system refuses */

void stook_place_start(void)
{
        several = stook_os_node_count() > 1;
        places = several && !stook_os_topology_is_fake() &&
                 (over_policy || !stook_os_has_policy());
}

void stook_pages_place_over_policy(bool over)
{
        over_policy = over;
}

void stook_place(uintptr_t start, size_t bytes, unsigned node)
{
        if (__atomic_load_n(&places, __ATOMIC_RELAXED) &&
            !stook_os_prefer_node((void *)start, bytes, node))
                __atomic_store_n(&places, 0, __ATOMIC_RELAXED);
}

bool stook_place_commit(uintptr_t start, size_t bytes)
{
        STOOK_PROBE2(pages_commit, start, bytes);
        return several ? stook_os_enable((void *)start, bytes)
                       : stook_os_commit((void *)start, bytes);
}

/* A fresh mapping: one that had pages never merges with its neighbours. */
bool stook_place_decommit(uintptr_t start, size_t bytes, unsigned node)
{
        if (!stook_os_decommit((void *)start, bytes))
                return false;
        stook_place(start, bytes, node);
        return true;
}

bool stook_place_renew(uintptr_t start, size_t bytes, unsigned node)
{
        bool done = stook_os_commit((void *)start, bytes);

        stook_place(start, bytes, node);
        return done;
}
