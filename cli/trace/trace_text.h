/*
 * Purpose: a trace as text, an event a line.
 */
#ifndef STOOK_CLI_TRACE_TEXT_H
#define STOOK_CLI_TRACE_TEXT_H

#include <stdio.h>

/* Return: 0; or an exit status, after a line on standard error that begins with @command. */
int trace_print(const char *path, FILE *out, const char *command);

#endif
