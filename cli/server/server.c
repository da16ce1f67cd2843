/*
 * Purpose: see server.h.
 */
#include <microhttpd.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include "cli/commands.h"
#include "cli/server/server.h"
#include "cli/text/plain_text.h"

#define CONNECTIONS_MOST 2000
#define FILES_ELSE       64             /* descriptors that are no connections */
#define REQUEST_BYTES    8192           /* of a connection, for what it asks */
#define SILENT_S         10

struct server {
        const struct server_options *options;
        bool (*answer)(void *data, struct MHD_Connection *connection, const char *url);
        void  *data;
};

/* ---- answers ---- */

bool server_answer(struct MHD_Connection *connection, unsigned status,
                   struct MHD_Response *response)
{
        enum MHD_Result queued;

        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        queued = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
        return queued == MHD_YES;
}

bool server_refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
        struct MHD_Response *response = MHD_create_response_from_buffer(
                strlen(why), (void *)(uintptr_t)why, MHD_RESPMEM_PERSISTENT);

        if (!response)
                return false;
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
        if (status == MHD_HTTP_UNAUTHORIZED)
                MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
        if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
                MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
        return server_answer(connection, status, response);
}

bool server_send(struct MHD_Connection *connection, const char *type, const char *text,
                 size_t bytes)
{
        struct MHD_Response *response = MHD_create_response_from_buffer(
                bytes, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

        if (!response)
                return server_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        return server_answer(connection, MHD_HTTP_OK, response);
}

/* ---- requests ---- */

/* In a time that does not tell how much of it is right. */
static bool is_allowed(const struct server *s, struct MHD_Connection *connection)
{
        static const char bearer[] = "Bearer ";
        const char *token = s->options->token, *shown;
        size_t bytes = token ? strlen(token) : 0;
        unsigned char differs = 0;

        if (!token)
                return true;
        shown = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                            MHD_HTTP_HEADER_AUTHORIZATION);
        if (!shown || strncmp(shown, bearer, sizeof bearer - 1))
                return false;
        shown += sizeof bearer - 1;
        if (strlen(shown) != bytes)
                return false;
        for (size_t i = 0; i < bytes; i++)
                differs |= (unsigned char)(shown[i] ^ token[i]);
        return !differs;
}

static enum MHD_Result handle(void *data, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_bytes, void **state)
{
        const struct server *s = data;
        const char *open = s->options->open;
        bool fine;

        (void)version, (void)upload, (void)state;
        if (!(open && !strcmp(url, open)) && !is_allowed(s, connection))
                fine = server_refuse(connection, MHD_HTTP_UNAUTHORIZED, "a token is needed\n");
        else if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
                fine = server_refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET alone\n");
        else
                fine = !*upload_bytes && s->answer(s->data, connection, url);
        return fine ? MHD_YES : MHD_NO;
}

/* As many connections as there may be descriptors for. */
static unsigned connections_most(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit))
                return 64;
        if (limit.rlim_cur < CONNECTIONS_MOST + FILES_ELSE) {
                limit.rlim_cur = limit.rlim_max < CONNECTIONS_MOST + FILES_ELSE
                                         ? limit.rlim_max : CONNECTIONS_MOST + FILES_ELSE;
                setrlimit(RLIMIT_NOFILE, &limit);
        }
        return limit.rlim_cur > 2 * FILES_ELSE ? (unsigned)limit.rlim_cur - FILES_ELSE
                                               : FILES_ELSE / 2;
}

int server_run(const struct server_options *options,
               bool (*answer)(void *data, struct MHD_Connection *connection, const char *url),
               void *data)
{
        struct server s = { options, answer, data };
        struct MHD_Daemon *daemon;
        sigset_t ends;
        int number;

        /* Before the thread is made, which has the mask, too. */
        sigemptyset(&ends);
        sigaddset(&ends, SIGINT);
        sigaddset(&ends, SIGTERM);
        sigprocmask(SIG_BLOCK, &ends, NULL);
        signal(SIGPIPE, SIG_IGN);
        daemon = MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD, 0, NULL, NULL, handle, &s,
                                  MHD_OPTION_LISTEN_SOCKET, options->socket,
                                  MHD_OPTION_CONNECTION_LIMIT, connections_most(),
                                  MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENT_S,
                                  MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
                                  MHD_OPTION_END);
        if (!daemon) {
                say(stderr, "stook %s: %s: the server cannot be started\n", options->command,
                    options->listen);
                return STATUS_CANNOT;
        }
        say(stderr, "stook %s: listens at %s\n", options->command, options->listen);
        sigwait(&ends, &number);
        MHD_stop_daemon(daemon);
        return 0;
}
