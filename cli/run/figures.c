/*
 * Purpose: the figures file from outside; see figures.h and inspect/stats_page.h.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "cli/run/figures.h"

#define RECORDS 20000u /* 5 GiB of a sparse file; only used records cost memory */
#define WATCHED_MAX 512u                /* processes watched at a time: each has a descriptor */

struct figures_watch {
        uint32_t pid;
        int      fd;                    /* pidfd, -1: gone or not to be had */
        uint64_t ended_ms;              /* 0: not seen */
        uint64_t peak_bytes;
};

/* ---- make and remove ---- */

static int fill_header(struct figures_file *file)
{
        struct stook_stats_file header = {
                .magic = STOOK_STATS_PAGE_MAGIC,
                .version = STOOK_STATS_PAGE_VERSION,
                .records = RECORDS,
                .record_bytes = STOOK_STATS_RECORD_BYTES,
        };

        /* Smaller where a limit on file size or the file system wants it so. */
        for (; header.records; header.records /= 2)
                if (!ftruncate(file->shared.fd, (off_t)(STOOK_STATS_PAGE_UNIT +
                                                 header.records * header.record_bytes)))
                        break;
        if (!header.records)
                return -EFBIG;
        return pwrite(file->shared.fd, &header, sizeof header, 0) == (ssize_t)sizeof header
                ? 0 : -EIO;
}

int figures_file_make(struct figures_file *file)
{
        int error;

        memset(file, 0, sizeof *file);
        error = shared_file_make(&file->shared);
        if (!error) {
                error = fill_header(file);
                if (error)
                        figures_file_remove(file);
        }
        return error;
}

void figures_file_remove(struct figures_file *file)
{
        for (size_t i = 0; i < file->watch_count; i++)
                if (file->watches[i].fd >= 0)
                        close(file->watches[i].fd);
        free(file->watches);
        file->watches = NULL;
        file->watch_count = 0;
        shared_file_remove(&file->shared);
}

/* ---- records ---- */

static bool read_at(const struct figures_file *file, uint64_t at, void *out, size_t bytes)
{
        return pread(file->shared.fd, out, bytes, (off_t)at) == (ssize_t)bytes;
}

static uint64_t record_at(uint64_t index)
{
        return STOOK_STATS_PAGE_UNIT + index * STOOK_STATS_RECORD_BYTES;
}

/* Records drawn, and how many found no place. */
static uint64_t records_taken(const struct figures_file *file, uint64_t *no_room)
{
        struct stook_stats_file header;

        *no_room = 0;
        if (!read_at(file, 0, &header, sizeof header))
                return 0;
        if (header.taken > header.records) {
                *no_room = header.taken - header.records;
                return header.records;
        }
        return header.taken;
}

/* The record's fields without its snapshots. False: it was drawn, but not filled. */
static bool read_head(const struct figures_file *file, uint64_t index,
                      struct stook_stats_record *record)
{
        const size_t bytes = offsetof(struct stook_stats_record, snapshot);

        return read_at(file, record_at(index), record, bytes) &&
               record->birth;
}

static bool is_sane(const struct stook_stats_snapshot *s)
{
        return s->caches <= STOOK_STATS_PAGE_CACHES && s->gone <= STOOK_GONE_MAX &&
               s->caches + s->gone <= STOOK_STATS_PAGE_CACHES &&
               s->groups <= STOOK_STATS_PAGE_GROUPS;
}

/* The last snapshot, whole even if its process is alive. False: none. */
static bool read_snapshot(const struct figures_file *file, uint64_t index,
                          struct stook_stats_snapshot *snapshot)
{
        const uint64_t at = record_at(index);
        const uint64_t at_sequence = at + offsetof(struct stook_stats_record, sequence);
        const uint64_t at_snapshots = at + offsetof(struct stook_stats_record, snapshot);
        uint64_t sequence, again;

        for (unsigned tries = 0; tries < 100; tries++) {
                if (!read_at(file, at_sequence, &sequence, sizeof sequence) || !sequence)
                        return false;
                /* M1 of stats_page.h: sequence, then the snapshot */
                __atomic_thread_fence(__ATOMIC_ACQUIRE);
                if (!read_at(file, at_snapshots + (sequence & 1) * sizeof *snapshot, snapshot,
                             sizeof *snapshot))
                        return false;
                __atomic_thread_fence(__ATOMIC_ACQUIRE);
                if (!read_at(file, at_sequence, &again, sizeof again))
                        return false;
                if (again == sequence && is_sane(snapshot))
                        return true;
        }
        return false;
}

/* ---- watching ---- */

static int open_process(uint32_t pid)
{
        return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
}

static uint64_t peak_of(uint32_t pid)
{
        char path[64], line[256];
        unsigned long long kib = 0;
        FILE *f;

        snprintf(path, sizeof path, "/proc/%u/status", pid);
        f = fopen(path, "re");
        if (!f)
                return 0;
        while (fgets(line, sizeof line, f))
                if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
                        break;
        fclose(f);
        return kib * 1024;
}

static bool gone(int fd)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };

        return poll(&p, 1, 0) == 1;
}

static void watch_new(struct figures_file *file)
{
        struct stook_stats_record record;
        uint64_t no_room, taken = records_taken(file, &no_room);
        struct figures_watch *grown;

        if (taken <= file->watch_count)
                return;
        grown = realloc(file->watches, taken * sizeof *grown);
        if (!grown)
                return;
        file->watches = grown;
        for (; file->watch_count < taken; file->watch_count++) {
                struct figures_watch *w = &grown[file->watch_count];

                memset(w, 0, sizeof *w);
                w->fd = -1;
                if (!read_head(file, file->watch_count, &record)) {
                        if (file->watch_count + 1 == taken) /* being filled just now: next time */
                                return;
                        continue;
                }
                w->pid = record.pid;
                w->fd = open_process(record.pid);
                if (w->fd >= 0 && gone(w->fd)) {
                        close(w->fd);
                        w->fd = -1;
                }
        }
}

void figures_file_watch(void *data)
{
        struct figures_file *file = data;
        size_t open = 0;

        watch_new(file);
        for (size_t i = file->watch_count; i-- > 0;) {
                struct figures_watch *w = &file->watches[i];
                uint64_t peak;

                if (w->fd < 0)
                        continue;
                if (gone(w->fd) || open == WATCHED_MAX) {
                        w->ended_ms = open == WATCHED_MAX ? 0 : coarse_clock_ms();
                        close(w->fd);
                        w->fd = -1;
                        continue;
                }
                open++;
                peak = peak_of(w->pid);
                if (peak)
                        w->peak_bytes = peak;
        }
}

/* ---- what they left ---- */

static int add_gone(struct process *p, const struct stook_stats_snapshot *s)
{
        struct gone_caches *grown;

        if (!s->gone)
                return 0;
        grown = realloc(p->gone, (p->gone_count + s->gone) * sizeof *grown);
        if (!grown)
                return -ENOMEM;
        p->gone = grown;
        for (unsigned i = 0; i < s->gone; i++) {
                struct gone_caches *gone = &grown[p->gone_count++];

                *gone = (struct gone_caches){ s->cache[s->caches + i], s->gone_caches[i] };
                gone->stats.name[sizeof gone->stats.name - 1] = 0;
        }
        return 0;
}

static void add_groups(struct process *p, const struct stook_stats_snapshot *s)
{
        p->groups_more += s->groups_more;
        for (unsigned i = 0; i < s->groups; i++) {
                struct stook_group_stats *group = &p->groups[p->group_count];

                if (p->group_count == STOOK_STATS_PAGE_GROUPS) {
                        p->groups_more++;
                        continue;
                }
                *group = s->group_list[i];
                group->name[sizeof group->name - 1] = 0;
                p->group_count++;
        }
}

static int add_caches(struct process *p, const struct stook_stats_snapshot *s)
{
        struct stook_cache_stats *grown;

        p->published = true;
        p->taken_bytes += s->taken_bytes;
        p->free_dirty_bytes += s->free_dirty_bytes;
        p->free_clean_bytes += s->free_clean_bytes;
        p->metadata_bytes += s->metadata_bytes;
        p->reserved_bytes += s->reserved_bytes;
        p->caches_more += s->caches_more;
        if (s->group.stats_size && s->group.peak_bytes >= p->group.peak_bytes)
                p->group = s->group;
        add_groups(p, s);
        if (add_gone(p, s))
                return -ENOMEM;
        if (!s->caches)
                return 0;
        grown = realloc(p->caches, (p->count + s->caches) * sizeof *grown);
        if (!grown)
                return -ENOMEM;
        p->caches = grown;
        memcpy(grown + p->count, s->cache, s->caches * sizeof *grown);
        for (unsigned i = 0; i < s->caches; i++)
                grown[p->count + i].name[sizeof grown->name - 1] = 0;
        p->count += s->caches;
        return 0;
}

/* The last process of that number so far, or NULL. */
static struct process *latest(struct figures *figures, uint32_t pid)
{
        for (size_t i = figures->count; i-- > 0;)
                if (figures->processes[i].pid == pid)
                        return &figures->processes[i];
        return NULL;
}

struct identity {
        uint64_t image, heap;
};

/* What the record of a process says of it, and what was seen of it from outside. */
static void fill_process(struct process *p, const struct stook_stats_record *record,
                         const struct figures_watch *seen, const struct run_result *root)
{
        p->pid = record->pid;
        p->parent = record->parent;
        p->birth = record->birth;
        p->begun_ms = record->begun_ms;
        memcpy(p->program, record->program, sizeof p->program);
        memcpy(p->backend, record->backend, sizeof p->backend);
        memcpy(p->variables, record->variables, sizeof p->variables);
        p->variables[sizeof p->variables - 1] = 0;
        p->program[sizeof p->program - 1] = p->backend[sizeof p->backend - 1] = 0;
        if (seen) {
                p->peak_bytes = seen->peak_bytes;
                p->ended_ms = seen->ended_ms;
        }
        if (record->pid == (uint32_t)root->pid)
                p->ended_ms = root->ended_ms;
        else if (seen && seen->fd >= 0)
                p->end = PROCESS_RUNNING;
}

/* Adds the process of a record, or the caches of a second copy of the library in a process. */
static int add_record(struct figures_file *file, uint64_t index, const struct run_result *root,
                      struct figures *figures, struct identity *identities)
{
        static struct stook_stats_snapshot snapshot;    /* 100 KiB */
        struct stook_stats_record record;
        struct process *p, *before;
        bool published;

        if (!read_head(file, index, &record)) {
                figures->no_room++;     /* its mapping ended before (a limit on address space) */
                return 0;
        }
        published = read_snapshot(file, index, &snapshot);
        before = latest(figures, record.pid);
        if (before) {
                const struct identity *id = &identities[before - figures->processes];

                if (id->image == record.image && id->heap != record.heap)
                        return published ? add_caches(before, &snapshot) : 0;
                if (record.birth == STOOK_STATS_BORN_BY_EXEC) {
                        before->end = PROCESS_REPLACED;
                        before->ended_ms = record.begun_ms;
                        before->peak_bytes = 0;         /* what was seen may be its successor's */
                }
        }
        p = &figures->processes[figures->count];
        identities[figures->count++] = (struct identity){ record.image, record.heap };
        fill_process(p, &record, index < file->watch_count ? &file->watches[index] : NULL, root);
        if (!published)
                return 0;
        p->exact = snapshot.final;
        p->at_ms = snapshot.at_ms;
        return add_caches(p, &snapshot);
}

int figures_file_read(struct figures_file *file, const struct run_result *root,
                      struct figures *figures)
{
        struct identity *identities;
        uint64_t taken;
        int error = 0;

        memset(figures, 0, sizeof *figures);
        figures_file_watch(file);
        taken = records_taken(file, &figures->no_room);
        figures->processes = calloc(taken + 1, sizeof *figures->processes);
        identities = calloc(taken + 1, sizeof *identities);
        if (!figures->processes || !identities)
                error = -ENOMEM;
        for (uint64_t i = 0; i < taken && !error; i++)
                error = add_record(file, i, root, figures, identities);
        free(identities);
        /* The kernel's figure for the run is the largest process's: this one's, if it is alone. */
        if (figures->count == 1 && figures->processes[0].pid == (uint32_t)root->pid)
                figures->processes[0].peak_bytes = root->peak_bytes;
        if (error)
                figures_release(figures);
        return error;
}

void figures_release(struct figures *figures)
{
        for (size_t i = 0; i < figures->count; i++) {
                free(figures->processes[i].caches);
                free(figures->processes[i].gone);
        }
        free(figures->processes);
        memset(figures, 0, sizeof *figures);
}
