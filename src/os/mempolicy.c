/*
 * Purpose: memory policies, by system calls: libnuma is not asked.
 * Place: called by pages (where the pages of a node's address space come from) and, for
 * STOOK_STRICT_NUMA, by slot.
 */
#include "base/inject.h"
#include "os/os.h"
#include "os/system_call.h"

/* <linux/mempolicy.h>, which not every libc comes with. */
enum {
        MPOL_DEFAULT,
        MPOL_PREFERRED,
        MPOL_BIND,
        MPOL_INTERLEAVE,
        MPOL_LOCAL,
        MPOL_PREFERRED_MANY,
        MPOL_WEIGHTED_INTERLEAVE
};

#define MASK_BITS (STOOK_NODES_MAX + 1) /* the kernel takes one less */
#define NODES_OF_KERNELS 1024           /* as many as there may be */
#define MPOL_F_MEMS_ALLOWED (1 << 2)

bool stook_os_prefer_node(void *addr, size_t bytes, unsigned node)
{
        unsigned long mask[2] = { 1ul << node };

        return !stook_call(SYS_mbind, addr, bytes, MPOL_PREFERRED, mask, MASK_BITS, 0);
}

bool stook_os_has_one_memory(void)
{
        unsigned long mask[NODES_OF_KERNELS / (8 * sizeof(unsigned long))] = { 0 };
        unsigned nodes = 0;

        if (stook_call(SYS_get_mempolicy, NULL, mask, NODES_OF_KERNELS, NULL, MPOL_F_MEMS_ALLOWED))
                return false;
        for (unsigned i = 0; i < sizeof(mask) / sizeof(mask[0]); i++)
                nodes += (unsigned)__builtin_popcountl(mask[i]);
        return nodes == 1;
}

bool stook_os_has_policy(void)
{
        int mode = MPOL_DEFAULT;

        return !stook_call(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) && mode != MPOL_DEFAULT;
}

/* ---- STOOK_STRICT_NUMA ---- */

static bool ask_system(int *mode, uint64_t *nodes)
{
        unsigned long mask[NODES_OF_KERNELS / (8 * sizeof(unsigned long))] = { 0 };
        bool done = !stook_call(SYS_get_mempolicy, mode, mask, NODES_OF_KERNELS, NULL, 0);

        *nodes = mask[0];
        return done;
}

/* One of the set after the other, all threads together. */
static unsigned next_of(uint64_t nodes)
{
        static uint32_t turn;
        unsigned n = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) %
                     (unsigned)__builtin_popcountll(nodes);

        while (n--)
                nodes &= nodes - 1;
        return (unsigned)__builtin_ctzll(nodes);
}

unsigned stook_os_task_node(unsigned here)
{
        uint64_t nodes = 0, existing = 0;
        int mode = MPOL_DEFAULT;
        bool (*ask)(int *, uint64_t *) = STOOK_INJECT_GET(ask_policy) ?: ask_system;

        if (!ask(&mode, &nodes))
                return here;
        for (unsigned i = 0; i < stook_os_node_count(); i++)
                existing |= (uint64_t)stook_os_node_exists(i) << i;
        nodes &= existing;
        if (!nodes)
                return here;
        switch (mode & 0xff) {                  /* flags lie above */
        case MPOL_INTERLEAVE:
        case MPOL_WEIGHTED_INTERLEAVE:
                return next_of(nodes);
        case MPOL_PREFERRED:
        case MPOL_PREFERRED_MANY:
        case MPOL_BIND:
                return nodes >> here & 1 ? here : (unsigned)__builtin_ctzll(nodes);
        default:
                return here;
        }
}
