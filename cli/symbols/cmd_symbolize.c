/*
 * Purpose: `stook symbolize --pid PID`: names for the addresses of call stacks of a process. The
 * library executes it for its reports (src/report/report_stack.c), so that nothing of a heap that
 * may be broken is needed.
 * Standard input: a line for each stack, with return addresses in hexadecimal, innermost first, of
 * files that the process has closed FILE+OFFSET; or the registers of a call and a copy of its stack
 * (src/report/report_stack.c).
 * Standard output: for each stack a line for each frame (frames.h), and an empty line. So much only
 * once all of it is known: what reads it takes all or nothing.
 * With --leaks it prints the report of a search for leaks (leaks.h).
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/profile/pprof_write.h"
#include "cli/symbols/frames.h"
#include "cli/symbols/leaks.h"
#include "cli/text/option_text.h"
#include "cli/text/plain_text.h"

#define PATIENCE_S 60                   /* the library waits for a shorter time */
#define STACK_MOST (1 << 20)            /* bytes of a stack; the library sends less */
#define SPACE " \t\r\n"

static const char usage[] = "usage: stook symbolize --pid PID <ADDRESSES\n"
                            "       stook symbolize FILE...\n";

static const char help[] =
        "\n"
        "Reads a line for each call stack, return addresses of the process PID in hexadecimal,\n"
        "the innermost first. Prints a line for each frame, with function, file and line as far\n"
        "as debug information has them, and an empty line behind each stack. The library calls\n"
        "it for its reports.\n"
        "Or writes the functions, files and lines of their addresses into heap profiles, so that\n"
        "they tell everything by themselves, elsewhere, too. `stook run --profile` does that.\n";

static void unblock_signals(void)
{
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        alarm(PATIENCE_S);              /* never left behind */
}

/* "@BYTES FROM PC REGISTER VALUE ...", all hexadecimal. */
static bool read_call(struct symbols *symbols, char *line, struct symbols_call *call)
{
        uint64_t numbers[FRAMES_MOST];
        size_t count = frames_read(symbols, line + 1, numbers);

        call->count = 0;
        if (count < 3 || count % 2 == 0 || numbers[0] > STACK_MOST)
                return false;
        call->bytes = numbers[0];
        call->stack = numbers[1];
        call->pc = numbers[2];
        for (size_t i = 3; i < count; i += 2) {
                if (call->count == sizeof call->registers / sizeof call->registers[0])
                        return false;
                call->registers[call->count].number = (unsigned)numbers[i];
                call->registers[call->count++].value = numbers[i + 1];
        }
        call->copy = malloc(call->bytes + 1);
        return call->copy;
}

/* Return: how many addresses, of a line that has them, or of a call that is to be walked. */
static size_t read_stack(struct symbols *symbols, pid_t pid, char *line, uint64_t *addresses)
{
        struct symbols_call call;
        size_t count = 0;

        if (*line != '@')
                return frames_read(symbols, line, addresses);
        if (!read_call(symbols, line, &call))
                return 0;
        if (fread(call.copy, 1, call.bytes, stdin) == call.bytes)
                count = symbols_walk(symbols, pid, &call, addresses, FRAMES_MOST);
        free(call.copy);
        return count;
}

/* Is each word of a stack's line an address, or FILE+OFFSET? False, and said: this one is not. */
static bool has_addresses(char *line)
{
        char *end, *number;
        size_t length;

        for (char *word = line; *(word += strspn(word, SPACE)); word += length) {
                length = strcspn(word, SPACE);
                number = *word == '/' ? memchr(word, '+', length) : NULL;
                number = number ? number + 1 : word;
                errno = 0;
                strtoull(number, &end, 16);
                if (isxdigit((unsigned char)*number) && end == word + length && !errno)
                        continue;
                word[length] = '\0';
                say(stderr, "stook symbolize: '%s' is no address\n", word);
                return false;
        }
        return true;
}

static int symbolize(struct symbols *symbols, pid_t pid, FILE *out)
{
        uint64_t addresses[FRAMES_MOST];
        struct frames frames;
        char *line = NULL;
        size_t room = 0;
        int error = 0;

        while (!error && getline(&line, &room, stdin) >= 0) {
                if (*line != '@' && !has_addresses(line)) {
                        error = -EINVAL;
                        break;
                }
                error = frames_of(symbols, addresses, read_stack(symbols, pid, line, addresses),
                                  &frames);
                if (error)
                        break;
                fputs(frames.lines, out);
                fputc('\n', out);
                frames_release(&frames);
        }
        free(line);
        return error;
}

/* Everything, or nothing. */
static int answer(struct symbols *symbols, pid_t pid)
{
        char *text = NULL;
        size_t bytes = 0;
        FILE *out = open_memstream(&text, &bytes);
        bool failed;

        if (!out)
                return STATUS_CANNOT;
        failed = symbolize(symbols, pid, out);
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
        say(stdout, "%llx\n", (unsigned long long)objects);
        return fflush(stdout) ? STATUS_CANNOT : 0;
}

struct options {
        long pid;
        bool leaks;
        struct leaks_request request;
};

/* False, and said: it is none. */
static bool read_pid(const char *text, long *pid)
{
        char *end;

        errno = 0;
        *pid = strtol(text, &end, 10);
        if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && *pid >= 1 && *pid <= INT_MAX)
                return true;
        say(stderr, "stook symbolize: --pid takes a process number, not '%s'\n", text);
        return false;
}

/* Return: -1, go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
        enum { OPTION_PID = OPTION_FIRST, OPTION_LEAKS, OPTION_PROGRAM, OPTION_SUPPRESS,
               OPTION_HELP };
        static const struct option long_options[] = {
                { "pid", required_argument, NULL, OPTION_PID },
                { "leaks", no_argument, NULL, OPTION_LEAKS },
                { "program", required_argument, NULL, OPTION_PROGRAM },
                { "suppress", required_argument, NULL, OPTION_SUPPRESS },
                { "help", no_argument, NULL, OPTION_HELP },
                { 0 }
        };
        int option;

        opterr = 0;
        while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
                switch (option) {
                case OPTION_PID:
                        if (!read_pid(optarg, &o->pid))
                                return STATUS_CANNOT;
                        break;
                case OPTION_LEAKS:
                        o->leaks = true;
                        break;
                case OPTION_PROGRAM:
                        o->request.program = optarg;
                        break;
                case OPTION_SUPPRESS:
                        o->request.suppress = optarg;
                        break;
                case OPTION_HELP:
                case 'h':
                        return option_help(usage, help);
                default:
                        return option_refuse("symbolize", option, argv, usage);
                }
        }
        if (!o->pid && (o->leaks || optind == argc))
                return option_misused("symbolize", usage, "--pid PID is needed, or a heap profile");
        if (o->pid && optind != argc)
                return option_misused("symbolize", usage, "too much: '%s'", argv[optind]);
        return -1;
}

static int symbolize_files(char **paths)
{
        char message[PATH_MAX + 100];
        int status = 0;

        for (; *paths; paths++) {
                if (pprof_symbolize(*paths, message, sizeof message))
                        continue;
                say(stderr, "stook symbolize: %s\n", message);
                status = STATUS_CANNOT;
        }
        return status;
}

int cmd_symbolize(int argc, char **argv)
{
        struct options o = { .request.program = "a program" };
        int status;

        unblock_signals();
        status = parse(argc, argv, &o);
        if (status >= 0)
                return status;
        if (!symbols_are_built_in()) {
                /* What asks for a report of misuse goes on without, and shares this stderr. */
                if (o.leaks || !o.pid)
                        fputs("stook symbolize: this stook was built without libdw (libdw-dev)\n",
                              stderr);
                return STATUS_CANNOT;
        }
        if (!o.pid) {
                alarm(0);
                return symbolize_files(argv + optind);
        }
        o.request.symbols = symbols_of_process((pid_t)o.pid);
        if (!o.request.symbols) {
                say(stderr, "stook symbolize: process %ld: its modules cannot be read\n", o.pid);
                return STATUS_CANNOT;
        }
        status = o.leaks ? answer_leaks(&o.request) : answer(o.request.symbols, (pid_t)o.pid);
        symbols_release(o.request.symbols);
        return status;
}
