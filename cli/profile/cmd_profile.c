/*
 * Purpose: `stook profile`: a heap profile, of a file or of a running process, as text, as folded
 * stacks, as a file with names, as a flame graph, or as a page.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/files/file_kind.h"
#include "cli/info/info.h"
#include "cli/memory/target.h"
#include "cli/page/page.h"
#include "cli/profile/flame.h"
#include "cli/profile/pprof_write.h"
#include "cli/profile/profile_json.h"
#include "cli/profile/profile_live.h"
#include "cli/profile/profile_session.h"
#include "cli/profile/profile_text.h"
#include "cli/program/on_drop_in.h"
#include "cli/text/option_text.h"
#include "cli/text/plain_text.h"
#include "cli/trace/trace_profile.h"

#define TOP_DEFAULT 10
#define TOP_MOST    1000000              /* arbitrary */

static const char usage[] =
        "usage: stook profile [--type TYPE | --peak | --growth | --lifetimes | --suspects]\n"
        "                     [--top N] [--all] [--folded | --json | --svg | --html | --pprof]\n"
        "                     [--for TIME] [--start[=TERMS]] [--library NAME]\n"
        "                     FILE|TRACE|PID\n"
        "       stook profile --start[=TERMS] | --stop [--library NAME] PID\n";

static const char help[] =
        "\n"
        "Shows a heap profile: which call stacks allocated what was in use at the peak. `stook\n"
        "run --profile FILE` writes one; so does any program with STOOK_PROFILE (see\n"
        "stook-env(7)). Of a running process that has one it is read from outside; the process\n"
        "does nothing for it. Any other process begins one by --start. A trace of `stook record\n"
        "--stacks` is shown as one, too, and exactly.\n"
        "\n"
        "options:\n"
        "  --type TYPE    peak_space (the default) or peak_objects: bytes or objects, at the\n"
        "                 peak; inuse_...: in use now, or at the end; alloc_...: in all;\n"
        "                 growth_...: in use now, less what was at the last mark; of a trace,\n"
        "                 temporary_...: freed by its thread before its next allocation\n"
        "  --peak, --growth  as --type peak_space, --type growth_space\n"
        "  --lifetimes    how long objects lived, by the stacks of their allocation and free; of\n"
        "                 profiles with the term `lifetimes`\n"
        "  --suspects     stacks of which more is allocated than freed all the time\n"
        "  --top N        stacks to be printed (10)\n"
        "  --all          those, too, that stand on fewer than 4 samples\n"
        "  --folded       all stacks, one a line: functions from the outermost on, then the value\n"
        "  --json         all stacks and values, the largest of the type first\n"
        "  --svg          a flame graph, to standard output\n"
        "  --html         a page with everything, to standard output: a flame graph to search and\n"
        "                 zoom, tables of stacks, lifetimes and suspects; of a process its caches\n"
        "  --pprof        the profile with names, in pprof's format, to standard output\n"
        "  --start[=TERMS]  samples begin in a process: BYTES, most=N, guard[=N], lifetimes, with\n"
        "                 commas; the default is one in 2M, at most 200 a second\n"
        "  --stop         they end; what was sampled stays\n"
        "  --for TIME     both, with 30s, 5m or 1h between them, and then the profile is shown\n"
        "  --library NAME  of a process: only the copy of the library in a file with NAME in its\n"
        "                 path\n"
        "  --help         show this\n";

enum view { VIEW_TYPE, VIEW_LIFETIMES, VIEW_SUSPECTS };
enum form { FORM_TEXT, FORM_FOLDED, FORM_JSON, FORM_SVG, FORM_HTML, FORM_PPROF };

struct options {
        const char *type, *what, *library;      /* type: NULL: the default */
        enum view   view;
        enum form   form;
        unsigned    top;
        bool        all, starts, stops;
        struct stook_sample_terms terms;        /* of --start, or --for */
        double      seconds;            /* of --for; 0: without */
};

struct session {
        struct options options;
        struct pprof   profile;
        struct target  target;          /* if `is_live` */
        bool           is_live;
        char           name[512];       /* of the file or process */
};

/* ---- options ---- */

enum { OPTION_TYPE = OPTION_FIRST, OPTION_PEAK, OPTION_GROWTH, OPTION_LIFETIMES, OPTION_SUSPECTS,
       OPTION_TOP, OPTION_ALL, OPTION_FOLDED, OPTION_JSON, OPTION_SVG, OPTION_HTML, OPTION_PPROF,
       OPTION_LIBRARY, OPTION_START, OPTION_STOP, OPTION_FOR, OPTION_HELP };

static const struct option long_options[] = {
        { "type", required_argument, NULL, OPTION_TYPE },
        { "peak", no_argument, NULL, OPTION_PEAK },
        { "growth", no_argument, NULL, OPTION_GROWTH },
        { "lifetimes", no_argument, NULL, OPTION_LIFETIMES },
        { "suspects", no_argument, NULL, OPTION_SUSPECTS },
        { "top", required_argument, NULL, OPTION_TOP },
        { "all", no_argument, NULL, OPTION_ALL },
        { "folded", no_argument, NULL, OPTION_FOLDED },
        { "json", no_argument, NULL, OPTION_JSON },
        { "svg", no_argument, NULL, OPTION_SVG },
        { "html", no_argument, NULL, OPTION_HTML },
        { "pprof", no_argument, NULL, OPTION_PPROF },
        { "library", required_argument, NULL, OPTION_LIBRARY },
        { "start", optional_argument, NULL, OPTION_START },
        { "stop", no_argument, NULL, OPTION_STOP },
        { "for", required_argument, NULL, OPTION_FOR },
        { "help", no_argument, NULL, OPTION_HELP },
        { 0 }
};

/* -1: the option was taken; else the exit status. */
static int take_view(struct options *o, enum view view, const char *type)
{
        if (o->type || o->view != VIEW_TYPE)
                return option_misused("profile", usage, "one of --type, --peak, --growth, "
                                      "--lifetimes and --suspects");
        o->view = view;
        o->type = type;
        return -1;
}

static int take_form(struct options *o, enum form form)
{
        if (o->form != FORM_TEXT && o->form != form)
                return option_misused("profile", usage,
                                      "one of --folded, --json, --svg, --html and "
                                      "--pprof");
        o->form = form;
        return -1;
}

/* Return: -1, go on; else the exit status. */
static int take_option(struct options *o, int option, char **argv)
{
        switch (option) {
        case OPTION_TYPE:
                return take_view(o, VIEW_TYPE, optarg);
        case OPTION_PEAK:
                return take_view(o, VIEW_TYPE, "peak_space");
        case OPTION_GROWTH:
                return take_view(o, VIEW_TYPE, "growth_space");
        case OPTION_LIFETIMES:
                return take_view(o, VIEW_LIFETIMES, NULL);
        case OPTION_SUSPECTS:
                return take_view(o, VIEW_SUSPECTS, NULL);
        case OPTION_TOP:
                return option_count("profile", "--top", optarg, TOP_MOST, &o->top) ? -1
                                                                                   : STATUS_CANNOT;
        case OPTION_ALL:
                o->all = true;
                return -1;
        case OPTION_FOLDED:
                return take_form(o, FORM_FOLDED);
        case OPTION_JSON:
                return take_form(o, FORM_JSON);
        case OPTION_SVG:
                return take_form(o, FORM_SVG);
        case OPTION_HTML:
                return take_form(o, FORM_HTML);
        case OPTION_PPROF:
                return take_form(o, FORM_PPROF);
        case OPTION_LIBRARY:
                o->library = optarg;
                return -1;
        case OPTION_START:
                o->starts = true;
                return profile_session_terms(optarg, &o->terms) ? -1 : STATUS_CANNOT;
        case OPTION_STOP:
                o->stops = true;
                return -1;
        case OPTION_FOR:
                return profile_session_seconds(optarg, &o->seconds) ? -1 : STATUS_CANNOT;
        case OPTION_HELP:
        case 'h':
                return option_help(usage, help);
        default:
                return option_refuse("profile", option, argv, usage);
        }
}

static int parse(int argc, char **argv, struct options *o)
{
        int option, status;

        *o = (struct options){ .top = TOP_DEFAULT, .terms = stook_sample_terms_usual() };
        opterr = 0;
        while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1)
                if ((status = take_option(o, option, argv)) >= 0)
                        return status;
        if (optind + 1 != argc)
                return option_misused("profile", usage, "one heap profile is wanted, or a process");
        if (o->stops && (o->starts || o->seconds > 0))
                return option_misused("profile", usage, "--stop is by itself");
        if (o->view == VIEW_SUSPECTS && o->form != FORM_TEXT)
                return option_misused("profile", usage, "--suspects is text; --html has them, too");
        if (o->form == FORM_PPROF && isatty(STDOUT_FILENO))
                return option_misused("profile", usage, "--pprof is not for terminals: >FILE");
        o->what = argv[optind];
        return -1;
}

/* ---- what is shown ---- */

/* What there is to look at, instead of nothing. */
static void say_where_to_look(const struct session *s, int type)
{
        const struct pprof *p = &s->profile;

        if (!p->sample_count)
                say(stderr, "stook profile: %s: no allocation was sampled: a smaller interval= "
                    "samples more\n", s->options.what);
        else if (pprof_kind(p, type) == STOOK_PROFILE_INUSE)
                say(stderr, "stook profile: %s: nothing was in use when it was written, as at the "
                    "end of most programs; --peak shows what was before\n", s->options.what);
        else
                say(stderr, "stook profile: %s: nothing of this type; --type alloc_space shows all "
                    "that was allocated\n", s->options.what);
}

static int draw(const struct profile_view *v, const char *name)
{
        const struct profile_function *functions[PROFILE_FRAMES_MOST];
        const struct pprof *p = v->names->profile;
        const char *names[PROFILE_FRAMES_MOST];
        struct flame root = { .name = "all" };
        char title[700], text[64], plain[4 * sizeof title];
        bool fine = true;

        for (size_t i = 0; i < p->sample_count && p->samples[i].values[v->type] > 0; i++) {
                size_t count = profile_names_of(v->names, &p->samples[i].stack, functions);

                for (size_t k = 0; k < count; k++)
                        names[k] = functions[k]->name;
                fine &= flame_add(&root, names, count, (uint64_t)p->samples[i].values[v->type]);
        }
        snprintf(title, sizeof title, "%s: %s, %s", name, pprof_string(p, p->types[v->type]),
                 profile_amount(p, v->type, (int64_t)root.value, text, sizeof text));
        flame_draw(&root, plain_text(title, plain, sizeof plain), pprof_is_bytes(p, v->type),
                   stdout);
        flame_release(&root);
        return fine ? 0 : -ENOMEM;
}

/* Of a process with its heap, as far as that can be read. Return: 0; -errno. */
static int write_page(struct session *s, const struct profile_view *v)
{
        struct page page;
        char why[160];
        int error;

        if (!page_begin(&page, s->name))
                return -ENOMEM;
        error = profile_json(v, &page.json);
        if (!error && s->is_live)
                info_json_all(&s->target, &page.json, why);
        if (!error)
                return page_end(&page, stdout);
        page_drop(&page);
        return error;
}

/* Return: 0; -errno. */
static int print(struct session *s, const struct profile_view *v)
{
        switch (s->options.form) {
        case FORM_FOLDED:
                profile_text_folded(v, stdout);
                return 0;
        case FORM_JSON:
                profile_json_stacks(v, stdout);
                return 0;
        case FORM_SVG:
                return draw(v, s->name);
        case FORM_HTML:
                return write_page(s, v);
        case FORM_PPROF:
                return pprof_write(v->names, v->type, stdout);
        default:
                break;
        }
        if (s->options.view == VIEW_LIFETIMES)
                profile_text_lifetimes(v, stdout);
        else if (s->options.view == VIEW_SUSPECTS)
                profile_text_suspects(v, stdout);
        else
                profile_text_stacks(v, stdout);
        return 0;
}

/* @p: the profile, or its lifetimes. Return: the exit status. */
static int show(struct session *s, struct pprof *p, int type)
{
        struct profile_names names;
        struct profile_view view = { &names, type, s->options.top, s->options.all };
        double spread;
        int error = profile_names_open(&names, p) ? 0 : -ENOMEM;

        profile_sort(p, type);
        if (!error)
                error = print(s, &view);
        if (!error && names.no_memory)
                error = -ENOMEM;
        if (!error && (fflush(stdout) || ferror(stdout)))
                error = errno ? -errno : -EIO;
        if (error)
                say(stderr, "stook profile: %s\n", error == -ENOMEM ? "no memory"
                                                                    : strerror(-error));
        else if (names.changed)
                say(stderr, "stook profile: %s is another file than the program had: its addresses "
                    "have no names\n", names.changed);
        if (!error && s->options.view == VIEW_TYPE && s->options.form != FORM_HTML &&
            s->options.form != FORM_PPROF && !profile_total(p, type, &spread))
                say_where_to_look(s, type);
        profile_names_close(&names);
        return error ? STATUS_CANNOT : 0;
}

static int show_lifetimes(struct session *s)
{
        struct pprof lives;
        int status;

        if (!s->profile.session.lifetimes) {
                say(stderr, "stook profile: %s: no lifetimes were kept: the term `lifetimes` of "
                    "STOOK_PROFILE has them kept\n", s->options.what);
                return STATUS_CANNOT;
        }
        if (s->options.form == FORM_TEXT || s->options.form == FORM_HTML)
                return show(s, &s->profile, profile_type_default(&s->profile));
        if (profile_lifetimes(&s->profile, &lives)) {
                status = show(s, &lives, 1);
        } else {
                fputs("stook profile: no memory\n", stderr);
                status = STATUS_CANNOT;
        }
        pprof_release(&lives);
        return status;
}

static int show_all(struct session *s)
{
        const struct options *o = &s->options;
        int type = o->type ? pprof_type(&s->profile, o->type)
                           : profile_type_default(&s->profile);

        if (type < 0) {
                say(stderr, "stook profile: %s: no values of the type %s; there is:", o->what,
                    o->type);
                for (size_t i = 0; i < s->profile.type_count; i++)
                        say(stderr, " %s", pprof_string(&s->profile, s->profile.types[i]) ?: "?");
                fputc('\n', stderr);
                return STATUS_CANNOT;
        }
        if (o->view != VIEW_TYPE && !s->profile.has_session) {
                say(stderr, "stook profile: %s: it was not written by Stook, or by another "
                    "version: there are types alone\n", o->what);
                return STATUS_CANNOT;
        }
        return o->view == VIEW_LIFETIMES ? show_lifetimes(s) : show(s, &s->profile, type);
}

/* ---- where it is from ---- */

static bool is_process(const char *what)
{
        struct stat st;

        return *what && !what[strspn(what, "0123456789")] && stat(what, &st);
}

/* Return: 0, or the exit status, said. */
static int read_live(struct session *s)
{
        const struct options *o = &s->options;
        const struct target_request request = { .what = o->what, .library = o->library };
        int status = target_open(&s->target, "profile", &request);
        int error = -ENOTSUP;

        if (status)
                return status;
        s->is_live = true;
        for (struct library *l = NULL; error == -ENOTSUP && (l = target_next(&s->target, l));) {
                pprof_release(&s->profile);
                error = profile_live(&s->profile, &s->target.memory, l);
                if (error)
                        continue;
                target_name(&s->target, l, s->name, sizeof s->name);
        }
        if (!error)
                return 0;
        if (error == -ENOTSUP)
                say(stderr, "stook profile: process %u has no heap profile: --start begins one\n",
                    s->target.memory.pid);
        else
                say(stderr, "stook profile: process %u: %s\n", s->target.memory.pid,
                    error == -ESRCH || error == -EFAULT ? "it is gone" : strerror(-error));
        return error == -ENOTSUP ? STATUS_CANNOT : 1;
}

/* Of a trace what is damaged is said, and left out. */
static int read_file(struct session *s)
{
        char message[PATH_MAX + 200] = "";
        bool is_trace = file_kind_at(s->options.what) == file_kind_trace;
        bool fine;

        snprintf(s->name, sizeof s->name, "%.200s", name_of_program(s->options.what));
        fine = is_trace ? trace_profile(&s->profile, s->options.what, message, sizeof message)
                        : pprof_read(&s->profile, s->options.what, message, sizeof message);
        if (message[0])
                say(stderr, "stook profile: %s\n", message);
        return fine ? 0 : STATUS_CANNOT;
}

/* Return: the exit status; -1: the profile is to be shown. */
static int control(const struct options *o)
{
        int status;

        if (o->stops)
                return profile_session_stop(o->what, o->library);
        if (!o->starts && o->seconds <= 0)
                return -1;
        status = profile_session_start(o->what, o->library, &o->terms);
        if (status || o->seconds <= 0)
                return status;
        profile_session_wait(o->seconds);
        status = profile_session_stop(o->what, o->library);
        return status ? status : -1;
}

int cmd_profile(int argc, char **argv)
{
        struct session s = { .is_live = false };
        int status = parse(argc, argv, &s.options);

        if (status < 0)
                status = control(&s.options);
        if (status >= 0)
                return status;
        status = is_process(s.options.what) ? read_live(&s) : read_file(&s);
        if (!status)
                status = show_all(&s);
        pprof_release(&s.profile);
        if (s.is_live)
                target_close(&s.target);
        return status;
}
