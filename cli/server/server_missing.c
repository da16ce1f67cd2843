/*
 * Purpose: what serves, of a build without libmicrohttpd; see server.h and exporter.h.
 */
#include <stdio.h>
#include "cli/commands.h"
#include "cli/exporter/exporter.h"
#include "cli/text/plain_text.h"

int server_run(const struct server_options *options,
               bool (*answer)(void *data, struct MHD_Connection *connection, const char *url),
               void *data)
{
        (void)answer, (void)data;
        say(stderr, "stook %s: this stook was built without libmicrohttpd (libmicrohttpd-dev); "
            "`stook info` shows the same\n", options->command);
        return STATUS_CANNOT;
}

bool server_refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
        (void)connection, (void)status, (void)why;
        return false;
}

bool server_send(struct MHD_Connection *connection, const char *type, const char *text,
                 size_t bytes)
{
        (void)connection, (void)type, (void)text, (void)bytes;
        return false;
}

int exporter_serve(const struct server_options *options)
{
        return server_run(options, NULL, NULL);
}
