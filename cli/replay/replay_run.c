/*
 * Purpose: see replay_run.h. Makes the file that replay_file.h describes, runs the helper on it,
 * and takes out what it left.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/files/find_program.h"
#include "cli/replay/replay_run.h"

struct replay_mapped {
        int    fd;
        size_t bytes;
        struct replay_file *file;
};

const struct replay_settings replay_settings_usual = {
        .capacity = -1, .barn_full = -1, .barn_empty = -1, .nodes = 1,
};

/* ---- the file ---- */

static bool map_file(struct replay_mapped *m, size_t bytes)
{
        m->file = MAP_FAILED;
        m->bytes = bytes;
        m->fd = memfd_create("stook-replay", MFD_CLOEXEC);
        if (m->fd >= 0 && !ftruncate(m->fd, (off_t)bytes))
                m->file = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
        if (m->file != MAP_FAILED)
                return true;
        if (m->fd >= 0)
                close(m->fd);
        return false;
}

static void unmap_file(struct replay_mapped *m)
{
        munmap(m->file, m->bytes);
        close(m->fd);
}

static size_t add_room(size_t *bytes, size_t count, size_t each)
{
        size_t at = (*bytes + 63) & ~(size_t)63;

        *bytes = at + count * each;
        return at;
}

static bool make_file(const struct replay_list *list, const struct replay_settings *settings,
                      struct replay_mapped *m)
{
        struct replay_file head = {
                .magic = REPLAY_MAGIC,
                .caches = list->cache_count,
                .events = list->count,
                .objects = list->objects,
                .cpus = settings->slots,
                .capacity = settings->capacity,
                .barn_full = settings->barn_full,
                .barn_empty = settings->barn_empty,
        };
        size_t bytes = sizeof head;
        struct replay_event *events;

        head.at_caches = add_room(&bytes, list->cache_count, sizeof *list->caches);
        head.at_events = add_room(&bytes, list->count, sizeof *list->events);
        head.at_samples = add_room(&bytes, REPLAY_SAMPLES, sizeof(struct replay_sample));
        head.at_stats = add_room(&bytes, list->cache_count, sizeof(struct stook_cache_stats));
        head.bytes = bytes;
        if (!map_file(m, bytes))
                return false;
        *m->file = head;
        if (list->cache_count)
                memcpy((char *)m->file + head.at_caches, list->caches,
                       list->cache_count * sizeof *list->caches);
        for (size_t i = 0; settings->capacities && i < list->cache_count; i++)
                ((struct replay_cache *)((char *)m->file + head.at_caches))[i].capacity =
                        settings->capacities[i];
        events = (struct replay_event *)((char *)m->file + head.at_events);
        for (size_t i = 0; i < list->count; i++) {
                events[i] = list->events[i];
                events[i].cpu = (uint16_t)(events[i].cpu % settings->slots);
        }
        return true;
}

/* As before the first run. */
static void begin_run(struct replay_mapped *m, bool watch)
{
        m->file->watch = watch;
        m->file->done = 0;
        m->file->failed = m->file->nanoseconds = m->file->live_objects = m->file->samples = 0;
}

/* ---- the helper ---- */

/* Variables of the user's would change the replay. */
static bool is_inherited(const char *variable)
{
        return strncmp(variable, "STOOK_", 6) && strncmp(variable, "LD_PRELOAD=", 11);
}

static char **make_environment(char *const own[])
{
        size_t n = 0, kept = 0;
        char **copy;

        while (environ[n])
                n++;
        for (size_t i = 0; own[i]; i++)
                n++;
        copy = calloc(n + 1, sizeof *copy);
        if (!copy)
                return NULL;
        for (size_t i = 0; environ[i]; i++)
                if (is_inherited(environ[i]))
                        copy[kept++] = environ[i];
        for (size_t i = 0; own[i]; i++)
                copy[kept++] = own[i];
        return copy;
}

static _Noreturn void become_helper(const char *path, int fd, char *const environment[],
                                    pid_t parent)
{
        char *const words[] = { "stook-replay", NULL };

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent && dup2(fd, STDIN_FILENO) >= 0)
                execve(path, words, environment);
        _exit(127);
}

static bool run_helper(const struct replay_result *r, bool watch, char *message, size_t bytes)
{
        /* The replay is faster than what was traced: nothing may go by its own clock. */
        char topology[64], path[PATH_MAX];
        char *const own[] = { topology, "STOOK_SLOTS=rseq", "STOOK_DECAY_MS=3600000", NULL };
        char **environment;
        pid_t parent = getpid(), pid;
        int status;

        snprintf(topology, sizeof topology, "STOOK_TOPOLOGY=nodes=%u:slots=%u", r->settings.nodes,
                 r->settings.slots);
        if (!find_helper("stook-replay", path, message, bytes))
                return false;
        begin_run(r->mapped, watch);
        environment = make_environment(own);
        pid = environment ? fork() : -1;
        if (!pid)
                become_helper(path, r->mapped->fd, environment, parent);
        free(environment);
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (pid < 0)
                snprintf(message, bytes, "no process for the helper: %s", strerror(errno));
        else if (WIFSIGNALED(status))
                snprintf(message, bytes, "the helper ended by signal %d (%s)", WTERMSIG(status),
                         strsignal(WTERMSIG(status)));
        else if (WEXITSTATUS(status) == 127)
                snprintf(message, bytes, "%s cannot be executed", path);
        else if (WEXITSTATUS(status) || !r->mapped->file->done)
                snprintf(message, bytes, "the helper could not replay this trace");
        else
                return true;
        return false;
}

/* ---- what it left ---- */

static uint64_t more(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

static uint64_t less_at_least_0(uint64_t from, uint64_t what)
{
        return from > what ? from - what : 0;
}

void replay_layers(const struct stook_cache_stats *s, struct replay_layers *allocs,
                   struct replay_layers *frees)
{
        uint64_t from_slabs = s->sheaf_capacity ? s->barn_get_fail : 0;

        /* A refill that found no memory is among the slow ones already. */
        allocs->slabs = more(from_slabs, s->alloc_slowpath);
        allocs->barn = s->barn_get;
        allocs->slot = less_at_least_0(s->alloc_fastpath + s->alloc_slowpath,
                                       allocs->barn + allocs->slabs);
        frees->slabs = s->barn_put_fail + s->free_slowpath;
        frees->barn = s->barn_put;
        frees->slot = less_at_least_0(s->free_fastpath + s->free_slowpath,
                                      frees->barn + frees->slabs);
}

static void add_layers(struct replay_layers *sum, const struct replay_layers *l)
{
        sum->slot += l->slot;
        sum->barn += l->barn;
        sum->slabs += l->slabs;
}

static void find_peak(struct replay_result *r)
{
        for (size_t i = 0; i < r->sample_count; i++) {
                const struct replay_sample *s = &r->samples[i];

                r->peak.live_bytes = more(r->peak.live_bytes, s->live_bytes);
                r->peak.taken_bytes = more(r->peak.taken_bytes, s->taken_bytes);
                r->peak.resident_bytes = more(r->peak.resident_bytes, s->resident_bytes);
        }
}

/* Of the watched run. False: no memory. */
static bool take_out(const struct replay_list *list, struct replay_result *r)
{
        const struct replay_file *f = r->mapped->file;

        r->stats = calloc(list->cache_count + 1, sizeof *r->stats);
        r->samples = calloc(REPLAY_SAMPLES, sizeof *r->samples);
        if (!r->stats || !r->samples)
                return false;
        memcpy(r->stats, (char *)f + f->at_stats, list->cache_count * sizeof *r->stats);
        r->sample_count = f->samples < REPLAY_SAMPLES ? f->samples : REPLAY_SAMPLES;
        memcpy(r->samples, (char *)f + f->at_samples, r->sample_count * sizeof *r->samples);
        for (size_t i = 0; i < list->cache_count; i++) {
                struct replay_layers allocs, frees;

                replay_layers(&r->stats[i], &allocs, &frees);
                add_layers(&r->allocs, &allocs);
                add_layers(&r->frees, &frees);
        }
        find_peak(r);
        r->calls = f->calls;
        r->failed = f->failed;
        r->live_objects = f->live_objects;
        memcpy(r->backend, f->backend, sizeof r->backend);
        r->backend[sizeof r->backend - 1] = 0;
        return true;
}

static void release_file(struct replay_result *r)
{
        if (r->mapped)
                unmap_file(r->mapped);
        free(r->mapped);
        r->mapped = NULL;
}

bool replay_watch(const struct replay_list *list, const struct replay_settings *settings,
                  struct replay_result *r, char *message, size_t bytes)
{
        memset(r, 0, sizeof *r);
        r->settings = *settings;
        if (!r->settings.slots)
                r->settings.slots = list->cpu_count ? list->cpu_count : 1;
        r->mapped = calloc(1, sizeof *r->mapped);
        if (!r->mapped || !make_file(list, &r->settings, r->mapped)) {
                snprintf(message, bytes, "no memory for the replay: %s", strerror(errno));
                free(r->mapped);
                r->mapped = NULL;
                return false;
        }
        if (run_helper(r, true, message, bytes)) {
                if (take_out(list, r)) {
                        if (!settings->timed)           /* a grid has many */
                                release_file(r);
                        return true;
                }
                snprintf(message, bytes, "no memory for what the replay left");
        }
        replay_result_release(r);
        return false;
}

bool replay_time(struct replay_result *results, size_t count, char *message, size_t bytes)
{
        unsigned timed = results[0].settings.timed;
        double *times = calloc(timed * count + 1, sizeof *times);
        bool fine = times != NULL;

        if (!times)
                snprintf(message, bytes, "no memory for the times");
        for (unsigned run = 0; fine && run < timed; run++)
                for (size_t i = 0; fine && i < count; i++) {
                        const struct replay_file *f = results[i].mapped->file;

                        fine = run_helper(&results[i], false, message, bytes);
                        times[i * timed + run] =
                                f->calls ? (double)f->nanoseconds / (double)f->calls : 0;
                }
        for (size_t i = 0; fine && timed && i < count; i++)
                results[i].ns_per_call = spread_of(times + i * timed, timed);
        free(times);
        return fine;
}

void replay_result_release(struct replay_result *r)
{
        release_file(r);
        free(r->stats);
        free(r->samples);
        memset(r, 0, sizeof *r);
}
