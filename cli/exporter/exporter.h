/*
 * Purpose: what `stook exporter` serves: metrics of all processes on Stook of this machine, and
 * heap profiles.
 *
 * A thread of libmicrohttpd's serves all connections, so that nothing here is locked. Bounds: of
 * connections, of bytes of a request, of seconds that a connection is silent, of profiles that are
 * not yet sent. Whoever asks for metrics within a second gets the same answer, so that many who ask
 * cost one look.
 */
#ifndef STOOK_CLI_EXPORTER_H
#define STOOK_CLI_EXPORTER_H

#include <stdbool.h>

struct exporter_options {
        const char *listen;             /* ADDRESS:PORT, [ADDRESS]:PORT, or the path of a socket */
        const char *token;              /* what each request must show; NULL: nothing */
        int         socket;             /* bound, and listens */
};

/* Serves until SIGINT or SIGTERM. Return: the exit status. */
int exporter_serve(const struct exporter_options *options);

#endif
