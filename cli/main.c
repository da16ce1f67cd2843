/*
 * Purpose: the stook command: finds the subcommand and hands over.
 * Exit status: the subcommand's; 2: could not do what was asked.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <stook/version.h>
#include "cli/commands.h"
#include "cli/program/against.h"
#include "cli/text/option_text.h"
#include "cli/text/plain_text.h"

static const struct command {
        const char *name;
        int       (*call)(int argc, char **argv);
        const char *purpose;
} commands[] = {
        { "run", cmd_run, "run a program on Stook's malloc; show what it did with memory" },
        { "info", cmd_info, "show the caches of a running process, or of a core" },
        { "ps", cmd_ps, "list the processes that use Stook, with their totals" },
        { "what", cmd_what, "what does a pointer of a process, or of a core, lead to?" },
        { "leaks", cmd_leaks, "objects of a process, or of a core, that nothing leads to" },
        { "check", cmd_check, "is the heap of a running process, or of a core, sound?" },
        { "report", cmd_report, "a page of a process, a core, a heap profile or a trace" },
        { "exporter", cmd_exporter, "serve metrics and heap profiles of all processes on Stook" },
        { "top", cmd_top, "watch the caches of a running process" },
        { "tune", cmd_tune, "change a cache of a running process" },
        { "symbolize", cmd_symbolize, "name the functions and lines of call stacks" },
        { "profile", cmd_profile, "show a heap profile: as text, or as a flame graph" },
        { "record", cmd_record, "write a trace of a program's allocations and frees; print one" },
        { "replay", cmd_replay, "make a trace's calls on Stook, with settings of your choice" },
        { "bench", cmd_bench, "measure Stook beside other allocators; show what was measured" },
        { "malloc-from", cmd_malloc_from, NULL },       /* asked by this command itself */
};

static void print_help(FILE *out)
{
        fputs("usage: stook COMMAND [ARGUMENTS]\n\ncommands:\n", out);
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
                if (commands[i].purpose)
                        say(out, "  %-10s %s\n", commands[i].name, commands[i].purpose);
        fputs("\noptions:\n"
              "  --help     show this\n"
              "  --version  show the version\n"
              "\n`stook COMMAND --help` explains a command.\n", out);
}

/*
 * No file of ours may get the number of a standard one that is closed, or messages would be written
 * into it. What takes the place fails as a closed one does, and is closed for the program.
 */
static void fill_closed(void)
{
        int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);       /* 0 cannot be read */

        if (fd > 0) {
                close(fd);
                fd = open("/dev/null", O_RDONLY | O_CLOEXEC);   /* 1 and 2 cannot be written */
        }
        while (fd >= 0 && fd <= 2)
                fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd > 2)
                close(fd);
}

/* Return: the exit status. */
static int no_command(const char *name)
{
        say(stderr, "stook: no command '%s'; there is:", name);
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
                if (commands[i].purpose)
                        say(stderr, " %s", commands[i].name);
        fputs(" (see stook --help)\n", stderr);
        return STATUS_CANNOT;
}

int main(int argc, char **argv)
{
        const char *name = argc > 1 ? argv[1] : NULL;

        fill_closed();
        if (!name) {
                print_help(stderr);
                return STATUS_CANNOT;
        }
        if (!strcmp(name, "help") && argc > 2) {        /* as COMMAND --help */
                static char help[] = "--help";
                char *words[] = { argv[2], help, NULL };

                for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
                        if (commands[i].purpose && !strcmp(argv[2], commands[i].name))
                                return commands[i].call(2, words);
                return no_command(argv[2]);
        }
        if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
                print_help(stdout);
                return option_printed(NULL, 0);
        }
        if (!strcmp(name, "--version")) {
                puts("stook " STOOK_VERSION);
                return option_printed(NULL, 0);
        }
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
                if (!strcmp(name, commands[i].name))
                        return commands[i].call(argc - 1, argv + 1);

        if (name[0] == '-') {
                say(stderr, "stook: no option '%s' (see stook --help)\n", name);
                return STATUS_CANNOT;
        }
        return no_command(name);
}
