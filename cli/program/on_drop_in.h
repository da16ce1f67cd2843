/*
 * Purpose: what all commands that run a program on the drop-in do before and after: look whether
 * the drop-in reaches it, say so, put it into LD_PRELOAD, and say what kept the program from
 * running, or ended it.
 */
#ifndef STOOK_CLI_ON_DROP_IN_H
#define STOOK_CLI_ON_DROP_IN_H

#include <stdbool.h>
#include "cli/program/elf_check.h"
#include "cli/program/run_program.h"

struct on_drop_in {
        struct elf_check check;
        char *preload;                  /* LD_PRELOAD of the run; NULL: as it is. free() it */
};

/* Prints a note, if there is one. */
void on_drop_in_check(struct on_drop_in *on, const char *program);
/* After the check. False: there is no drop-in, or no memory, which was said. */
bool on_drop_in_compose(struct on_drop_in *on);

/* Says why the program could not be executed. Return: the exit status for that. */
int  say_unrunnable(const char *program, int error);
/* The same beforehand, where the run would spoil something. Return: 0, it can; the exit status. */
int  say_if_unrunnable(const char *program);
/* A shell names the signal of programs that it started itself. It does not see this one. */
void say_crash(const char *program, const struct run_result *result);
/* A program without its folder. */
const char *name_of_program(const char *program);

#endif
