/*
 * Purpose: which of the replays of a grid has the setting for a cache.
 * The rule: the setting that can keep least memory, among those whose calls cost at most one trip
 * to the barn in ADVICE_CALLS calls more than the best setting's. A call that reaches the slabs
 * counts as ADVICE_SLABS trips to the barn, as where the library itself decides whether a cache
 * grows (STOOK_GROW_SWING of src/policy/constants.h). Slots and nodes are the machine's, and no
 * settings: each of their values has an advice of its own.
 */
#ifndef STOOK_CLI_REPLAY_ADVICE_H
#define STOOK_CLI_REPLAY_ADVICE_H

#include "cli/replay/replay_run.h"

#define ADVICE_CALLS 100                /* arbitrary: 1 % */
#define ADVICE_SLABS 8
/* Calls: of fewer, a single one that reaches the slabs would decide. */
#define ADVICE_LEAST (ADVICE_CALLS * ADVICE_SLABS)

struct replay_advice {
        uint32_t cache;                 /* of the list */
        size_t   result;                /* the one advised */
        uint64_t calls;
};

/* Of one cache: its allocations and frees together, by what answered them. */
struct replay_layers replay_cache_layers(const struct replay_result *result, uint32_t cache);
/*
 * What sheaves may keep at most, in bytes: the objects of two full sheaves for each slot and of the
 * barns' full sheaves, and the arrays of all sheaves. Where the library chooses a barn's limits
 * they are those it begins with.
 */
uint64_t replay_kept_bytes(const struct replay_result *result, uint32_t cache);

/*
 * One for each cache with enough calls, and number of slots and nodes: caches with most calls
 * first. NULL: no memory. *@few: caches without enough calls.
 */
struct replay_advice *replay_advise(const struct replay_list *list,
                                    const struct replay_result *results, size_t count,
                                    size_t *advices, size_t *few);

#endif
