/*
 * Purpose: a small HTTP server for what commands serve: GET and HEAD, with a token where one is
 * wanted. HTTP is libmicrohttpd's.
 *
 * A thread of libmicrohttpd's serves all connections, so that answers need no lock. Bounds: of
 * connections, of bytes of a request, of seconds that a connection is silent.
 */
#ifndef STOOK_CLI_SERVER_H
#define STOOK_CLI_SERVER_H

#include <stdbool.h>
#include <stddef.h>

struct MHD_Connection;
struct MHD_Response;

struct server_options {
        const char *command;            /* for what is said */
        const char *listen;             /* where, as the user is told */
        const char *token;              /* what each request must show; NULL: nothing */
        const char *open;               /* a path that needs no token; NULL: none */
        int         socket;             /* bound, and listens; closed at the end */
};

/*
 * Serves until SIGINT or SIGTERM. @answer: false: the connection is closed.
 * Return: the exit status.
 */
int server_run(const struct server_options *options,
               bool (*answer)(void *data, struct MHD_Connection *connection, const char *url),
               void *data);

/* Answers; each returns what the call that answers is to return. @response is released. */
bool server_answer(struct MHD_Connection *connection, unsigned status,
                   struct MHD_Response *response);
/* A line of static text. */
bool server_refuse(struct MHD_Connection *connection, unsigned status, const char *why);
/* A copy of @text, with status 200. */
bool server_send(struct MHD_Connection *connection, const char *type, const char *text,
                 size_t bytes);

#endif
