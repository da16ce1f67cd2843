/*
 * Purpose: the socket that a command listens at, where the user wants it. Whatever is wrong is said
 * in a line.
 */
#ifndef STOOK_CLI_LISTEN_H
#define STOOK_CLI_LISTEN_H

#include <stddef.h>

struct listen_request {
        const char *command, *option;   /* for what is said */
        const char *at;                 /* ADDRESS:PORT, [ADDRESS]:PORT; or a path */
        const char *forms;              /* what is said of another form */
        const char *beyond;             /* what is said beyond loopback; NULL: it may be there */
};

/* A socket that nobody listens at any more is taken. Return: a descriptor; -1, and said. */
int listen_at_path(const struct listen_request *request);
/* @said, of @bytes: the address, with the port that the system chose. Return: likewise. */
int listen_at_port(const struct listen_request *request, char *said, size_t bytes);

#endif
