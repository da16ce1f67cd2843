/*
 * Purpose: which memory the program had before it ran: that of its files, with their data, and the
 * stack of its first thread. No allocator gave it.
 * Place: called for pointers that are to be freed, and are none of ours.
 * Concurrency: any thread, any instruction.
 */
#include <string.h>

#include "os/os.h"

struct search {
        uintptr_t address;
        uintptr_t file_end;             /* of the mapping before, if that is of a file */
        bool      found;
};

static const char *read_hex(const char *c, uintptr_t *n)
{
        for (*n = 0; (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'f'); c++)
                *n = *n * 16 + (uintptr_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
        return c;
}

/* Data without a beginning in the file (.bss) lies behind the file's last mapping. */
static bool look(const char *line, void *data)
{
        struct search *search = data;
        uintptr_t start, end;
        const char *c = read_hex(line, &start), *path = strchr(line, '/');
        bool is_file;

        if (*c != '-')
                return false;
        read_hex(c + 1, &end);
        is_file = path && strncmp(path, "/dev/", 5) && strncmp(path, "/memfd:", 7) &&
                  strncmp(path, "/SYSV", 5);
        if (search->address >= start && search->address < end)
                search->found = is_file || strstr(line, "[stack]") ||
                                (!strchr(line, '[') && !path && start == search->file_end);
        search->file_end = is_file ? end : 0;
        return search->address < end;
}

bool stook_os_is_program_memory(const void *address)
{
        struct search search = { .address = (uintptr_t)address };

        stook_os_each_line("/proc/self/maps", look, &search);
        return search.found;
}
