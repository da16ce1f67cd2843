/*
 * Purpose: open what a command is to look at; see target.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/heap/heap.h"
#include "cli/memory/target.h"
#include "cli/program/elf_check.h"
#include "cli/text/plain_text.h"

#define STATUS_GONE 1                   /* there is nothing to look at */

/* 0: no process has the id. -1: @text is none, so it is a path. */
static int64_t pid_of(const char *text)
{
        unsigned long pid;

        if (!*text || text[strspn(text, "0123456789")])
                return -1;
        errno = 0;
        pid = strtoul(text, NULL, 10);
        return errno || pid > INT32_MAX ? 0 : (int64_t)pid;
}

static const char *file_name(const struct library *l)
{
        const char *slash = strrchr(l->image->path, '/');

        return slash ? slash + 1 : l->image->path;
}

const char *target_name(const struct target *t, const struct library *l, char *out, size_t size)
{
        snprintf(out, size, "%s%s (pid %u), %s", t->is_core ? "core of " : "", t->memory.program,
                 t->memory.pid, file_name(l));
        return out;
}

struct library *target_next(struct target *t, const struct library *after)
{
        for (unsigned i = after ? (unsigned)(after - t->libraries) + 1 : 0; i < t->count; i++)
                if (t->libraries[i].readable)
                        return &t->libraries[i];
        return NULL;
}

void target_print_others(const struct target *t, FILE *out)
{
        for (unsigned i = 0; i < t->count; i++)
                if (!t->libraries[i].readable)
                        say(out, "\nalso %s: %s\n", file_name(&t->libraries[i]),
                            t->libraries[i].refusal);
}

static void keep_named(struct target *t, const char *part)
{
        unsigned kept = 0;

        for (unsigned i = 0; i < t->count; i++)
                if (strstr(t->libraries[i].image->path, part))
                        t->libraries[kept++] = t->libraries[i];
        t->count = kept;
}

static unsigned count_readable(const struct target *t)
{
        unsigned n = 0;

        for (unsigned i = 0; i < t->count; i++)
                n += t->libraries[i].readable;
        return n;
}

static bool is_used(const struct heap *h)
{
        uint64_t allocated = h->pages.large_objects;

        for (size_t i = 0; i < h->cache_count; i++)
                allocated += h->caches[i].stats.alloc_fastpath + h->caches[i].stats.alloc_slowpath;
        return allocated;
}

/*
 * A program that is linked to libstook.so and has the drop-in before it uses the drop-in's copy
 * alone; the other one has started, and has no cache but those that debug modes make at start.
 */
static void leave_out_unused(struct target *t)
{
        for (unsigned i = 0; i < t->count && count_readable(t) > 1; i++) {
                struct library *l = &t->libraries[i];
                struct heap h;

                if (!l->readable || heap_read(&h, &t->memory, l, HEAP_COUNTS))
                        continue;
                if (!is_used(&h)) {
                        l->readable = false;
                        snprintf(l->refusal, sizeof l->refusal, "it is not used");
                }
                heap_free(&h);
        }
}

/* As elf_check_excludes, of the process. */
static bool excluded(const struct target *t, char *why, size_t bytes)
{
        char path[64];

        snprintf(path, sizeof path, "/proc/%u/exe", t->memory.pid);
        return elf_check_excludes(path, why, bytes);
}

/* None is readable: why. A copy that was never used is told only if there is no other. */
static void say_why(const struct target *t, const char *command, const char *what,
                    const char *library)
{
        char why[160];

        if (!t->count && library)
                say(stderr,
                    "stook %s: %s %s has no copy of Stook in a file with '%s' in its path\n",
                    command, t->is_core ? "core" : "process", what, library);
        else if (!t->count && !t->is_core && memory_process_state(t->memory.pid) == 'Z')
                say(stderr, "stook %s: process %s has ended\n", command, what);
        else if (!t->count && !t->is_core && excluded(t, why, sizeof why))
                say(stderr, "stook %s: %s does not use Stook: it is %s\n", command, what, why);
        else if (!t->count && t->memory.missing)
                say(stderr, "stook %s: %s is cut off: what says where a heap is would be in the "
                    "%" PRIu64 " bytes that are missing\n", command, what, t->memory.missing);
        else if (!t->count)
                say(stderr, "stook %s: %s does not use Stook%s\n", command, what,
                    t->is_core ? ", or the core lacks the program's first page (--exe FILE)"
                               : "");
        for (unsigned i = 0; i < t->count; i++)
                say(stderr, "stook %s: %s: %s: %s\n", command, what,
                    file_name(&t->libraries[i]), t->libraries[i].refusal);
}

int target_open(struct target *t, const char *command, const struct target_request *request)
{
        const char *what = request->what;
        int64_t pid = pid_of(what);
        int error;

        memset(t, 0, sizeof *t);
        if (!pid) {
                say(stderr, "stook %s: there is no process %s\n", command, what);
                return STATUS_GONE;
        }
        t->is_core = pid < 0;
        error = pid > 0 ? memory_open_process(&t->memory, (uint32_t)pid)
                        : memory_open_core(&t->memory, what, request->exe);
        if (error) {
                say(stderr, "stook %s: %s\n", command, t->memory.error);
                memory_close(&t->memory);
                return error == -ESRCH || error == -ENOENT ? STATUS_GONE : STATUS_CANNOT;
        }
        t->count = libraries_find(&t->memory, t->libraries);
        if (request->library)
                keep_named(t, request->library);
        leave_out_unused(t);
        if (target_next(t, NULL) && t->memory.missing)
                say(stderr, "stook %s: note: %s is cut off: %" PRIu64 " bytes are missing, and "
                    "read as zeros\n", command, what, t->memory.missing);
        if (target_next(t, NULL))
                return 0;
        say_why(t, command, what, request->library);
        target_close(t);
        return STATUS_GONE;
}

void target_close(struct target *t)
{
        memory_close(&t->memory);
        t->count = 0;
}

/* ---- commands ---- */

int target_options(const struct target_command *command, int argc, char **argv,
                   struct target_request *request, void *data)
{
        const char *letters = command->letters ? command->letters : ":h";
        int c;

        opterr = 0;
        while ((c = getopt_long(argc, argv, letters, command->options, NULL)) != -1)
                if (c == TARGET_LIBRARY)
                        request->library = optarg;
                else if (c == TARGET_EXE)
                        request->exe = optarg;
                else if (c == TARGET_HELP || c == 'h')
                        return option_help(command->usage, command->help);
                else if (c == '?' || c == ':')
                        return option_refuse(command->name, c, argv, command->usage);
                else if (!command->take(c, data))
                        return STATUS_CANNOT;
        return -1;
}

int target_show(const struct target_command *command, const struct target_request *request,
                const char *array,
                int (*show)(struct target *target, struct library *library, struct json *or_null,
                            void *data),
                void *data)
{
        struct target t;
        struct json j;
        int status = target_open(&t, command->name, request);

        if (status)
                return status;
        if (array) {
                json_begin(&j, stdout);
                json_array(&j, array);
        }
        for (struct library *at = NULL; status < STATUS_CANNOT && (at = target_next(&t, at));)
                status |= show(&t, at, array ? &j : NULL, data);
        if (array) {
                json_array_end(&j);
                json_end(&j);
        }
        target_close(&t);
        return option_printed(command->name, status);
}
