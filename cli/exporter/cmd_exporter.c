/*
 * Purpose: `stook exporter`: where it listens, and who may ask.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/exporter/exporter.h"
#include "cli/server/listen.h"
#include "cli/text/option_text.h"
#include "cli/text/plain_text.h"

#define LISTEN_DEFAULT "127.0.0.1:9748"
#define TOKEN_LEAST    16               /* characters; arbitrary */
#define TOKEN_MOST     256

static const char usage[] =
        "usage: stook exporter [--listen ADDRESS:PORT|/PATH] [--token-file FILE]\n";
static const char help[] =
        "\n"
        "Serves, by HTTP, metrics of all processes on Stook that this user may look into, and\n"
        "their heap profiles: /metrics for Prometheus, as text or as OpenMetrics, and\n"
        "/debug/pprof/heap?pid=N. The processes are only read. It ends by SIGINT or SIGTERM.\n"
        "\n"
        "options:\n"
        "  --listen ADDRESS:PORT  where (127.0.0.1:9748); port 0: any, which is said\n"
        "  --listen /PATH         a Unix socket, for this user alone\n"
        "  --token-file FILE      each request must have `Authorization: Bearer TOKEN`; FILE has\n"
        "                         the token, of 16 to 256 characters. Needed beyond loopback\n"
        "  --help                 show this\n";

enum { OPTION_LISTEN = OPTION_FIRST, OPTION_TOKEN_FILE, OPTION_HELP };

static const struct option long_options[] = {
        { "listen", required_argument, NULL, OPTION_LISTEN },
        { "token-file", required_argument, NULL, OPTION_TOKEN_FILE },
        { "help", no_argument, NULL, OPTION_HELP },
        { 0 }
};

/* A line of printable characters. False, and said: it is none. */
static bool read_token(const char *path, char token[TOKEN_MOST + 2])
{
        FILE *f = fopen(path, "re");
        bool good = f && fgets(token, TOKEN_MOST + 2, f);
        size_t n = good ? strcspn(token, "\r\n") : 0;

        if (!f)
                say(stderr, "stook exporter: --token-file '%s': %s\n", path, strerror(errno));
        else
                fclose(f);
        if (!f)
                return false;
        token[n] = '\0';
        for (size_t i = 0; i < n; i++)
                good &= token[i] > ' ' && token[i] < 0x7f;
        if (good && n >= TOKEN_LEAST && n <= TOKEN_MOST)
                return true;
        say(stderr, "stook exporter: --token-file '%s' must begin with a line of %d to %d "
            "printable characters without blanks\n", path, TOKEN_LEAST, TOKEN_MOST);
        return false;
}

/* Return: -1, go on; else the exit status. */
static int parse(int argc, char **argv, struct server_options *o, const char **token_file)
{
        int c;

        opterr = 0;
        while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1)
                switch (c) {
                case OPTION_LISTEN:
                        o->listen = optarg;
                        break;
                case OPTION_TOKEN_FILE:
                        *token_file = optarg;
                        break;
                case OPTION_HELP:
                case 'h':
                        return option_help(usage, help);
                default:
                        return option_refuse("exporter", c, argv, usage);
                }
        if (optind != argc)
                return option_misused("exporter", usage, "too much: '%s'", argv[optind]);
        return -1;
}

int cmd_exporter(int argc, char **argv)
{
        struct server_options o = { .command = "exporter", .listen = LISTEN_DEFAULT };
        const char *token_file = NULL;
        char token[TOKEN_MOST + 2], said[96];
        int status = parse(argc, argv, &o, &token_file);
        struct listen_request request;

        if (status >= 0)
                return status;
        if (token_file && !read_token(token_file, token))
                return STATUS_CANNOT;
        if (token_file)
                o.token = token;
        request = (struct listen_request){
                "exporter", "--listen", o.listen, "takes ADDRESS:PORT, [ADDRESS]:PORT or /PATH",
                token_file ? NULL : "beyond loopback --token-file is needed",
        };
        if (o.listen[0] == '/') {
                o.socket = listen_at_path(&request);
        } else {
                o.socket = listen_at_port(&request, said, sizeof said);
                o.listen = said;
        }
        if (o.socket < 0)
                return STATUS_CANNOT;
        status = exporter_serve(&o);
        if (o.listen[0] == '/')
                unlink(o.listen);
        return status;
}
