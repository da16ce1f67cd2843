/*
 * Purpose: find out that memory is scarce, by the counters the kernel keeps: pressure stall
 * information (PSI) and the events of a version 2 cgroup. They are read now and then and compared,
 * so that no file stays open, no trigger is needed (which asks for a right to write), and no thread
 * waits for one.
 * Place: called by life's maintenance.
 * Concurrency: any thread; two that ask at once share one answer. Words are relaxed.
 * Failure: files that are not there (version 1, no PSI, a sandbox) say nothing: false.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/inject.h"
#include "os/os.h"
#include "process/process.h"

#define PATH_BYTES 384
#define TEXT_BYTES 512
/*
 * Of the time, as microseconds in a millisecond: a tenth. Arbitrary; the kernel's own examples
 * alarm at 15 %.
 */
#define STALL_US_PER_MS 100

/* The file's begin, ended by 0. False: nothing there. */
static bool read_text(const char *path, char *text)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = -1;

        if (fd >= 0) {
                n = read(fd, text, TEXT_BYTES - 1);
                close(fd);
        }
        text[n > 0 ? n : 0] = 0;
        return n > 0;
}

static uint64_t number_at(const char *c)
{
        uint64_t n = 0;

        while (*c >= '0' && *c <= '9')
                n = n * 10 + (uint64_t)(*c++ - '0');
        return n;
}

/*
 * The number behind the first @word of a line or, where it ends in '=', of a field; 0: there is
 * none.
 */
static uint64_t number_after(const char *text, const char *word)
{
        size_t length = strlen(word);

        for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
                if (at == text || at[-1] == '\n' || at[-1] == ' ')
                        return number_at(at + length);
        return 0;
}

/* The path of @file in the process's cgroup of version 2. False: it is in none, or too deep. */
static bool cgroup_path(const char *file, char *path)
{
        static const char mount[] = "/sys/fs/cgroup";
        char text[TEXT_BYTES], *group, *end;
        size_t length;

        if (!read_text("/proc/self/cgroup", text))
                return false;
        group = strstr(text, "0::/");
        if (!group || (group != text && group[-1] != '\n'))
                return false;
        group += 3;
        end = strchr(group, '\n');
        length = end ? (size_t)(end - group) : PATH_BYTES;
        if (sizeof(mount) + length + 1 + strlen(file) > PATH_BYTES)
                return false;
        memcpy(path, mount, sizeof(mount) - 1);
        path += sizeof(mount) - 1;
        memcpy(path, group, length);
        path[length] = '/';
        strcpy(path + length + 1, file);
        return true;
}

static bool read_system(const char *chosen, const char *file, const char *otherwise, char *text)
{
        char path[PATH_BYTES];

        if (chosen)
                return read_text(chosen, text);
        return (cgroup_path(file, path) && read_text(path, text)) ||
               (otherwise && read_text(otherwise, text));
}

/* Microseconds in which some task stood still for lack of memory. */
static uint64_t stalled_us(void)
{
        char text[TEXT_BYTES];

        return read_system(STOOK_INJECT_GET(pressure_file), "memory.pressure",
                           "/proc/pressure/memory", text)
                       ? number_after(text, "total=")
                       : 0;
}

static uint64_t limit_events(void)
{
        char text[TEXT_BYTES];

        return read_system(STOOK_INJECT_GET(events_file), "memory.events", NULL, text) ?
               number_after(text, "high ") + number_after(text, "max ") : 0;
}

bool stook_process_pressure(void)
{
        static uint64_t last_stalled, last_events, last_ms;     /* atomic, relaxed */
        int before = errno;
        uint64_t now = stook_os_clock_ms(), stalled = stalled_us(), events = limit_events();
        uint64_t then = __atomic_exchange_n(&last_ms, now, __ATOMIC_RELAXED);
        uint64_t stall = stalled - __atomic_exchange_n(&last_stalled, stalled, __ATOMIC_RELAXED);
        bool passed = events > __atomic_exchange_n(&last_events, events, __ATOMIC_RELAXED);

        errno = before;
        return then && (passed || (int64_t)stall > (int64_t)((now - then) * STALL_US_PER_MS));
}
