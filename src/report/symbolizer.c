/*
 * Purpose: where the command `stook` is, which names functions and lines in reports: where
 * STOOK_SYMBOLIZER says, else beside the library's file, as in a build folder, else where the
 * library was configured to be installed.
 * A program that has more rights than its caller (AT_SECURE) has none: the folder of its library,
 * and what the command reads, may be the caller's choice.
 * Place: called by report_stack.c and by the search for leaks; calls os.
 * Concurrency: any thread, any instruction; what the start wrote is only read.
 */
#include <string.h>

#include "os/os.h"
#include "process/process.h"
#include "report/install_paths.h"
#include "report/report_inside.h"

static bool chosen;                     /* both written at start */
static char path[STOOK_REPORT_PATH] STOOK_MOSTLY_UNUSED;        /* empty, if chosen: none */

void stook_report_set_symbolizer(const char *or_null)
{
        chosen = or_null;
        if (or_null && strlen(or_null) < sizeof(path))
                strcpy(path, or_null);
        else if (or_null)
                stook_os_env_refuse("STOOK_SYMBOLIZER", or_null, "a path of at most 511 bytes");
}

/* The line of /proc/self/maps that this code is in. @data: room for its path. */
static bool find_library(const char *line, void *data)
{
        uintptr_t start, end, here = (uintptr_t)find_library;
        const char *c = stook_text_read(line, &start);
        char *to = data;

        if (*c != '-' || here < start)
                return false;
        stook_text_read(c + 1, &end);
        if (here >= end)
                return false;
        c = strchr(line, '/');
        if (c && strlen(c) < STOOK_REPORT_PATH)
                strcpy(to, c);
        return true;
}

/* In @to: the command beside the library. A program that the library is linked into has none. */
static bool is_beside_the_library(char *to)
{
        char *name;

        *to = '\0';
        stook_file_each_line("/proc/self/maps", find_library, to);
        name = strrchr(to, '/');
        if (!name || strncmp(name, "/libstook", 9))
                return false;
        strcpy(name, "/stook");         /* which is shorter */
        return stook_process_is_executable(to);
}

bool stook_report_symbolizer(char *to)
{
        if (chosen) {
                strcpy(to, path);
                return *to;
        }
        if (stook_os_is_secure())
                return false;
        if (is_beside_the_library(to))
                return true;
        if (sizeof(STOOK_INSTALLED_COMMAND) > STOOK_REPORT_PATH)
                return false;
        strcpy(to, STOOK_INSTALLED_COMMAND);
        return stook_process_is_executable(to);
}
