/*
 * Purpose: `stook record`: a trace as text.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "commands.h"
#include "trace_text.h"

static const char usage[] = "usage: stook record --text FILE\n";

static const char help[] =
        "\n"
        "  --text FILE  print the trace FILE as text, an event a line\n"
        "  --help       show this\n";

static const struct option long_options[] = {
        { "text", required_argument, NULL, 't' },
        { "help", no_argument, NULL, 'h' },
        { 0 }
};

int cmd_record(int argc, char **argv)
{
        const char *text = NULL;
        int option;

        opterr = 0;
        while ((option = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1) {
                switch (option) {
                case 't':
                        text = optarg;
                        break;
                case 'h':
                        fputs(usage, stdout);
                        fputs(help, stdout);
                        return 0;
                default:
                        fprintf(stderr, "stook record: '%s' is not understood\n%s",
                                argv[optind - 1], usage);
                        return STATUS_CANNOT;
                }
        }
        if (!text || optind != argc) {
                fputs(usage, stderr);
                return STATUS_CANNOT;
        }
        return trace_print(text, stdout, "stook record");
}
