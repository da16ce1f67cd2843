/*
 * Purpose: `stook top`: the heap of a running process, live in the terminal.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "cli/commands.h"
#include "cli/text/option_text.h"
#include "cli/text/plain_text.h"
#include "cli/top/top.h"

#define WEB_DEFAULT "127.0.0.1:0"

static const char usage[] =
        "usage: stook top [--every SECONDS] [--sort COLUMN] [--name PATTERN] [--library NAME]\n"
        "                 [--web[=ADDRESS:PORT]] PID\n";
static const char help[] =
        "\n"
        "Watches the caches of a running process of the same user. The process is only read.\n"
        "Keys: h shows them all; q ends it. With --web a page in a browser shows them.\n"
        "\n"
        "options:\n"
        "  --every SECONDS  between two looks (1)\n"
        "  --sort COLUMN    by the heading of a column, such as LIVE or ALLOC/s\n"
        "  --name PATTERN   only caches whose name has it in it, or matches it\n"
        "  --library NAME   the copy of the library in a file with NAME in its path\n"
        "  --web[=ADDRESS:PORT]\n"
        "                   serve a page at this address of loopback (127.0.0.1, any port), until\n"
        "                   SIGINT or SIGTERM. It is said with a token, without which nothing of\n"
        "                   the process is shown. It has all caches, with every figure\n"
        "  --help           show this\n";

enum { OPTION_EVERY = OPTION_FIRST, OPTION_SORT, OPTION_NAME, OPTION_LIBRARY, OPTION_WEB,
       OPTION_HELP };

static const struct option long_options[] = {
        { "every", required_argument, NULL, OPTION_EVERY },
        { "sort", required_argument, NULL, OPTION_SORT },
        { "name", required_argument, NULL, OPTION_NAME },
        { "library", required_argument, NULL, OPTION_LIBRARY },
        { "web", optional_argument, NULL, OPTION_WEB },
        { "help", no_argument, NULL, OPTION_HELP },
        { 0 }
};

struct options {
        struct target_request request;
        const char *web;                /* where a page is served; NULL: it is not */
        double      every;
};

static bool take_sort(const char *heading, struct top_choice *choice)
{
        unsigned columns;
        const char *const *titles = top_titles(TOP_CACHES, false, &columns);

        for (unsigned i = 0; i < columns; i++)
                if (!strcasecmp(titles[i], heading)) {
                        choice->sort[TOP_CACHES] = i;
                        return true;
                }
        say(stderr, "stook top: no column '%s'; there is:", heading);
        for (unsigned i = 0; i < columns; i++)
                say(stderr, " %s", titles[i]);
        fputc('\n', stderr);
        return false;
}

static int parse(int argc, char **argv, struct options *o, struct top_choice *choice)
{
        int c;

        opterr = 0;
        while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1)
                switch (c) {
                case OPTION_EVERY:
                        if (!option_seconds("top", "--every", optarg, &o->every))
                                return STATUS_CANNOT;
                        break;
                case OPTION_SORT:
                        if (!take_sort(optarg, choice))
                                return STATUS_CANNOT;
                        break;
                case OPTION_NAME:
                        snprintf(choice->name, sizeof choice->name, "%s", optarg);
                        break;
                case OPTION_LIBRARY:
                        o->request.library = optarg;
                        break;
                case OPTION_WEB:
                        o->web = optarg ? optarg : WEB_DEFAULT;
                        break;
                case OPTION_HELP:
                case 'h':
                        return option_help(usage, help);
                default:
                        return option_refuse("top", c, argv, usage);
                }
        o->request.what = option_process("top", argc, argv, usage);
        return o->request.what ? -1 : STATUS_CANNOT;
}

int cmd_top(int argc, char **argv)
{
        struct options o = { .every = 1 };
        /* Bytes of slabs, objects, slabs, bytes used, slabs. */
        struct top_choice choice = { .sort = { 6, 1, 1, 3, 1 } };
        struct top_state state = { 0 };
        struct target t;
        int status = parse(argc, argv, &o, &choice);

        if (status >= 0)
                return status;
        status = target_open(&t, "top", &o.request);
        if (status)
                return status;
        if (t.is_core) {
                say(stderr, "stook top: %s is a core; `stook info` shows it\n", o.request.what);
                status = STATUS_CANNOT;
        } else if (o.web) {
                status = top_web(&t, o.every, o.web);
        } else {
                state.target = &t;
                state.library = target_next(&t, NULL);
                status = top_run(&state, &choice, o.every);
                top_free(&state);
        }
        target_close(&t);
        return status;
}
