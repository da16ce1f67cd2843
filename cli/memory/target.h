/*
 * Purpose: the process or core that a command is told to look at, and the copies of the library in
 * it: the options and the frame of JSON that such commands share. Says in one line on standard
 * error what is wrong.
 */
#ifndef STOOK_CLI_TARGET_H
#define STOOK_CLI_TARGET_H

#include <getopt.h>
#include <stdio.h>
#include "cli/memory/library.h"
#include "cli/text/json.h"
#include "cli/text/option_text.h"

struct target {
        struct memory  memory;
        struct library libraries[LIBRARIES_MAX];
        unsigned       count;           /* of them */
        bool           is_core;
};

/* What the user wants to look at. */
struct target_request {
        const char *what;               /* digits: a process id; else the path of a core */
        const char *exe;                /* the core's program, or NULL */
        const char *library;            /* in the path of the copies to look at; NULL: all */
};

/* Return: 0: at least one copy is readable; else the exit status, said, and nothing is open. */
int  target_open(struct target *target, const char *command, const struct target_request *request);
void target_close(struct target *target);
/* The first readable copy that is not @after; NULL: none. @after NULL: the first one. */
struct library *target_next(struct target *target, const struct library *after);
/* A line for each copy that cannot be shown, with the reason. */
void target_print_others(const struct target *target, FILE *out);
/* The copy's file without its folders, and the process, for headings. */
const char *target_name(const struct target *target, const struct library *library, char *out,
                        size_t size);


/* ---- commands ---- */

struct target_command {
        const char *name, *usage, *help;
        const struct option *options;   /* TARGET_OPTIONS at the end; others: TARGET_OPTION_FIRST */
        /* One of the others, its value in optarg. False, and said: it makes no sense. */
        bool (*take)(int option, void *data);
        const char *letters;            /* as getopt's, from ":h" on; NULL: that alone */
};

enum { TARGET_LIBRARY = OPTION_FIRST, TARGET_EXE, TARGET_HELP, TARGET_OPTION_FIRST };
#define TARGET_OPTIONS \
        { "library", required_argument, NULL, TARGET_LIBRARY }, \
        { "exe", required_argument, NULL, TARGET_EXE }, \
        { "help", no_argument, NULL, TARGET_HELP }, \
        { 0 }
#define TARGET_HELP_TEXT \
        "  --library NAME  only the copy of the library in a file with NAME in its path\n" \
        "  --exe FILE      with a core: the program, for pages that the core lacks\n" \
        "  --help          show this\n"

/* All options; words from optind on are the caller's. Return: -1: go on; else the exit status. */
int target_options(const struct target_command *command, int argc, char **argv,
                   struct target_request *request, void *data);
/*
 * Opens it, and calls @show for each readable copy, until one returns STATUS_CANNOT. @array: NULL:
 * as text; else each writes an object of this array, the document's only one.
 * Return: the exit status: the bits of what @show returned.
 */
int target_show(const struct target_command *command, const struct target_request *request,
                const char *array,
                int (*show)(struct target *target, struct library *library, struct json *or_null,
                            void *data),
                void *data);

#endif
