/*
 * Purpose: which file a command name stands for.
 */
#ifndef STOOK_CLI_FIND_PROGRAM_H
#define STOOK_CLI_FIND_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The file execvp would take. Return: 0; -ENOENT; -EACCES: found, but not executable. */
int find_program(const char *name, char path[PATH_MAX]);

/*
 * The drop-in library: beside the command (build folder), else in the library folder that it was
 * installed with.
 * @message: why there is none. Return: 0; -ENOENT; -EINVAL: its path cannot stand in LD_PRELOAD.
 */
int find_drop_in(char path[PATH_MAX], char *message, size_t message_bytes);

/*
 * A helper of the command's: beside it (build folder), else where helpers were installed.
 * False: @message says why.
 */
bool find_helper(const char *name, char path[PATH_MAX], char *message, size_t message_bytes);

#endif
