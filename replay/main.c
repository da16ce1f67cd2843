/*
 * Purpose: stook-replay, the helper of `stook replay`. It replays one trace with one set of
 * settings, and leaves what it saw in the file (replay_file.h). What the library reads at its start
 * (STOOK_TOPOLOGY, STOOK_SLOTS) comes by the environment, so each replay is a process of its own.
 * Place: run by the command, linked with libstook.
 * How: one thread makes all calls in the order of the trace, on made-up CPUs. So a replay gives the
 *  same counts each time. It runs as fast as it can: the times of the trace are not waited for. An
 *  object is written to when it is allocated: its first byte, and one in each further page.
 * Failure: exit status 1, with one line on standard error.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <stook/stook.h>
#include "made_up_cpu.h"
#include "malloc/malloc.h"
#include "pages/span.h"
#include "replay_file.h"

struct replay {
        struct replay_file *file;
        const struct replay_event *events;
        struct stook_cache **caches;
        void    **objects;
        uint64_t *wanted;               /* bytes of each */
        uint64_t  live_bytes;
        size_t    resident_before;
};

static _Noreturn void die(const char *what)
{
        fprintf(stderr, "stook replay: %s\n", what);
        exit(1);
}

static struct replay_file *map_file(void)
{
        struct stat st;
        struct replay_file *file;

        if (fstat(STDIN_FILENO, &st) || (size_t)st.st_size < sizeof *file)
                die("the helper is run by `stook replay` alone");
        file = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                    STDIN_FILENO, 0);
        if (file == MAP_FAILED)
                die(strerror(errno));
        if (file->magic != REPLAY_MAGIC || file->bytes != (uint64_t)st.st_size)
                die("the helper is of another version");
        return file;
}

/* Zeroed, and there: what is resident from here on is the heap's. */
static void *room(size_t bytes)
{
        void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

        if (p == MAP_FAILED)
                die("no memory for the objects of the trace");
        return p;
}

/* Exact, where /proc/self/status may be 64 pages off. 0: not to be had. */
static size_t resident_bytes(void)
{
        static char text[2048];
        int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
        const char *line;

        if (fd >= 0)
                close(fd);
        text[n > 0 ? n : 0] = 0;
        line = strstr(text, "\nAnonymous:");
        return line ? strtoul(line + 11, NULL, 10) * 1024 : 0;
}

static uint64_t thread_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- caches ---- */

/* @asked: objects or sheaves; 0: none; -1: as they are. Return: that of a struct stook_tuning. */
static unsigned setting(int asked)
{
        return asked < 0 ? 0 : asked ? (unsigned)asked : STOOK_NONE;
}

/*
 * A trace of the drop-in has malloc's classes: they are made as malloc makes them, with its
 * sheaves, barns and slabs. NULL: the cache is none of them, or there is no memory.
 */
static struct stook_cache *make_class(const struct replay_cache *cache)
{
        char name[STOOK_CLASS_NAME_BYTES];
        unsigned class;

        if (cache->object_bytes > STOOK_CLASS_MAX)
                return NULL;
        class = stook_class_for(cache->object_bytes);
        snprintf(name, sizeof name, "malloc-%u", stook_class_bytes[class]);
        return cache->object_bytes == stook_class_bytes[class] && !strcmp(cache->name, name)
                       ? stook_class_cache(class) : NULL;
}

static void make_caches(struct replay *r)
{
        const struct replay_file *f = r->file;
        const struct replay_cache *caches = (const void *)((char *)f + f->at_caches);

        r->caches = room(f->caches * sizeof *r->caches);
        for (uint64_t i = 0; i < f->caches; i++) {
                struct stook_tuning tuning = {
                        sizeof tuning,
                        setting(caches[i].capacity < 0 ? f->capacity : (int)caches[i].capacity),
                        setting(f->barn_full), setting(f->barn_empty)
                };

                r->caches[i] = make_class(&caches[i]);
                if (!r->caches[i])
                        r->caches[i] = stook_cache_create(caches[i].name, caches[i].object_bytes,
                                                          NULL);
                if (!r->caches[i])
                        die(errno == EAGAIN ? "the trace has more caches than Stook" :
                            "no memory for the caches of the trace");
                if ((tuning.sheaf_capacity || tuning.barn_full || tuning.barn_empty) &&
                    stook_cache_tune(r->caches[i], &tuning))
                        die("the caches cannot be tuned so");
        }
}

static void note_stats(const struct replay *r)
{
        struct stook_cache_stats *stats = (void *)((char *)r->file + r->file->at_stats);

        for (uint64_t i = 0; i < r->file->caches; i++) {
                stats[i].stats_size = sizeof stats[i];
                stook_cache_get_stats(r->caches[i], &stats[i]);
        }
}

/* ---- events ---- */

/* Of an object of malloc, the first page: it may be much larger than what was ever used of it. */
static void touch(void *object, const struct replay_event *e)
{
        size_t bytes = e->cache == REPLAY_LARGE && e->bytes > 4096 ? 4096 : e->bytes;

        for (size_t at = 0; at < bytes; at += 4096)
                *((volatile char *)object + at) = 1;
}

static void resize(struct replay *r, const struct replay_event *e)
{
        void *object = stook_realloc(r->objects[e->object], e->bytes);

        if (object)
                r->objects[e->object] = object;
        else
                r->file->failed++;
}

static void play(struct replay *r, const struct replay_event *e)
{
        void *object = r->objects[e->object];

        if (e->kind == REPLAY_RESIZE) {
                if (object)
                        resize(r, e);
        } else if (e->kind == REPLAY_ALLOC) {
                object = e->cache == REPLAY_LARGE ? stook_malloc(e->bytes) :
                         stook_cache_alloc(r->caches[e->cache]);
                r->objects[e->object] = object;
                if (object)
                        touch(object, e);
                else
                        r->file->failed++;
        } else if (e->cache == REPLAY_LARGE) {
                stook_free(object);
        } else {
                stook_cache_free(r->caches[e->cache], object);
        }
}

static void play_all(struct replay *r, uint64_t from, uint64_t to)
{
        uint64_t begun = thread_ns();

        for (uint64_t i = from; i < to; i++) {
                made_up_cpu_set(r->events[i].cpu);
                play(r, &r->events[i]);
        }
        r->file->nanoseconds += thread_ns() - begun;
}

/* ---- memory ---- */

/* What the events from..to made of the bytes that live. */
static void count_live(struct replay *r, uint64_t from, uint64_t to)
{
        for (uint64_t i = from; i < to; i++) {
                const struct replay_event *e = &r->events[i];

                r->live_bytes -= r->wanted[e->object];
                r->wanted[e->object] = e->kind == REPLAY_FREE ? 0 : e->bytes;
                r->live_bytes += r->wanted[e->object];
                r->file->live_objects += e->kind == REPLAY_ALLOC;
                r->file->live_objects -= e->kind == REPLAY_FREE;
        }
}

static void sample(struct replay *r, uint64_t event)
{
        struct replay_file *f = r->file;
        struct replay_sample *s = (struct replay_sample *)((char *)f + f->at_samples) + f->samples;
        struct stook_pages_stats pages;
        size_t resident = resident_bytes();

        stook_pages_stats(&pages);
        *s = (struct replay_sample){
                .event = event,
                .at_ns = event < f->events ? r->events[event].at_ns :
                         event ? r->events[event - 1].at_ns : 0,
                .live_bytes = r->live_bytes,
                .taken_bytes = pages.taken_bytes,
                .resident_bytes = resident > r->resident_before ? resident - r->resident_before : 0,
        };
        f->samples++;
}

static void play_watched(struct replay *r)
{
        uint64_t events = r->file->events, from = 0;

        sample(r, 0);
        for (unsigned i = 1; i < REPLAY_SAMPLES; i++) {
                uint64_t to = events / (REPLAY_SAMPLES - 1) * i +
                              events % (REPLAY_SAMPLES - 1) * i / (REPLAY_SAMPLES - 1);

                if (to == from)
                        continue;
                play_all(r, from, to);
                count_live(r, from, to);
                sample(r, to);
                from = to;
        }
}

int main(void)
{
        struct replay r = { .file = map_file() };
        struct replay_file *f = r.file;
        struct stook_mode mode = { .mode_size = sizeof mode };

        r.events = (const void *)((char *)f + f->at_events);
        r.objects = room(f->objects * sizeof *r.objects);
        r.wanted = room(f->objects * sizeof *r.wanted);
        if (stook_get_mode(&mode))
                die("no memory for the library");
        if (!made_up_cpus_start() && f->cpus > 1)
                die("several slots need restartable sequences, which this system has not; "
                    "--slots 1 needs none");
        make_caches(&r);
        r.resident_before = resident_bytes();
        if (f->watch)
                play_watched(&r);
        else
                play_all(&r, 0, f->events);
        f->calls = f->events;
        f->nodes = mode.nodes;
        f->slots = f->cpus;
        snprintf(f->backend, sizeof f->backend, "%s", mode.backend);
        note_stats(&r);
        f->done = 1;
        /* No handler at exit has anything to do. */
        _exit(0);
}
