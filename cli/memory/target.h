/*
 * Purpose: the process or core that a command is told to look at, and the copies of the library in
 * it. Says in one line on standard error what is wrong.
 */
#ifndef STOOK_CLI_TARGET_H
#define STOOK_CLI_TARGET_H

#include <stdio.h>
#include "cli/memory/library.h"

struct target {
        struct memory  memory;
        struct library libraries[LIBRARIES_MAX];
        unsigned       count;           /* of them */
        bool           is_core;
};

/*
 * @what: digits are a process id, else the path of a core. @exe: the core's program, or NULL.
 * @library: a part of the path of the copies to look at, or NULL: all.
 * Return: 0: at least one copy is readable; else the exit status, said, and nothing is open.
 */
int  target_open(struct target *target, const char *command, const char *what, const char *exe,
                 const char *library);
void target_close(struct target *target);
/* The first readable copy that is not @after; NULL: none. @after NULL: the first one. */
struct library *target_next(struct target *target, const struct library *after);
/* A line for each copy that cannot be shown, with the reason. */
void target_print_others(const struct target *target, FILE *out);
/* The copy's file without its folders, and the process, for headings. */
const char *target_name(const struct target *target, const struct library *library, char *out,
                        size_t size);

#endif
