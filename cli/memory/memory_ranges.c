/*
 * Purpose: the mappings of a process; see memory.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/memory/memory.h"

/* "START-END rw-p OFFSET DEVICE INODE PATH" */
static bool read_line(char *line, struct memory_range *range)
{
        unsigned long long start, end;
        char access[5];
        int path = 0;

        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%llx-%llx %4s %*s %*s %*s %n", &start, &end, access, &path) < 3 || !path)
                return false;
        *range = (struct memory_range){ start, end, access[0] == 'r', access[1] == 'w',
                                        line + path, 0 };
        return true;
}

/* The file that the last mapping was of. */
struct file {
        char     path[256];
        uint64_t start, end;
};

/* Of a file, or its zeros (.bss), which are mapped behind it. */
static void find_file(struct file *file, struct memory_range *range)
{
        if (range->path[0] == '/' && strncmp(file->path, range->path, sizeof file->path - 1)) {
                snprintf(file->path, sizeof file->path, "%s", range->path);
                file->start = range->start;
        } else if (range->path[0] ? range->path[0] != '/' : range->start != file->end) {
                return;
        }
        range->path = file->path;
        range->offset = range->start - file->start;
        file->end = range->end;
}

int memory_each_range(struct memory *m, bool (*each)(const struct memory_range *range, void *data),
                      void *data)
{
        FILE *maps = m->maps(m);
        struct memory_range range;
        struct file file = { 0 };
        char *line = NULL;
        size_t room = 0;

        if (!maps)
                return -EIO;
        while (getline(&line, &room, maps) > 0) {
                if (!read_line(line, &range))
                        continue;
                find_file(&file, &range);
                if (!each(&range, data))
                        break;
        }
        free(line);
        fclose(maps);
        return 0;
}
