/*
 * Purpose: see fleet.h.
 */
#include "cli/exporter/fleet.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *fleet_reason_key(enum fleet_reason reason)
{
        static const char *const keys[] = { "not_permitted", "other_version", "gone", "too_many" };

        return keys[reason];
}

const char *fleet_reason_text(enum fleet_reason reason)
{
        static const char *const texts[] = {
                "the system does not let this user (another user's, or ptrace_scope)",
                "it uses Stook of another version",
                "it ended, or its heap is damaged",
                "there are too many",
        };

        return texts[reason];
}

static void release(struct fleet_process *p)
{
        for (size_t i = 0; i < p->count; i++)
                heap_free(&p->heaps[i]);
        free(p->heaps);
        free(p->libraries);
        memory_close(&p->memory);
}

/* Of copies that were started and not used there is nothing to tell. False: no memory. */
static bool look(struct fleet *f, struct fleet_process *p)
{
        unsigned found;

        p->libraries = calloc(LIBRARIES_MAX, sizeof *p->libraries);
        if (!p->libraries)
                return false;
        found = libraries_find(&p->memory, p->libraries);
        if (!found)
                return true;
        p->heaps = calloc(found, sizeof *p->heaps);
        for (unsigned i = 0; i < found && p->heaps; i++) {
                struct heap *h = &p->heaps[p->count];

                if (!p->libraries[i].readable)
                        f->refused[FLEET_OTHER_VERSION] +=
                                p->libraries[i].root.state == STOOK_ROOT_STARTED;
                else if (heap_read(h, &p->memory, &p->libraries[i], HEAP_SLABS))
                        f->refused[FLEET_GONE]++;
                else if (!h->cache_count)
                        heap_free(h);
                else
                        p->count++;
        }
        return p->heaps;
}

/* False: no memory. */
static bool add(struct fleet *f, uint32_t pid)
{
        struct fleet_process *p = &f->processes[f->count];
        int error = memory_open_process(&p->memory, pid);
        bool good = error || look(f, p);

        if (error == -EPERM || error == -EACCES)
                f->refused[FLEET_NOT_PERMITTED]++;
        if (p->count && good) {
                f->count++;
                return true;
        }
        release(p);
        memset(p, 0, sizeof *p);
        return good;
}

static int by_number(const void *a, const void *b)
{
        const struct fleet_process *x = a, *y = b;

        return x->memory.pid < y->memory.pid ? -1 : x->memory.pid > y->memory.pid;
}

/* Where a heap's memory lies has changed. */
static void set_memories(struct fleet *f)
{
        for (size_t i = 0; i < f->count; i++)
                for (size_t k = 0; k < f->processes[i].count; k++)
                        f->processes[i].heaps[k].memory = &f->processes[i].memory;
}

bool fleet_look(struct fleet *f)
{
        DIR *proc = opendir("/proc");
        struct dirent *entry;
        bool good;

        memset(f, 0, sizeof *f);
        f->processes = calloc(FLEET_MOST, sizeof *f->processes);
        good = f->processes;
        while (good && proc && (entry = readdir(proc))) {
                char *end;
                unsigned long pid = strtoul(entry->d_name, &end, 10);

                if (!pid || *end || pid > INT32_MAX)
                        continue;
                if (f->count == FLEET_MOST)
                        f->refused[FLEET_TOO_MANY]++;
                else
                        good = add(f, (uint32_t)pid);
        }
        if (proc)
                closedir(proc);
        if (f->count)
                qsort(f->processes, f->count, sizeof *f->processes, by_number);
        set_memories(f);
        return good;
}

void fleet_release(struct fleet *f)
{
        for (size_t i = 0; i < f->count; i++)
                release(&f->processes[i]);
        free(f->processes);
        memset(f, 0, sizeof *f);
}
