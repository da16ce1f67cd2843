/*
 * Purpose: `stook report`: a page of what there is: a process or a core with its heap and its
 * profile, a heap profile, a trace. It collects nothing of its own.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "cli/commands.h"
#include "cli/files/file_kind.h"
#include "cli/info/info.h"
#include "cli/page/page.h"
#include "cli/profile/profile_json.h"
#include "cli/profile/profile_live.h"
#include "cli/program/on_drop_in.h"
#include "cli/replay/replay_print.h"
#include "cli/text/plain_text.h"
#include "cli/trace/trace_profile.h"

#define STATUS_GONE 1                   /* there is nothing to look at */

struct options {
        struct target_request request;
        const char *out;                /* NULL: standard output */
};

static const char usage[] =
        "usage: stook report [-o FILE] [--library NAME] [--exe FILE] PID|CORE|PROFILE|TRACE\n";
static const char help[] =
        "\n"
        "Writes a page of HTML that needs nothing from elsewhere: of a running process of the\n"
        "same user, or of one that left a core, what has its memory, its slabs, its sheaves by\n"
        "CPU, its groups and their limits, and its heap profile where it has one; of a heap\n"
        "profile a flame graph; of a trace of `stook record` memory over time, as a replay has\n"
        "it, and with stacks a flame graph, too.\n"
        "Exit status: 0; 1: there is nothing to look at; 2: stook cannot do what was asked.\n"
        "\n"
        "options:\n"
        "  -o FILE         the page (standard output)\n"
        TARGET_HELP_TEXT;

static const struct option long_options[] = { TARGET_OPTIONS };

static bool take(int option, void *data)
{
        (void)option;
        ((struct options *)data)->out = optarg;
        return option_file("report", "-o", optarg);
}

static const struct target_command command = { "report", usage, help, long_options, take,
                                               ":ho:" };

/* ---- parts ---- */

/* Return: 0; -ENOMEM. */
static int add_profile(struct page *page, struct pprof *p)
{
        struct profile_names names;
        struct profile_view view = { .names = &names, .type = profile_type_default(p) };
        int error = profile_names_open(&names, p) ? 0 : -ENOMEM;

        profile_sort(p, view.type);
        if (!error)
                error = profile_json(&view, &page->json);
        if (names.no_memory)
                error = -ENOMEM;
        if (names.changed)
                say(stderr, "stook report: %s is another file than the program had: its addresses "
                    "have no names\n", names.changed);
        profile_names_close(&names);
        return error;
}

/* The first copy that has one; a process may have none. Return: 0; -ENOMEM. */
static int add_live_profile(struct page *page, struct target *t)
{
        int error = -ENOTSUP;

        for (struct library *l = NULL; error && (l = target_next(t, l));) {
                struct pprof p = { 0 };

                error = profile_live(&p, &t->memory, l);
                if (!error)
                        error = add_profile(page, &p);
                pprof_release(&p);
        }
        return error == -ENOMEM ? error : 0;
}

/* ---- pages; each returns the exit status, and has said why it is not 0 ---- */

static int cannot(const char *what, const char *why)
{
        say(stderr, "stook report: %s: %s\n", what, why);
        return STATUS_CANNOT;
}

static int report_heap(struct page *page, const struct target_request *request)
{
        struct target t;
        char name[512], why[160];
        int error, status = target_open(&t, "report", request);

        if (status)
                return status;
        if (!page_begin(page, target_name(&t, target_next(&t, NULL), name, sizeof name))) {
                status = cannot(request->what, "no memory");
        } else {
                error = info_json_all(&t, &page->json, why);
                if (error) {
                        cannot(request->what, why);
                        status = STATUS_GONE;
                } else if (add_live_profile(page, &t)) {
                        status = cannot(request->what, "no memory");
                }
                if (status)
                        page_drop(page);
        }
        target_close(&t);
        return status;
}

/* A trace as a replay has it, and its callers if it has stacks. */
static bool add_trace(struct page *page, const char *path, char *message, size_t bytes)
{
        struct pprof p = { 0 };
        char ignored[PATH_MAX + 200];
        bool fine = replay_json_usual(path, &page->json, message, bytes) &&
                    (!trace_profile(&p, path, ignored, sizeof ignored) || !add_profile(page, &p));

        pprof_release(&p);
        return fine;
}

static int report_file(struct page *page, const char *path, bool is_trace)
{
        char message[PATH_MAX + 512] = "no memory";
        struct pprof p = { 0 };
        bool fine = is_trace || pprof_read(&p, path, message, sizeof message);

        if (fine) {
                fine = page_begin(page, name_of_program(path));
                if (fine) {
                        fine = is_trace ? add_trace(page, path, message, sizeof message)
                                        : !add_profile(page, &p);
                        if (!fine)
                                page_drop(page);
                }
        }
        pprof_release(&p);
        if (fine)
                return 0;
        say(stderr, "stook report: %s\n", message);
        return STATUS_CANNOT;
}

static int write_page(struct page *page, const char *path)
{
        FILE *out = path && strcmp(path, "-") ? fopen(path, "we") : stdout;
        int error;

        if (!out) {
                page_drop(page);
                return cannot(path, strerror(errno));
        }
        error = page_end(page, out);
        if (out == stdout)
                return error ? cannot("the page", "no memory") : option_printed("report", 0);
        if (!error && (fflush(out) || ferror(out)))
                error = -errno;
        if (fclose(out) && !error)
                error = -errno;
        return error ? cannot(path, strerror(-error)) : 0;
}

int cmd_report(int argc, char **argv)
{
        struct options o = { 0 };
        struct page page;
        struct stat st;
        const char *kind;
        int status = target_options(&command, argc, argv, &o.request, &o);

        if (status >= 0)
                return status;
        if (optind + 1 != argc)
                return option_misused("report", usage, "one process or file is wanted");
        o.request.what = argv[optind];
        kind = file_kind_at(o.request.what);
        if (kind == file_kind_core || stat(o.request.what, &st))
                status = report_heap(&page, &o.request);
        else if (o.request.exe || o.request.library)
                return option_misused("report", usage, "--exe and --library go with a process or a "
                                      "core");
        else
                status = report_file(&page, o.request.what, kind == file_kind_trace);
        return status ? status : write_page(&page, o.out);
}
