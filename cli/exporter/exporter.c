/*
 * Purpose: see exporter.h. HTTP is libmicrohttpd's.
 */
#include "cli/exporter/exporter.h"

#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/exporter/fleet.h"
#include "cli/info/info.h"
#include "cli/memory/target.h"
#include "cli/profile/pprof_write.h"
#include "cli/profile/profile_live.h"
#include "cli/text/plain_text.h"

#define CONNECTIONS_MOST 2000
#define FILES_ELSE       64             /* descriptors that are no connections */
#define REQUEST_BYTES    8192           /* of a connection, for what it asks */
#define SILENT_S         10
#define KEPT_S           1              /* an answer with metrics */
#define PROFILES_MOST    8              /* that are not yet sent */

static const char type_prometheus[] = "text/plain; version=0.0.4; charset=utf-8";
static const char type_openmetrics[] =
        "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct exporter {
        const struct exporter_options *options;
        struct MHD_Response *metrics[2];        /* the last answers; by whether OpenMetrics */
        double   made_at[2];
        unsigned profiles;              /* atomic: libmicrohttpd frees answers as it likes */
        uint64_t scrapes;
};

static double seconds(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- answers ---- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status,
                              struct MHD_Response *response)
{
        enum MHD_Result queued = MHD_queue_response(connection, status, response);

        MHD_destroy_response(response);
        return queued;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
        struct MHD_Response *response = MHD_create_response_from_buffer(
                strlen(why), (void *)(uintptr_t)why, MHD_RESPMEM_PERSISTENT);

        if (!response)
                return MHD_NO;
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
        if (status == MHD_HTTP_UNAUTHORIZED)
                MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
        if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
                MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
        return answer(connection, status, response);
}

/* ---- metrics ---- */

static void write_gauge(FILE *out, const char *name, const char *help, double value)
{
        fprintf(out, "# HELP stook_exporter_%s %s\n# TYPE stook_exporter_%s gauge\n"
                "stook_exporter_%s %.6g\n", name, help, name, name, value);
}

static void write_own(const struct exporter *e, const struct fleet *fleet, double took,
                      bool openmetrics, FILE *out)
{
        static const char looks[] = "stook_exporter_looks";

        write_gauge(out, "processes", "Processes on Stook that were looked at.",
                    (double)fleet->count);
        write_gauge(out, "look_seconds", "Time that the look at all processes took.", took);
        fprintf(out, "# HELP stook_exporter_refused Processes that were not looked at, by why.\n"
                "# TYPE stook_exporter_refused gauge\n");
        for (unsigned i = 0; i < FLEET_REASONS; i++)
                fprintf(out, "stook_exporter_refused{reason=\"%s\"} %u\n", fleet_reason_key(i),
                        fleet->refused[i]);
        fprintf(out, "# HELP %s%s Looks at all processes.\n# TYPE %s%s counter\n"
                "%s_total %llu\n", looks, openmetrics ? "" : "_total", looks,
                openmetrics ? "" : "_total", looks, (unsigned long long)e->scrapes);
}

static void write_fleet(const struct fleet *fleet, bool openmetrics, FILE *out)
{
        const struct info_view all = { 0 };
        const struct heap **heaps;
        size_t n = 0;

        for (size_t i = 0; i < fleet->count; i++)
                n += fleet->processes[i].count;
        heaps = calloc(n + 1, sizeof *heaps);
        n = 0;
        for (size_t i = 0; i < fleet->count && heaps; i++)
                for (size_t k = 0; k < fleet->processes[i].count; k++)
                        heaps[n++] = &fleet->processes[i].heaps[k];
        if (heaps)
                info_prometheus(heaps, n, &all, openmetrics, out);
        free(heaps);
}

/* NULL: no memory. */
static struct MHD_Response *make_metrics(struct exporter *e, bool openmetrics)
{
        double began = seconds();
        struct MHD_Response *response = NULL;
        struct fleet fleet;
        char *text = NULL;
        size_t bytes;
        FILE *out;

        e->scrapes++;
        fleet_look(&fleet);
        out = open_memstream(&text, &bytes);
        if (out) {
                write_fleet(&fleet, openmetrics, out);
                write_own(e, &fleet, seconds() - began, openmetrics, out);
                if (openmetrics)
                        fputs("# EOF\n", out);
                if (!fclose(out))
                        response = MHD_create_response_from_buffer(bytes, text,
                                                                   MHD_RESPMEM_MUST_FREE);
                if (!response)
                        free(text);
        }
        fleet_release(&fleet);
        if (response)
                MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                        openmetrics ? type_openmetrics : type_prometheus);
        return response;
}

static enum MHD_Result answer_metrics(struct exporter *e, struct MHD_Connection *connection)
{
        const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                         MHD_HTTP_HEADER_ACCEPT);
        bool openmetrics = accept && strstr(accept, "application/openmetrics-text");
        double now = seconds();

        if (!e->metrics[openmetrics] || now - e->made_at[openmetrics] > KEPT_S) {
                if (e->metrics[openmetrics])
                        MHD_destroy_response(e->metrics[openmetrics]);
                e->metrics[openmetrics] = make_metrics(e, openmetrics);
                e->made_at[openmetrics] = now;
        }
        if (!e->metrics[openmetrics])
                return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
        return MHD_queue_response(connection, MHD_HTTP_OK, e->metrics[openmetrics]);
}

/* ---- profiles ---- */

struct profile_text {
        struct exporter *exporter;
        char *bytes;
};

static void profile_sent(void *data)
{
        struct profile_text *text = data;

        __atomic_fetch_sub(&text->exporter->profiles, 1, __ATOMIC_RELAXED);
        free(text->bytes);
        free(text);
}

/* With names. Return: 0; -errno. */
static int write_profile(struct target *t, char **bytes, size_t *size)
{
        struct library *library = target_next(t, NULL);
        struct profile_names names;
        struct pprof p = { 0 };
        FILE *out = NULL;
        int error = -ENOTSUP;

        for (; library && error == -ENOTSUP; library = target_next(t, library)) {
                pprof_release(&p);
                error = profile_live(&p, &t->memory, library);
        }
        if (!error)
                error = profile_names_open(&names, &p) ? 0 : -ENOMEM;
        if (!error) {
                out = open_memstream(bytes, size);
                error = out ? pprof_write(&names, 0, out) : -ENOMEM;
                if (out && fclose(out))
                        error = -ENOMEM;
                profile_names_close(&names);
        }
        pprof_release(&p);
        return error;
}

static enum MHD_Result send_profile(struct exporter *e, struct MHD_Connection *connection,
                                    char *bytes, size_t size)
{
        struct profile_text *text = malloc(sizeof *text);
        struct MHD_Response *response = NULL;

        if (text) {
                *text = (struct profile_text){ e, bytes };
                response = MHD_create_response_from_buffer_with_free_callback_cls(
                        size, bytes, profile_sent, text);
        }
        if (!response) {
                free(text);
                free(bytes);
                return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
        }
        __atomic_fetch_add(&e->profiles, 1, __ATOMIC_RELAXED);
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                "application/octet-stream");
        return answer(connection, MHD_HTTP_OK, response);
}

static enum MHD_Result answer_profile(struct exporter *e, struct MHD_Connection *connection)
{
        const char *pid = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "pid");
        struct target t;
        char *bytes = NULL;
        size_t size = 0;
        int error;

        if (!pid || !*pid || strlen(pid) > 9 || pid[strspn(pid, "0123456789")])
                return refuse(connection, MHD_HTTP_BAD_REQUEST, "?pid=N is needed\n");
        if (__atomic_load_n(&e->profiles, __ATOMIC_RELAXED) >= PROFILES_MOST)
                return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "too many profiles at once\n");
        if (target_open(&t, "exporter", &(struct target_request){ .what = pid }))
                return refuse(connection, MHD_HTTP_NOT_FOUND,
                              "no process on Stook that this exporter may look into\n");
        error = write_profile(&t, &bytes, &size);
        target_close(&t);
        if (!error)
                return send_profile(e, connection, bytes, size);
        free(bytes);
        return error == -ENOTSUP
                       ? refuse(connection, MHD_HTTP_NOT_FOUND,
                                "the process takes no samples: STOOK_SAMPLE=on\n")
                       : refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
                                "the profile cannot be read\n");
}

/* ---- requests ---- */

/* In a time that does not tell how much of it is right. */
static bool is_allowed(const struct exporter *e, struct MHD_Connection *connection)
{
        static const char bearer[] = "Bearer ";
        const char *token = e->options->token, *shown;
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
        struct exporter *e = data;

        (void)version, (void)upload, (void)state;
        if (!is_allowed(e, connection))
                return refuse(connection, MHD_HTTP_UNAUTHORIZED, "a token is needed\n");
        if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
                return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET alone\n");
        if (*upload_bytes)
                return MHD_NO;
        if (!strcmp(url, "/metrics"))
                return answer_metrics(e, connection);
        if (!strcmp(url, "/debug/pprof/heap"))
                return answer_profile(e, connection);
        if (!strcmp(url, "/"))
                return refuse(connection, MHD_HTTP_OK,
                              "stook exporter: /metrics, /debug/pprof/heap?pid=N\n");
        return refuse(connection, MHD_HTTP_NOT_FOUND, "/metrics, /debug/pprof/heap?pid=N\n");
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

int exporter_serve(const struct exporter_options *options)
{
        struct exporter e = { .options = options };
        struct MHD_Daemon *daemon;
        sigset_t ends;
        int number;

        /* Before the thread is made, which has the mask, too. */
        sigemptyset(&ends);
        sigaddset(&ends, SIGINT);
        sigaddset(&ends, SIGTERM);
        sigprocmask(SIG_BLOCK, &ends, NULL);
        signal(SIGPIPE, SIG_IGN);
        daemon = MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD, 0, NULL, NULL, handle, &e,
                                  MHD_OPTION_LISTEN_SOCKET, options->socket,
                                  MHD_OPTION_CONNECTION_LIMIT, connections_most(),
                                  MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENT_S,
                                  MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
                                  MHD_OPTION_END);
        if (!daemon) {
                say(stderr, "stook exporter: %s: the server cannot be started\n", options->listen);
                return STATUS_CANNOT;
        }
        say(stderr, "stook exporter: listens at %s\n", options->listen);
        sigwait(&ends, &number);
        MHD_stop_daemon(daemon);
        for (unsigned i = 0; i < 2; i++)
                if (e.metrics[i])
                        MHD_destroy_response(e.metrics[i]);
        return 0;
}
