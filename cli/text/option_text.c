/*
 * Purpose: see option_text.h.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/text/option_text.h"
#include "cli/text/plain_text.h"

#define SECONDS_MOST 86400

int option_refuse(const char *command, int answer, char **argv, const char *usage)
{
        const char *option = argv[optind - 1];

        if (answer == ':')
                return option_misused(command, usage, "%s needs a value", option);
        /* optopt: a known long one with a value; a letter; or 0, an unknown long one */
        if (optopt >= OPTION_FIRST)
                return option_misused(command, usage, "%s: this option takes no value", option);
        if (optopt)
                return option_misused(command, usage, "no option '-%c'", optopt);
        return option_misused(command, usage, "no option '%s'", option);
}

int option_misused(const char *command, const char *usage, const char *format, ...)
{
        va_list values;

        say(stderr, "stook %s: ", command);
        va_start(values, format);
        vsay(stderr, format, values);
        va_end(values);
        fputc('\n', stderr);
        fputs(usage, stderr);
        return STATUS_CANNOT;
}

int option_help(const char *usage, const char *help)
{
        fputs(usage, stdout);
        fputs(help, stdout);
        return option_printed(NULL, 0);
}

int option_printed(const char *command, int status)
{
        if (!fflush(stdout) && !ferror(stdout))
                return status;
        say(stderr, "stook%s%s: standard output: %s\n", command ? " " : "",
            command ? command : "", strerror(errno));
        return STATUS_CANNOT;
}

const char *option_process(const char *command, int argc, char **argv, const char *usage)
{
        if (argc - optind == 1)
                return argv[optind];
        option_misused(command, usage,
                       argc == optind ? "no process given" : "one process at a time");
        return NULL;
}

bool option_file(const char *command, const char *option, const char *file)
{
        if (strncmp(file, "--", 2) != 0)
                return true;
        say(stderr, "stook %s: %s needs a file before '%s'\n", command, option, file);
        return false;
}

bool option_seconds(const char *command, const char *option, const char *text, double *seconds)
{
        char *end;

        *seconds = strtod(text, &end);
        if (end != text && !*end && *seconds >= 0.01 && *seconds <= SECONDS_MOST)
                return true;
        say(stderr, "stook %s: %s takes seconds, 0.01 to %d, not '%s'\n", command, option,
            SECONDS_MOST, text);
        return false;
}

bool option_count(const char *command, const char *option, const char *text, unsigned most,
                  unsigned *count)
{
        char *end;
        unsigned long n;

        errno = 0;
        n = strtoul(text, &end, 10);
        *count = (unsigned)n;
        if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && n >= 1 && n <= most)
                return true;
        if (most == INT_MAX)
                say(stderr, "stook %s: %s takes a number of at least 1, not '%s'\n", command,
                    option, text);
        else
                say(stderr, "stook %s: %s takes a number from 1 to %u, not '%s'\n", command,
                    option, most, text);
        return false;
}
