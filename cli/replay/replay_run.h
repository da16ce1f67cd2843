/*
 * Purpose: one replay: a list of events, settings, and what the helper saw.
 * The first run is watched: counts and memory are its own. The runs after it are timed alone. All
 * runs make the same calls, so all have the same counts. The timed runs of several replays are made
 * in turn, so that what changes with time meets all of them alike.
 */
#ifndef STOOK_CLI_REPLAY_RUN_H
#define STOOK_CLI_REPLAY_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stook/stats.h>
#include "cli/replay/replay_list.h"
#include "cli/run/compare.h"
#include "replay/replay_file.h"

struct replay_settings {
        int      capacity, barn_full, barn_empty;       /* -1: as the library chooses */
        unsigned slots;                 /* 0: one for each CPU of the trace */
        unsigned nodes;
        unsigned timed;                 /* runs */
        const int32_t *capacities;      /* of each cache, -1: the one above; NULL: of all */
};

/* As the library chooses all of it, and not timed. */
extern const struct replay_settings replay_settings_usual;

/* By what answered them. Of objects of caches; large ones have no such layers. */
struct replay_layers {
        uint64_t slot, barn, slabs;
};

struct replay_result {
        struct replay_settings settings;        /* slots: how many there were */
        struct replay_mapped *mapped;           /* the file, until replay_result_release */
        struct stook_cache_stats *stats;        /* one for each cache of the list */
        struct replay_sample *samples;
        size_t   sample_count;
        struct replay_sample peak;              /* the most of each, of the samples */
        struct spread ns_per_call;      /* zeros without timed runs */
        uint64_t calls, failed, live_objects;
        struct replay_layers allocs, frees;
        char     backend[16];
};

/*
 * Which layer answered the allocations, and the frees. From counters: a call that found the slot's
 * sheaves empty (or full) either got (put) a whole sheaf of the barn's, or went on to the slabs.
 */
void replay_layers(const struct stook_cache_stats *stats, struct replay_layers *allocs,
                   struct replay_layers *frees);

/* False: @message, of @bytes, has one line that says why; the helper may have printed another. */
bool replay_watch(const struct replay_list *list, const struct replay_settings *settings,
                  struct replay_result *result, char *message, size_t bytes);
/* settings.timed runs of each, as many as of the first. False: as above. */
bool replay_time(struct replay_result *results, size_t count, char *message, size_t bytes);
void replay_result_release(struct replay_result *result);

#endif
