/*
 * Purpose: what a trace asks of an allocator, as a list in memory: the one form that `stook replay`
 * works on, whichever input it came from.
 * Readers (replay_kmem.c, replay_trace.c) add caches and events in the order of time. Numbers of
 * objects are the readers': the lowest that no living object has.
 */
#ifndef STOOK_CLI_REPLAY_LIST_H
#define STOOK_CLI_REPLAY_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cli/trace/trace_read.h"
#include "replay/replay_file.h"

struct replay_list {
        struct replay_event *events;
        size_t   count, room;
        struct replay_cache *caches;
        size_t   cache_count, cache_room;
        uint64_t objects;               /* the most that lived at once */
        uint32_t *cpus;                 /* the trace's numbers, in the order they appeared in */
        uint32_t cpu_count, cpu_room;

        /* What was in the trace, and is not in the list. */
        uint64_t frees_before;          /* of objects that are older than the trace */
        uint64_t frees_of_null;
        uint64_t failed;                /* allocations that got nothing */
        uint64_t other_events;
        uint64_t lost;                  /* by the recorder, which says so */
        uint64_t filtered;              /* by replay_list_keep */
        /* Frees that the trace lacks: the address was handed out again. They are in the list. */
        uint64_t frees_implied;
        uint64_t frees_by_rcu;          /* replayed as plain ones */
        uint64_t cut_bytes;             /* at the end of an unfinished trace */
        struct trace_damage damage;
};

/* The number of such a cache. REPLAY_LARGE: no memory, or too many. */
uint32_t replay_list_cache(struct replay_list *list, const char *name, uint64_t object_bytes);
/* @cpu: the trace's number. False: no memory, or more CPUs than can be made up. */
bool replay_list_add(struct replay_list *list, struct replay_event event, uint32_t cpu);
/* Keeps what is of caches whose names match a pattern of @names, with commas between. */
void replay_list_keep(struct replay_list *list, const char *names);
void replay_list_release(struct replay_list *list);

/*
 * Reads a file: what `stook record` wrote, or the kernel's slab events as text (replay_kmem.c),
 * plain or packed by xz, gzip or zstd. "-": such text from standard input.
 * False: @message, of @bytes, has one line that says why.
 */
bool replay_list_read(struct replay_list *list, const char *path, char *message, size_t bytes);

#endif
