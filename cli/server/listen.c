/*
 * Purpose: see listen.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "cli/server/listen.h"
#include "cli/text/plain_text.h"

#define WAITING_MOST 128                /* connections that were not accepted yet */

static int fail(const struct listen_request *r, const char *why)
{
        say(stderr, "stook %s: %s %s: %s\n", r->command, r->option, r->at, why);
        return -1;
}

int listen_at_path(const struct listen_request *r)
{
        const char *path = r->at;
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        int fd, other;
        struct stat there;
        bool used;
        mode_t mask;

        if (strlen(path) >= sizeof to.sun_path)
                return fail(r, "the path is too long");
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
                fail(r, strerror(errno));
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

int listen_at_port(const struct listen_request *r, char *said, size_t bytes)
{
        const struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
                                        .ai_socktype = SOCK_STREAM };
        const char *text = r->at, *colon = strrchr(text, ':');
        struct addrinfo *found;
        char host[64];
        int fd, yes = 1;
        bool six = text[0] == '[';

        if (!colon || colon - text >= (ptrdiff_t)sizeof host || (six && colon[-1] != ']'))
                return fail(r, r->forms);
        snprintf(host, sizeof host, "%.*s", (int)(colon - text) - 2 * six, text + six);
        if (!colon[1] || getaddrinfo(host, colon + 1, &hints, &found))
                return fail(r, "is no address and port in numbers");
        if (r->beyond && !is_loopback(found->ai_addr)) {
                freeaddrinfo(found);
                return fail(r, r->beyond);
        }
        fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0)
                setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, WAITING_MOST)) {
                fail(r, strerror(errno));
                if (fd >= 0)
                        close(fd);
                fd = -1;
        } else {
                tell_port(fd, host, six, said, bytes);
        }
        freeaddrinfo(found);
        return fd;
}
