/*
 * Purpose: what a kernel's own counters say of the caches of a trace: a folder of the form of
 * /sys/kernel/slab, this machine's or a copy of another one's.
 */
#ifndef STOOK_CLI_REPLAY_KERNEL_H
#define STOOK_CLI_REPLAY_KERNEL_H

#include "cli/replay/replay_run.h"

struct replay_kernel_cache {
        bool     is_there;
        bool     has_sheaves;           /* it says how many objects a sheaf has */
        bool     is_counted;            /* CONFIG_SLUB_STATS */
        bool     is_shared;             /* it is merged with others: their calls are in it, too */
        uint64_t object_size, sheaf_capacity;
        struct replay_layers allocs, frees;     /* since the kernel's start */
};

/*
 * One for each cache of the list. kmalloc-N stands for all of the kernel's caches of that size: the
 * events do not tell them apart. NULL: @message, of @bytes, has one line that says why.
 */
struct replay_kernel_cache *replay_kernel_read(const struct replay_list *list, const char *folder,
                                               char *message, size_t bytes);

/* For replay_settings.capacities; -1 where the kernel does not say. NULL: no memory. */
int32_t *replay_kernel_capacities(const struct replay_kernel_cache *kernel, size_t caches);

#endif
