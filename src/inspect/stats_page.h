/*
 * Purpose: the file through which a process shows its figures to `stook run`: its layout, and the
 * library's side of it. The command makes the file, names it in STOOK_STATS and reads it at the
 * end; each process of the tree that starts with the library, and each forked child of one, takes a
 * record and publishes snapshots there.
 *
 * Why a file and not process_vm_readv: a process that is gone cannot be read, and _exit, execve and
 * SIGKILL leave no moment at which its parent could still look.
 * `stook info` reads live processes from outside (life/root.h).
 *
 * When it publishes: at exit, by a destructor, exactly; and at slow calls, at most every
 * STOOK_STATS_PAGE_MS or so by the coarse clock, and at the 1st, 2nd, 4th, 8th... of them, so that
 * a process that ends without its destructors is shown as it was a few milliseconds, or half of its
 * events, before.
 *
 * The file has no name where the system can make such a file, so that none stays behind. Its path
 * is /proc/PID/fd/N of the command; a process that may not look there leaves no figures.
 *
 * Layout: the file's header, then records of one size, each a multiple of 64 KiB so that it is
 * whole pages everywhere. The file is sparse. A process maps it once, without access, and opens
 * only the header and its own record; it keeps no descriptor, and needs neither the path nor
 * /dev/shm afterwards (chroot, closed descriptors).
 *
 * Invariants:
 *  I1 a record has one writer process: the index was drawn by an atomic add, and a forked child
 *     draws its own.
 *  I2 snapshot[sequence & 1] is whole; the writer fills the other one, then stores sequence + 1
 *     (M1, release). So a process killed at any instruction leaves a whole snapshot. A reader of a
 *     live process reads sequence (acquire), copies, and reads it again: unchanged means whole.
 *     sequence 0: nothing was published.
 *  I3 pages are made to be there before they are written: a full file system ends the publishing,
 *     it does not end the process (SIGBUS).
 * Concurrency: in the process, one publisher at a time by a word that is only tried. After the
 *  process started, publishing calls nothing but madvise; the first call in a forked child getpid,
 *  getppid and mprotect.
 */
#ifndef STOOK_STATS_PAGE_H
#define STOOK_STATS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stook/group.h>
#include <stook/stats.h>
#include "stat/gone.h"

#define STOOK_STATS_PAGE_MAGIC   UINT64_C(0x3174736b6f6f7473)
#define STOOK_STATS_PAGE_VERSION 3
/* Header and records are multiples of this. */
#define STOOK_STATS_PAGE_UNIT    ((size_t)64 << 10)
/* Caches in a snapshot; further ones are only counted. */
#define STOOK_STATS_PAGE_CACHES  256
/* Groups in a snapshot, the first ones. */
#define STOOK_STATS_PAGE_GROUPS  16
/* Bytes of a record for the process's STOOK_ variables; what does not fit is left out. */
#define STOOK_STATS_PAGE_VARIABLES 1024
/* Shortest time between snapshots, but for the first ones. */
#define STOOK_STATS_PAGE_MS      4

struct stook_stats_file {
        uint64_t magic;
        uint32_t version;
        uint32_t records;               /* const: room for so many */
        /* const: sizeof(struct stook_stats_record), rounded up to the unit. */
        uint64_t record_bytes;
        /* Atomic add: records drawn; those beyond `records`: no room. */
        uint64_t taken;
};

struct stook_stats_snapshot {
        uint64_t at_ms;                 /* CLOCK_MONOTONIC_COARSE */
        uint32_t final;                 /* 1: by the destructor, exact */
        uint32_t caches;                /* in cache[] */
        uint32_t caches_more;           /* in use, but no room for them */
        uint32_t gone;                  /* destroyed ones: behind the others in cache[] */
        uint32_t groups;                /* in group_list[] */
        uint32_t groups_more;           /* there are, but no room for them */
        uint64_t taken_bytes;           /* page layer: spans in use, slabs and large objects */
        uint64_t free_dirty_bytes, free_clean_bytes, metadata_bytes, reserved_bytes;
        struct stook_group_stats group; /* of STOOK_GROUP_LIMIT; stats_size 0: none */
        struct stook_group_stats group_list[STOOK_STATS_PAGE_GROUPS];   /* all groups */
        uint64_t gone_caches[STOOK_GONE_MAX];   /* how many each of those entries stands for */
        /* Those that ever had a slab. */
        struct stook_cache_stats cache[STOOK_STATS_PAGE_CACHES];
};

enum stook_stats_birth { STOOK_STATS_BORN_BY_EXEC = 1, STOOK_STATS_BORN_BY_FORK };

struct stook_stats_record {
        /* enum stook_stats_birth, stored last (release); 0: not filled. */
        uint32_t birth;
        uint32_t pid, parent;           /* const from here on */
        uint32_t unused;
        uint64_t begun_ms;              /* CLOCK_MONOTONIC_COARSE */
        /* Equal in two records of a pid: the same program, without an exec between. */
        uint64_t image;
        uint64_t heap;                  /* differs then: two copies of the library in it */
        char     program[48];           /* argv[0] without its folder */
        char     backend[16];
        /* Lines: NAME=VALUE of those that the library reads, NAME of others. */
        char     variables[STOOK_STATS_PAGE_VARIABLES];
        uint64_t sequence;              /* M1, I2 */
        struct stook_stats_snapshot snapshot[2];
};

#define STOOK_STATS_RECORD_BYTES \
        ((sizeof(struct stook_stats_record) + STOOK_STATS_PAGE_UNIT - 1) & \
         ~(STOOK_STATS_PAGE_UNIT - 1))

/* ---- stats_page.c: the library's side, called by a constructor and a destructor ---- */

/* Reads STOOK_STATS and takes a record. Without the variable, or called again, it does nothing. */
void stook_stats_page_start(void);
/* The last, exact snapshot; nothing is published after it. */
void stook_stats_page_end(void);
/*
 * The child of a fork takes a record of its own. (By pthread_atfork; children of _Fork do it at
 * their first tick.)
 */
void stook_stats_page_fork_child(void);

#endif
