/*
 * Purpose: see exporter.h.
 */
#include "cli/exporter/exporter.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/exporter/fleet.h"
#include "cli/info/info.h"
#include "cli/memory/target.h"
#include "cli/profile/pprof_write.h"
#include "cli/profile/profile_live.h"

#define KEPT_S           1              /* an answer with metrics */
#define PROFILES_MOST    8              /* that are not yet sent */

static const char type_prometheus[] = "text/plain; version=0.0.4; charset=utf-8";
static const char type_openmetrics[] =
        "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct exporter {
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

static bool answer_metrics(struct exporter *e, struct MHD_Connection *connection)
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
                return server_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
        return MHD_queue_response(connection, MHD_HTTP_OK, e->metrics[openmetrics]) == MHD_YES;
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

static bool send_profile(struct exporter *e, struct MHD_Connection *connection,
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
                return server_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
        }
        __atomic_fetch_add(&e->profiles, 1, __ATOMIC_RELAXED);
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                "application/octet-stream");
        return server_answer(connection, MHD_HTTP_OK, response);
}

static bool answer_profile(struct exporter *e, struct MHD_Connection *connection)
{
        const char *pid = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "pid");
        struct target t;
        char *bytes = NULL;
        size_t size = 0;
        int error;

        if (!pid || !*pid || strlen(pid) > 9 || pid[strspn(pid, "0123456789")])
                return server_refuse(connection, MHD_HTTP_BAD_REQUEST, "?pid=N is needed\n");
        if (__atomic_load_n(&e->profiles, __ATOMIC_RELAXED) >= PROFILES_MOST)
                return server_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "too many profiles at once\n");
        if (target_open(&t, "exporter", &(struct target_request){ .what = pid }))
                return server_refuse(connection, MHD_HTTP_NOT_FOUND,
                              "no process on Stook that this exporter may look into\n");
        error = write_profile(&t, &bytes, &size);
        target_close(&t);
        if (!error)
                return send_profile(e, connection, bytes, size);
        free(bytes);
        return error == -ENOTSUP
                       ? server_refuse(connection, MHD_HTTP_NOT_FOUND,
                                "the process takes no samples: STOOK_SAMPLE=on\n")
                       : server_refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
                                "the profile cannot be read\n");
}

/* ---- requests ---- */

static bool answer(void *data, struct MHD_Connection *connection, const char *url)
{
        struct exporter *e = data;

        if (!strcmp(url, "/metrics"))
                return answer_metrics(e, connection);
        if (!strcmp(url, "/debug/pprof/heap"))
                return answer_profile(e, connection);
        if (!strcmp(url, "/"))
                return server_refuse(connection, MHD_HTTP_OK,
                                     "stook exporter: /metrics, /debug/pprof/heap?pid=N\n");
        return server_refuse(connection, MHD_HTTP_NOT_FOUND,
                             "/metrics, /debug/pprof/heap?pid=N\n");
}

int exporter_serve(const struct server_options *options)
{
        struct exporter e = { .scrapes = 0 };
        int status = server_run(options, answer, &e);

        for (unsigned i = 0; i < 2; i++)
                if (e.metrics[i])
                        MHD_destroy_response(e.metrics[i]);
        return status;
}
