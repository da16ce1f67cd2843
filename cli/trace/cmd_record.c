/*
 * Purpose: `stook record`: runs a program and has its processes write a trace; prints a trace as
 * text.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/program/on_drop_in.h"
#include "cli/text/option_text.h"
#include "record/trace_format.h"
#include "cli/text/plain_text.h"
#include "cli/trace/trace_text.h"

#define FILE_DEFAULT "stook.trace"
#define STACKS ",stacks"                /* behind the name in STOOK_RECORD */

static const char usage[] =
        "usage: stook record [-o FILE] [--stacks] [--] PROGRAM [ARGUMENT...]\n"
        "       stook record --text FILE\n";

static const char help[] =
        "\n"
        "Runs PROGRAM with libstook-malloc.so preloaded, and writes down every allocation and\n"
        "free of it and its children. The exit status is PROGRAM's (128+N for signal N), 126 or\n"
        "127 if it cannot be executed or found, 2 if stook cannot do what was asked, or if FILE\n"
        "took not all of the trace and PROGRAM ended with 0.\n"
        "\n"
        "options:\n"
        "  -o FILE      the trace (" FILE_DEFAULT "). A file that is no trace is not overwritten\n"
        "  --stacks     the call stack of each allocation, too: `stook profile FILE` ranks them\n"
        "  --text FILE  print the trace FILE as text, an event a line\n"
        "  --help       show this\n";

struct options {
        const char *out, *text;
        bool        stacks;
        char      **program;
};

enum { OPTION_TEXT = OPTION_FIRST, OPTION_STACKS, OPTION_HELP };

static const struct option long_options[] = {
        { "text", required_argument, NULL, OPTION_TEXT },
        { "stacks", no_argument, NULL, OPTION_STACKS },
        { "help", no_argument, NULL, OPTION_HELP },
        { 0 }
};

/* Return: -1, go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
        int option;

        opterr = 0;
        while ((option = getopt_long(argc, argv, "+:ho:", long_options, NULL)) != -1) {
                switch (option) {
                case 'o':
                        if (!option_file("record", "-o", optarg))
                                return STATUS_CANNOT;
                        o->out = optarg;
                        break;
                case OPTION_TEXT:
                        o->text = optarg;
                        break;
                case OPTION_STACKS:
                        o->stacks = true;
                        break;
                case OPTION_HELP:
                case 'h':
                        return option_help(usage, help);
                default:
                        return option_refuse("record", option, argv, usage);
                }
        }
        o->program = argv + optind;
        if (o->text && (o->out || o->stacks || optind != argc))
                return option_misused("record", usage,
                                      "--text takes one trace, and runs nothing");
        if (!o->text && optind == argc)
                return option_misused("record", usage, "no program given");
        return -1;
}

static int cannot(const char *path, const char *why)
{
        say(stderr, "stook record: %s: %s\n", path, why);
        return STATUS_CANNOT;
}

/* Empty, and ready for processes to append to. Return: 0, *@whole is free()d; or a status. */
static int make_file(const char *path, char **whole)
{
        size_t n = strlen(path), suffix = strlen(STACKS);
        int fd;
        struct stat st;
        uint64_t magic;
        int status = 0;

        if (n >= suffix && !strcmp(path + n - suffix, STACKS))
                return cannot(path, "a trace's name does not end with '" STACKS "'");
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
        if (fd < 0)
                return cannot(path, strerror(errno));
        if (fstat(fd, &st) || !S_ISREG(st.st_mode))
                status = cannot(path, "not a regular file");
        else if (st.st_size && (pread(fd, &magic, sizeof magic, 0) != (ssize_t)sizeof magic ||
                                magic != STOOK_TRACE_MAGIC))
                status = cannot(path, "it is there, and is no trace: not overwritten");
        else if (ftruncate(fd, 0) || !(*whole = realpath(path, NULL)))
                status = cannot(path, strerror(errno));
        close(fd);
        return status;
}

/* What came of it, on standard error. False: not all that the program did. */
static bool say_result(const char *path, const struct on_drop_in *on, bool is_cut)
{
        struct stat st;

        if (stat(path, &st)) {
                cannot(path, strerror(errno));
                return false;
        }
        if (st.st_size || is_cut || on->check.reach == REACH_YES || on->check.reach == REACH_PARTLY)
                say(stderr, "stook: %s: a trace of %lld bytes%s\n", path, (long long)st.st_size,
                    is_cut ? ": the file took no more, and the program went on without it" :
                    st.st_size ? "" :
                    ": the program never came to the drop-in, or ended before it wrote");
        return !is_cut;
}

static int record(const struct options *o, const char *path, bool is_new, struct on_drop_in *on)
{
        char variable[PATH_MAX + 16], *variables[] = { variable, NULL };
        struct run_request request = { .argv = o->program, .variables = variables,
                                       .wants_notes = true };
        struct run_result result;
        int error;

        on_drop_in_check(on, o->program[0]);
        if (!on_drop_in_compose(on))
                return STATUS_CANNOT;
        snprintf(variable, sizeof variable, "STOOK_RECORD=%s%s", path, o->stacks ? STACKS : "");
        request.preload = on->preload;
        error = run_program(&request, &result);
        if (error) {
                say(stderr, "stook: cannot run %s: %s\n", o->program[0], strerror(-error));
                return STATUS_CANNOT;
        }
        if (result.exec_errno) {
                if (is_new)
                        unlink(path);
                return say_unrunnable(o->program[0], result.exec_errno);
        }
        say_crash(name_of_program(o->program[0]), &result);
        if (!say_result(path, on, result.notes[STOOK_NOTE_CUT]) && !result.status)
                return STATUS_CANNOT;
        return result.status;
}

int cmd_record(int argc, char **argv)
{
        struct options o = { 0 };
        struct on_drop_in on = { .preload = NULL };
        int status = parse(argc, argv, &o);
        char *path = NULL;
        bool is_new;

        if (status >= 0)
                return status;
        if (o.text)
                return trace_print(o.text, stdout, "stook record");
        run_program_ignore_file_size();
        if (!o.out)
                o.out = FILE_DEFAULT;
        /* An older trace must not be emptied for nothing. */
        status = say_if_unrunnable(o.program[0]);
        if (status) {
                if (o.program[1] && !strcmp(o.program[1], "--"))
                        say(stderr, "stook record: for a trace in %s say: -o %s\n",
                            o.program[0], o.program[0]);
                return status;
        }
        is_new = access(o.out, F_OK) != 0;
        status = make_file(o.out, &path);
        if (!status)
                status = record(&o, path, is_new, &on);
        free(on.preload);
        free(path);
        return status;
}
