/*
 * Purpose: `stook symbolize --pid PID`: names for the addresses of call stacks of a process. The
 * library executes it for its reports (src/report/report_stack.c), so that nothing of a heap that
 * may be broken is needed.
 * Standard input: a line for each stack, with return addresses in hexadecimal, innermost first.
 * Standard output: for each stack a line for each frame (frames.h), and an empty line. So much only
 * once all of it is known: what reads it takes all or nothing.
 * With --leaks it prints the report of a search for leaks (leaks.h).
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "commands.h"
#include "frames.h"
#include "leaks.h"

#define PATIENCE_S 60                   /* the library waits for a shorter time */

static const char usage[] = "usage: stook symbolize --pid PID <ADDRESSES\n";

static const char help[] =
        "\n"
        "Reads a line for each call stack, return addresses of the process PID in hexadecimal,\n"
        "the innermost first. Prints a line for each frame, with function, file and line as far\n"
        "as debug information has them, and an empty line behind each stack. The library calls\n"
        "it for its reports.\n";

static void unblock_signals(void)
{
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        alarm(PATIENCE_S);              /* never left behind */
}

static int symbolize(struct symbols *symbols, FILE *out)
{
        uint64_t addresses[FRAMES_MOST];
        struct frames frames;
        char *line = NULL;
        size_t room = 0;
        int error = 0;

        while (!error && getline(&line, &room, stdin) >= 0) {
                error = frames_of(symbols, addresses, frames_read(line, addresses), &frames);
                if (error)
                        break;
                fprintf(out, "%s\n", frames.lines);
                frames_release(&frames);
        }
        free(line);
        return error;
}

/* Everything, or nothing. */
static int answer(struct symbols *symbols)
{
        char *text = NULL;
        size_t bytes = 0;
        FILE *out = open_memstream(&text, &bytes);
        bool failed;

        if (!out)
                return STATUS_CANNOT;
        failed = symbolize(symbols, out);
        failed |= fclose(out) != 0;
        if (!failed)
                failed = fwrite(text, 1, bytes, stdout) != bytes || fflush(stdout);
        free(text);
        return failed ? STATUS_CANNOT : 0;
}

/* The report goes to standard error, and so many objects to standard output. */
static int answer_leaks(const struct leaks_request *request)
{
        char *text = NULL;
        size_t bytes = 0;
        FILE *out = open_memstream(&text, &bytes);
        long long objects;

        if (!out)
                return STATUS_CANNOT;
        objects = leaks_print(request, stdin, out);
        if (fclose(out) || objects < 0) {
                free(text);
                return STATUS_CANNOT;
        }
        fwrite(text, 1, bytes, stderr);
        free(text);
        printf("%llx\n", (unsigned long long)objects);
        return fflush(stdout) ? STATUS_CANNOT : 0;
}

struct options {
        long pid;
        bool leaks;
        struct leaks_request request;
};

static bool parse(int argc, char **argv, struct options *o)
{
        static const struct option long_options[] = {
                { "pid", required_argument, NULL, 'p' }, { "leaks", no_argument, NULL, 'l' },
                { "program", required_argument, NULL, 'n' },
                { "suppress", required_argument, NULL, 's' }, { 0 },
        };
        int option;
        char *end = "";

        opterr = 0;
        while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
                switch (option) {
                case 'p':
                        o->pid = strtol(optarg, &end, 10);
                        break;
                case 'l':
                        o->leaks = true;
                        break;
                case 'n':
                        o->request.program = optarg;
                        break;
                case 's':
                        o->request.suppress = optarg;
                        break;
                default:
                        return false;
                }
        }
        return o->pid > 0 && !*end && optind == argc;
}

int cmd_symbolize(int argc, char **argv)
{
        struct options o = { .request.program = "a program" };
        int status;

        if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
                fputs(usage, stdout);
                fputs(help, stdout);
                return 0;
        }
        unblock_signals();
        if (!parse(argc, argv, &o)) {
                fputs(usage, stderr);
                return STATUS_CANNOT;
        }
        if (!symbols_are_built_in()) {
                fputs("stook symbolize: this stook was built without libdw (libdw-dev)\n", stderr);
                return STATUS_CANNOT;
        }
        o.request.symbols = symbols_of_process((pid_t)o.pid);
        if (!o.request.symbols) {
                fprintf(stderr, "stook symbolize: process %ld: its modules cannot be read\n",
                        o.pid);
                return STATUS_CANNOT;
        }
        status = o.leaks ? answer_leaks(&o.request) : answer(o.request.symbols);
        symbols_release(o.request.symbols);
        return status;
}
