/*
 * Purpose: what all commands say of options and arguments that they do not take. Each line begins
 * with "stook COMMAND: ". Options with a long name have values from OPTION_FIRST on.
 */
#ifndef STOOK_CLI_OPTION_TEXT_H
#define STOOK_CLI_OPTION_TEXT_H

#include <stdbool.h>

#define OPTION_FIRST 256

/*
 * After getopt_long gave @answer ('?' or ':'); the option string begins with ':'.
 * Return: STATUS_CANNOT.
 */
int option_refuse(const char *command, int answer, char **argv, const char *usage);
/* Arguments that make no sense: why, as for printf, and the usage. Return: STATUS_CANNOT. */
int option_misused(const char *command, const char *usage, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* What the command shows when asked for it. Return: the exit status. */
int option_help(const char *usage, const char *help);
/* After all was printed. Return: @status; or STATUS_CANNOT, and said: it did not all get out. */
int option_printed(const char *command, int status);

/* The only argument behind the options, a process. NULL, and said: there are none, or several. */
const char *option_process(const char *command, int argc, char **argv, const char *usage);

/*
 * Is @file no forgotten name with an option or "--" in its place? "./--x" names such a file. False,
 * and said: it is one.
 */
bool option_file(const char *command, const char *option, const char *file);
/* A positive number of seconds, with a fraction. False, and said: it is none. */
bool option_seconds(const char *command, const char *option, const char *text, double *seconds);
/* A whole number from 1 to @most, which is at most INT_MAX. False, and said: it is none. */
bool option_count(const char *command, const char *option, const char *text, unsigned most,
                  unsigned *count);

#endif
