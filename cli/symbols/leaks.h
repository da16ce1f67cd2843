/*
 * Purpose: the report of a search for leaks (src/inspect/leak_tell.c), with names.
 */
#ifndef STOOK_CLI_LEAKS_H
#define STOOK_CLI_LEAKS_H

#include <stdbool.h>
#include <stdio.h>
#include "cli/symbols/frames.h"
#include "cli/symbols/symbols.h"

struct leaks_request {
        struct symbols *symbols;
        const char     *program;
        const char     *suppress;       /* FUNCTION[,...], each may end with '*'; NULL: none */
};

/*
 * Reads groups from @in: a line "LIVE PID", then "OBJECTS BYTES FRAME..." for each, in hexadecimal.
 * Prints them to @out. Return: objects that were not suppressed; negative: no groups could be read.
 */
long long leaks_print(const struct leaks_request *request, FILE *in, FILE *out);

/* Does a function of the frames match one of the patterns, as of leaks_request? */
bool leaks_are_suppressed(const struct frames *frames, const char *patterns);

#endif
