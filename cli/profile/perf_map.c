/*
 * Purpose: see perf_map.h. Functions are moved and thrown away while a program runs, and the file
 * only grows. So ranges may overlap; the last line is the newest.
 */
#include "cli/profile/perf_map.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUNCTIONS_MOST ((size_t)1 << 22)

struct function {
        uint64_t start, end;
        size_t   line;
        char    *name;
};

struct perf_map {
        struct function *functions;     /* by start, then by line */
        size_t           count;
        uint64_t         longest;
};

static int by_start(const void *a, const void *b)
{
        const struct function *x = a, *y = b;

        if (x->start != y->start)
                return x->start < y->start ? -1 : 1;
        return (x->line > y->line) - (x->line < y->line);
}

static bool add(struct perf_map *map, char *line)
{
        struct function *f;
        char *end, *name;
        uint64_t start = strtoull(line, &end, 16), bytes;

        if (end == line || *end != ' ')
                return true;
        bytes = strtoull(end + 1, &name, 16);
        if (name == end + 1 || *name != ' ' || !bytes)
                return true;
        name[strcspn(name, "\n")] = '\0';
        if (!(map->count & (map->count - 1))) {
                f = realloc(map->functions, (map->count ? 2 * map->count : 1) * sizeof *f);
                if (!f)
                        return false;
                map->functions = f;
        }
        f = &map->functions[map->count];
        *f = (struct function){ start, start + bytes, map->count, strdup(name + 1) };
        if (!f->name || ++map->count == FUNCTIONS_MOST)
                return false;
        if (bytes > map->longest)
                map->longest = bytes;
        return true;
}

/* In a folder that anybody may write to: only a regular file, of the process's user or of root. */
static FILE *open_file(const char *path)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
                        (st.st_uid && st.st_uid != geteuid() && geteuid()))) {
                close(fd);
                fd = -1;
        }
        return fd < 0 ? NULL : fdopen(fd, "r");
}

struct perf_map *perf_map_open(uint32_t process)
{
        struct perf_map *map = calloc(1, sizeof *map);
        char path[100], *line = NULL;
        size_t room = 0;
        FILE *file;

        snprintf(path, sizeof path, "/proc/%u/root/tmp/perf-%u.map", process, process);
        file = open_file(path);
        if (!file) {
                snprintf(path, sizeof path, "/tmp/perf-%u.map", process);
                file = open_file(path);
        }
        while (map && file && getline(&line, &room, file) >= 0 && add(map, line))
                ;
        free(line);
        if (file)
                fclose(file);
        if (map && map->count)
                qsort(map->functions, map->count, sizeof *map->functions, by_start);
        return map;
}

void perf_map_close(struct perf_map *map)
{
        for (size_t i = 0; map && i < map->count; i++)
                free(map->functions[i].name);
        if (map)
                free(map->functions);
        free(map);
}

const char *perf_map_find(const struct perf_map *map, uint64_t address)
{
        const struct function *found = NULL;
        size_t low = 0, high = map ? map->count : 0;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (map->functions[middle].start <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (; low > 0 && address - map->functions[low - 1].start < map->longest; low--) {
                const struct function *f = &map->functions[low - 1];

                if (address < f->end && (!found || f->line > found->line))
                        found = f;
        }
        return found ? found->name : NULL;
}
