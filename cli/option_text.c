/*
 * Purpose: see option_text.h.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "commands.h"
#include "option_text.h"

#define SECONDS_MOST 86400

int option_refuse(const char *command, int answer, char **argv, const char *usage)
{
        const char *option = argv[optind - 1];

        if (answer == ':')
                fprintf(stderr, "stook %s: %s needs a value\n%s", command, option, usage);
        else if (optopt >= OPTION_FIRST)
                fprintf(stderr, "stook %s: %s: this option takes no value\n%s", command, option,
                        usage);
        else if (optopt)
                fprintf(stderr, "stook %s: no option '-%c'\n%s", command, optopt, usage);
        else
                fprintf(stderr, "stook %s: no option '%s'\n%s", command, option, usage);
        return STATUS_CANNOT;
}

bool option_seconds(const char *command, const char *option, const char *text, double *seconds)
{
        char *end;

        *seconds = strtod(text, &end);
        if (end != text && !*end && *seconds >= 0.01 && *seconds <= SECONDS_MOST)
                return true;
        fprintf(stderr, "stook %s: %s takes seconds, 0.01 to %d, not '%s'\n", command, option,
                SECONDS_MOST, text);
        return false;
}

bool option_count(const char *command, const char *option, const char *text, unsigned *count)
{
        char *end;
        unsigned long n;

        errno = 0;
        n = strtoul(text, &end, 10);
        *count = (unsigned)n;
        if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && n >= 1 && n <= INT_MAX)
                return true;
        fprintf(stderr, "stook %s: %s takes a number of at least 1, not '%s'\n", command, option,
                text);
        return false;
}
