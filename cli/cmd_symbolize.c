/*
 * Purpose: `stook symbolize --pid PID`: names for the addresses of call stacks of a process. The
 * library executes it for its reports (src/report/report_stack.c), so that nothing of a heap that
 * may be broken is needed.
 * Standard input: a line for each stack, with return addresses in hexadecimal, innermost first.
 * Standard output: for each stack a line for each frame (frames.h), and an empty line. So much only
 * once all of it is known: what reads it takes all or nothing.
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

static size_t read_addresses(char *line, uint64_t *addresses)
{
        size_t count = 0;
        char *end;

        while (count < FRAMES_MOST) {
                uint64_t address = strtoull(line, &end, 16);

                if (end == line)
                        break;
                addresses[count++] = address;
                line = end;
        }
        return count;
}

static int symbolize(struct symbols *symbols, FILE *out)
{
        uint64_t addresses[FRAMES_MOST];
        struct frames frames;
        char *line = NULL;
        size_t room = 0;
        int error = 0;

        while (!error && getline(&line, &room, stdin) >= 0) {
                error = frames_of(symbols, addresses, read_addresses(line, addresses), &frames);
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

int cmd_symbolize(int argc, char **argv)
{
        struct symbols *symbols;
        char *end = NULL;
        long pid = 0;
        int status;

        if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
                fputs(usage, stdout);
                fputs(help, stdout);
                return 0;
        }
        unblock_signals();
        if (argc == 3 && !strcmp(argv[1], "--pid"))
                pid = strtol(argv[2], &end, 10);
        if (pid <= 0 || *end) {
                fputs(usage, stderr);
                return STATUS_CANNOT;
        }
        if (!symbols_are_built_in()) {
                fputs("stook symbolize: this stook was built without libdw (libdw-dev)\n", stderr);
                return STATUS_CANNOT;
        }
        symbols = symbols_of_process((pid_t)pid);
        if (!symbols) {
                fprintf(stderr, "stook symbolize: process %ld: its modules cannot be read\n", pid);
                return STATUS_CANNOT;
        }
        status = answer(symbols);
        symbols_release(symbols);
        return status;
}
