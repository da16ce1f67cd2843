/*
 * Purpose: the command's side of the figures file (inspect/stats_page.h). It makes the file,
 * watches the processes that take records in it, and reads what they left, one entry for each
 * process. The file is read by pread, never mapped here. So its holes cost nothing, and a full file
 * system is harmless.
 *
 * Watching adds what the file cannot tell, every WATCH_MS: when a process ended (by a pidfd,
 * because process numbers are used twice), and its peak resident size (VmHWM).
 */
#ifndef STOOK_CLI_FIGURES_H
#define STOOK_CLI_FIGURES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cli/files/shared_file.h"
#include "cli/program/run_program.h"
#include "inspect/stats_page.h"

enum process_end {
        PROCESS_ENDED,
        PROCESS_REPLACED,               /* it executed another program, which has an entry */
        PROCESS_RUNNING,                /* still there when the program that was run had ended */
};

struct process {
        uint32_t pid, parent;
        enum stook_stats_birth birth;
        char     program[48], backend[16];
        enum process_end end;
        bool     published;             /* the figures below are there */
        bool     exact;                 /* by its destructor */
        uint64_t begun_ms, at_ms;       /* CLOCK_MONOTONIC_COARSE: its start, its figures, */
        uint64_t ended_ms;              /* ... its end; 0: not seen */
        uint64_t peak_bytes;            /* resident; 0: not seen */
        uint64_t taken_bytes, free_dirty_bytes, free_clean_bytes, metadata_bytes, reserved_bytes;
        struct stook_group_stats group; /* the process's own; stats_size 0: it has none */
        uint32_t caches_more;           /* in use, but without a place in the record */
        size_t   count;
        struct stook_cache_stats *caches;
        size_t   gone_count;            /* caches that were destroyed, by name and size */
        struct gone_caches {
                struct stook_cache_stats stats; /* sums; peaks of the highest */
                uint64_t caches;
        } *gone;
        size_t   group_count;
        struct stook_group_stats groups[STOOK_STATS_PAGE_GROUPS];
        uint32_t groups_more;           /* without a place */
        /* Lines: NAME=VALUE of variables that the library reads, NAME of other STOOK_ ones. */
        char     variables[STOOK_STATS_PAGE_VARIABLES];
};

struct figures {
        struct process *processes;      /* in the order in which they began */
        size_t          count;
        uint64_t        no_room;        /* processes that found no record */
        bool            no_file;        /* none could be made: nothing is known of processes */
};

struct figures_watch;                   /* one process being watched */

struct figures_file {
        struct shared_file shared;
        struct figures_watch *watches;
        size_t   watch_count;           /* records seen so far */
};

/*
 * Makes the file. Call it with SIGXFSZ ignored.
 * Return: 0; -EFBIG: by a limit on the size of files, which memfds have, too; -errno.
 */
int  figures_file_make(struct figures_file *file);
/* run_request.watch; @file: struct figures_file */
void figures_file_watch(void *file);
/* What all processes left. @root: the run. Return: 0; -errno. */
int  figures_file_read(struct figures_file *file, const struct run_result *root,
                       struct figures *figures);
void figures_file_remove(struct figures_file *file);
void figures_release(struct figures *figures);

/* Where a cache's allocated objects came from, as shares of 1. */
struct shares {
        double slot, barn, slabs;
};
/*
 * An estimate from counters that cost nothing. Of all objects handed out, those that came into
 * sheaves from slabs (sheaf_refill), or straight from a slab (alloc_slowpath), count as the slabs'.
 * Those that came in full sheaves from the barn (barn_get times the sheaf's capacity) count as the
 * barn's. The rest were freed into the slot's own sheaves and handed out from there. The estimate
 * is off by what sheaves hold at the end.
 */
void stats_shares(const struct stook_cache_stats *stats, struct shares *shares);

/*
 * For figures that are not exact: how long before the process's end (or its next program) they were
 * taken. False: not known.
 */
bool process_age_ms(const struct process *process, uint64_t *age_ms);

void process_shares(const struct process *process, struct shares *shares);

uint64_t stats_live_bytes(const struct stook_cache_stats *stats);
uint64_t stats_cached_bytes(const struct stook_cache_stats *stats);
/* Of its slabs, at most at once. */
uint64_t stats_peak_bytes(const struct stook_cache_stats *stats);

struct process_totals {
        struct stook_cache_stats counters;      /* sums; sizes are 0 */
        uint64_t live_bytes, cached_bytes;
        uint64_t space_bytes;
        uint64_t large_bytes;                   /* objects too large for a cache */
};
void process_totals(const struct process *process, struct process_totals *totals);

#endif
