/*
 * bench/resident/resident_preload.c - the table of any program's resident pages
 *
 * Purpose: libstook-malloc-resident.so is the drop-in with this in it.
 *   STOOK_RESIDENT=FILE     writes the table to FILE.PID at exit, as JSON if FILE has "json" in it
 *   STOOK_RESIDENT_PEAK=1   writes the table of the moment at which most was resident instead
 * A benchmark asks for a table at a moment of its choice: stook_resident_dump(file), by dlsym.
 * How: the peak is looked for when the library's slow calls tick (stat/counter.h), whenever
 * the process has 1 % more than at the last table. So a table costs time, and the program runs
 * slower.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stat/counter.h"
#include "resident.h"

static struct stook_resident tables[2]; /* the one that stands, and the one being made */
static unsigned stands;
static uint32_t busy;
static int statm = -1;
static char file[4096];
static bool peak;

static bool has_text(const char *text, const char *part)
{
        return text && strstr(text, part);
}

__attribute__((visibility("default"))) int stook_resident_dump(const char *path);
int stook_resident_dump(const char *path)
{
        static struct stook_resident now;
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        bool done = fd >= 0 && stook_resident_take(&now) &&
                    stook_resident_print(&now, fd, has_text(path, "json"));

        if (fd >= 0)
                close(fd);
        return done ? 0 : -1;
}

static size_t resident_pages(void)
{
        char text[128];
        ssize_t n = pread(statm, text, sizeof(text) - 1, 0);
        char *at;

        text[n > 0 ? n : 0] = 0;
        at = strchr(text, ' ');
        return at ? strtoul(at, NULL, 10) : 0;
}

static void look(void)
{
        static size_t most;
        size_t pages;

        if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
                return;
        pages = resident_pages();
        if (pages > most + most / 100) {
                most = pages;
                if (stook_resident_take(&tables[!stands]))
                        stands = !stands;
        }
        __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void begin(void)
{
        const char *asked = getenv("STOOK_RESIDENT");

        if (!asked || strlen(asked) > sizeof(file) - 32)
                return;
        strcpy(file, asked);
        peak = getenv("STOOK_RESIDENT_PEAK") != NULL;
        if (!peak)
                return;
        statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        __atomic_store_n(&stook_stats_page_hook, look, __ATOMIC_RELAXED);
}

__attribute__((destructor)) static void end(void)
{
        char path[sizeof(file) + 32];
        int fd;

        if (!file[0])
                return;
        __atomic_store_n(&stook_stats_page_hook, NULL, __ATOMIC_RELAXED);
        if (!peak || !tables[stands].total)
                stook_resident_take(&tables[stands]);
        snprintf(path, sizeof(path), "%s.%d", file, (int)getpid());
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0)
                return;
        stook_resident_print(&tables[stands], fd, has_text(file, "json"));
        close(fd);
}
