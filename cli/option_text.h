/*
 * Purpose: what all commands say of an option that they do not take. Options with a long name have
 * values from OPTION_FIRST on.
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

/* A positive number of seconds, with a fraction. False, and said: it is none. */
bool option_seconds(const char *command, const char *option, const char *text, double *seconds);
/* A whole number of at least 1. False, and said: it is none. */
bool option_count(const char *command, const char *option, const char *text, unsigned *count);

#endif
