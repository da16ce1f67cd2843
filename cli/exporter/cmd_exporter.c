/*
 * Purpose: `stook exporter`: where it listens, and who may ask.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/exporter/exporter.h"
#include "cli/text/option_text.h"
#include "cli/text/plain_text.h"

#define LISTEN_DEFAULT "127.0.0.1:9748"
#define TOKEN_LEAST    16               /* characters; arbitrary */
#define TOKEN_MOST     256
#define WAITING_MOST   128              /* connections that were not accepted yet */

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

static int fail(const char *listen_at, const char *why)
{
        say(stderr, "stook exporter: --listen %s: %s\n", listen_at, why);
        return -1;
}

/* A socket that nobody listens at any more is taken. Return: a descriptor; -1, and said. */
static int listen_at_path(const char *path)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd, other;
        struct stat there;
        bool used;
        mode_t mask;

        if (strlen(path) >= sizeof to.sun_path)
                return fail(path, "the path is too long");
        strcpy(to.sun_path, path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        used = other >= 0 && (!connect(other, (struct sockaddr *)&to, sizeof to) ||
                              errno != ECONNREFUSED);
        if (other >= 0)
                close(other);
        if (!used && !lstat(path, &there) && S_ISSOCK(there.st_mode))
                unlink(path);
        mask = umask(0177);
        if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof to) || listen(fd, WAITING_MOST)) {
                fail(path, strerror(errno));
                if (fd >= 0)
                        close(fd);
                fd = -1;
        }
        umask(mask);
        return fd;
}

static bool is_loopback(const struct sockaddr *address)
{
        if (address->sa_family == AF_INET)
                return ntohl(((const struct sockaddr_in *)(const void *)address)
                                     ->sin_addr.s_addr) >> 24 == 127;
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)
                                             ->sin6_addr);
}

/* The address that is listened at, with the port that the system chose. */
static void tell_port(int fd, const char *host, bool six, char *said, size_t bytes)
{
        struct sockaddr_storage at = { 0 };
        socklen_t n = sizeof at;
        char port[16] = "0";

        getsockname(fd, (struct sockaddr *)&at, &n);
        getnameinfo((struct sockaddr *)&at, n, NULL, 0, port, sizeof port, NI_NUMERICSERV);
        snprintf(said, bytes, six ? "[%s]:%s" : "%s:%s", host, port);
}

/* Return: a descriptor; -1, and said. */
static int listen_at_port(const char *text, bool has_token, char *said, size_t bytes)
{
        const struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
                                        .ai_socktype = SOCK_STREAM };
        const char *colon = strrchr(text, ':');
        struct addrinfo *found;
        char host[64];
        int fd, yes = 1;
        bool six = text[0] == '[';

        if (!colon || colon - text >= (ptrdiff_t)sizeof host || (six && colon[-1] != ']'))
                return fail(text, "takes ADDRESS:PORT, [ADDRESS]:PORT or /PATH");
        snprintf(host, sizeof host, "%.*s", (int)(colon - text) - 2 * six, text + six);
        if (!colon[1] || getaddrinfo(host, colon + 1, &hints, &found))
                return fail(text, "is no address and port in numbers");
        if (!has_token && !is_loopback(found->ai_addr)) {
                freeaddrinfo(found);
                return fail(text, "beyond loopback --token-file is needed");
        }
        fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0)
                setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, WAITING_MOST)) {
                fail(text, strerror(errno));
                if (fd >= 0)
                        close(fd);
                fd = -1;
        } else {
                tell_port(fd, host, six, said, bytes);
        }
        freeaddrinfo(found);
        return fd;
}

/* Return: -1, go on; else the exit status. */
static int parse(int argc, char **argv, struct exporter_options *o, const char **token_file)
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
        struct exporter_options o = { .listen = LISTEN_DEFAULT };
        const char *token_file = NULL;
        char token[TOKEN_MOST + 2], said[96];
        int status = parse(argc, argv, &o, &token_file);

        if (status >= 0)
                return status;
        if (token_file && !read_token(token_file, token))
                return STATUS_CANNOT;
        if (token_file)
                o.token = token;
        if (o.listen[0] == '/') {
                o.socket = listen_at_path(o.listen);
        } else {
                o.socket = listen_at_port(o.listen, o.token, said, sizeof said);
                o.listen = said;
        }
        if (o.socket < 0)
                return STATUS_CANNOT;
        status = exporter_serve(&o);
        if (o.listen[0] == '/')
                unlink(o.listen);
        return status;
}
