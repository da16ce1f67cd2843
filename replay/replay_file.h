/*
 * Purpose: the file through which the command hands a replay to its helper (stook-replay), and the
 * helper hands back what it saw. The command makes it, without a name, and passes its descriptor as
 * standard input. The helper maps it.
 * Place: cli/replay/replay_run.c writes and reads it, replay/main.c replays it.
 * Layout: the header; caches; events; room for the samples and for the caches' results. All offsets
 *  are in the header. Command and helper are of one build: `magic` and `bytes` prove it.
 * Concurrency: none. The command looks again when the helper has ended.
 */
#ifndef STOOK_REPLAY_FILE_H
#define STOOK_REPLAY_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stook/stats.h>

#define REPLAY_MAGIC   UINT64_C(0x31796c7072747473)
#define REPLAY_SAMPLES 256              /* looks at memory during a replay; arbitrary */
#define REPLAY_CPUS    4096             /* as many slots as STOOK_TOPOLOGY may make up */
/* Caches of a trace; the library has its own beside them (STOOK_CACHES_MAX). */
#define REPLAY_CACHES  3000

enum replay_kind { REPLAY_ALLOC, REPLAY_FREE, REPLAY_RESIZE };

/* A cache number that is none: the object is one of malloc. */
#define REPLAY_LARGE UINT32_MAX

struct replay_event {
        uint64_t at_ns;                 /* since the first event */
        uint64_t bytes;                 /* ALLOC, RESIZE: as wanted */
        uint32_t object;                /* below replay_file.objects; no two living ones share it */
        uint32_t cache;                 /* or REPLAY_LARGE */
        uint16_t cpu;                   /* below replay_file.cpus */
        uint16_t kind;                  /* enum replay_kind */
};

struct replay_cache {
        char     name[64];
        uint64_t object_bytes;          /* 1 to STOOK_OBJECT_MAX */
        int64_t  capacity;              /* of its sheaves; -1: as for all caches of the replay */
};

struct replay_sample {
        uint64_t event;                 /* before this one */
        uint64_t at_ns;                 /* by the trace's clock */
        uint64_t live_bytes;            /* of objects, as wanted */
        uint64_t taken_bytes;           /* spans in use: slabs and large objects */
        uint64_t resident_bytes;        /* anonymous, more than before the first event */
};

struct replay_file {
        uint64_t magic, bytes;          /* of the file */
        /* What is replayed, and how. */
        uint64_t caches, events, objects;
        uint64_t at_caches, at_events;  /* bytes from the start of the file */
        uint32_t cpus;
        int32_t  capacity, barn_full, barn_empty;       /* -1: as the library chooses */
        uint32_t watch;                 /* 1: take samples; 0: time alone */
        /* What the helper saw. */
        uint32_t done;                  /* 1: all of it was replayed */
        uint32_t nodes, slots;
        uint64_t failed;                /* allocations that got no memory */
        uint64_t nanoseconds;           /* of processor time, in the calls and between */
        uint64_t calls;                 /* allocations, frees, resizes made */
        uint64_t live_objects;          /* at the end */
        uint64_t samples;
        char     backend[16];
        uint64_t at_samples;            /* struct replay_sample, room for REPLAY_SAMPLES */
        uint64_t at_stats;              /* struct stook_cache_stats, one for each cache */
};

#endif
