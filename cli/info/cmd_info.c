/*
 * Purpose: `stook info`: the heap of a process or of a core, once or every so often.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <stook/version.h>
#include "cli/commands.h"
#include "cli/info/baseline.h"
#include "cli/info/info.h"
#include "cli/memory/target.h"
#include "cli/text/option_text.h"
#include "cli/text/plain_text.h"

enum form { FORM_TEXT, FORM_JSON, FORM_PROMETHEUS };

struct options {
        struct info_view view;
        enum form   form;
        const char *what, *exe, *library, *save, *since;
        double      every;              /* seconds; 0: once */
        unsigned    count;              /* with every; 0: without end */
};

static const char usage[] =
        "usage: stook info [--json | --prometheus] [--sort KEY] [--name PATTERN] [--all] [--long]\n"
        "                  [--fragmentation] [--slots] [--every SECONDS [--count N]]\n"
        "                  [--save FILE] [--since FILE] [--library NAME] [--exe FILE] PID|CORE\n";

static const char help[] =
        "\n"
        "Shows the caches of a running process of the same user, or of one that left a core. The\n"
        "process is only read; it does nothing for that, and goes on meanwhile.\n"
        "\n"
        "options:\n"
        "  --json           every figure, with keys that stay\n"
        "  --prometheus     in Prometheus' text format\n"
        "  --sort KEY       bytes (of slabs; the default), name, live, cached, size, allocs,\n"
        "                   loss (bytes of slabs that live objects do not fill) or age\n"
        "  --name PATTERN   only caches whose name or alias matches, such as 'conn*'\n"
        "  --all            also malloc's classes that were never used\n"
        "  --long           each cache at length: aliases, settings, slots, nodes, counters\n"
        "  --fragmentation  slabs by the share of their objects that are out (with users or in\n"
        "                   sheaves), slabs that only sheaves keep, free pages in slabs\n"
        "  --slots          the objects in each slot, by cache\n"
        "  --every SECONDS  again and again; --count N: so often\n"
        "  --save FILE      write the counters to FILE, too\n"
        "  --since FILE     count from the moment that FILE was saved: a reset of the counters\n"
        "  --library NAME   only the copy of the library in a file with NAME in its path\n"
        "  --exe FILE       with a core: the program, for pages that the core lacks\n"
        "  --help           show this\n"
        "\n"
        "Columns: objects live, their size, bytes from one to the next, bytes of slabs; slabs,\n"
        "those with free objects, full sheaves in barns; objects and pages of a slab; objects in\n"
        "sheaves; percent of slabs that have free objects, percent of bytes that live objects\n"
        "fill. Flags: * aliases, A aligned to cache lines, c constructor, g charged to groups,\n"
        "m malloc's or a heap's, n no sheaves, o random order, r RCU, d debugged, t traced,\n"
        "p profiled, D being destroyed.\n";

enum { OPTION_JSON = OPTION_FIRST, OPTION_PROMETHEUS, OPTION_SORT, OPTION_NAME, OPTION_ALL,
       OPTION_LONG, OPTION_FRAGMENTATION, OPTION_SLOTS, OPTION_EVERY, OPTION_COUNT,
       OPTION_SAVE, OPTION_SINCE, OPTION_LIBRARY, OPTION_EXE, OPTION_HELP };

static const struct option long_options[] = {
        { "json", no_argument, NULL, OPTION_JSON },
        { "prometheus", no_argument, NULL, OPTION_PROMETHEUS },
        { "sort", required_argument, NULL, OPTION_SORT },
        { "name", required_argument, NULL, OPTION_NAME },
        { "all", no_argument, NULL, OPTION_ALL },
        { "long", no_argument, NULL, OPTION_LONG },
        { "fragmentation", no_argument, NULL, OPTION_FRAGMENTATION },
        { "slots", no_argument, NULL, OPTION_SLOTS },
        { "every", required_argument, NULL, OPTION_EVERY },
        { "count", required_argument, NULL, OPTION_COUNT },
        { "save", required_argument, NULL, OPTION_SAVE },
        { "since", required_argument, NULL, OPTION_SINCE },
        { "library", required_argument, NULL, OPTION_LIBRARY },
        { "exe", required_argument, NULL, OPTION_EXE },
        { "help", no_argument, NULL, OPTION_HELP },
        { 0 }
};

/* ---- options ---- */

static bool is_sort(const char *key)
{
        for (size_t i = 0; info_sorts[i]; i++)
                if (!strcmp(key, info_sorts[i]))
                        return true;
        say(stderr, "stook info: no order '%s'; there is:", key);
        for (size_t i = 0; info_sorts[i]; i++)
                say(stderr, " %s", info_sorts[i]);
        fputc('\n', stderr);
        return false;
}

/* -1: the option was taken; else the exit status. */
static int take_form(struct options *o, enum form form)
{
        if (o->form != FORM_TEXT && o->form != form)
                return option_misused("info", usage, "--json or --prometheus, not both");
        o->form = form;
        return -1;
}

/* Likewise. */
static int take_option(struct options *o, int c, char **argv)
{
        bool fine = true;

        switch (c) {
        case OPTION_JSON:
                return take_form(o, FORM_JSON);
        case OPTION_PROMETHEUS:
                return take_form(o, FORM_PROMETHEUS);
        case OPTION_SORT:
                o->view.sort = optarg;
                fine = is_sort(optarg);
                break;
        case OPTION_NAME:
                o->view.name = optarg;
                break;
        case OPTION_ALL:
                o->view.all = true;
                break;
        case OPTION_LONG:
                o->view.details = true;
                break;
        case OPTION_FRAGMENTATION:
                o->view.shares = true;
                break;
        case OPTION_SLOTS:
                o->view.by_slot = true;
                break;
        case OPTION_EVERY:
                fine = option_seconds("info", "--every", optarg, &o->every);
                break;
        case OPTION_COUNT:
                fine = option_count("info", "--count", optarg, INT_MAX, &o->count);
                break;
        case OPTION_SAVE:
                o->save = optarg;
                fine = option_file("info", "--save", optarg);
                break;
        case OPTION_SINCE:
                o->since = optarg;
                break;
        case OPTION_LIBRARY:
                o->library = optarg;
                break;
        case OPTION_EXE:
                o->exe = optarg;
                break;
        case OPTION_HELP:
        case 'h':
                return option_help(usage, help);
        default:
                return option_refuse("info", c, argv, usage);
        }
        return fine ? -1 : STATUS_CANNOT;
}

static int parse(int argc, char **argv, struct options *o)
{
        int c, status;

        opterr = 0;
        while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1)
                if ((status = take_option(o, c, argv)) >= 0)
                        return status;
        if (o->count && o->every == 0)
                return option_misused("info", usage, "--count goes with --every only");
        o->what = option_process("info", argc, argv, usage);
        return o->what ? -1 : STATUS_CANNOT;
}

/* ---- one look ---- */

struct looks {
        struct heap heaps[LIBRARIES_MAX];
        const char *paths[LIBRARIES_MAX];
        size_t      count;
};

static void free_looks(struct looks *l)
{
        for (size_t i = 0; i < l->count; i++)
                heap_free(&l->heaps[i]);
        l->count = 0;
}

/* Looks at each copy. Return: 0, or the exit status, said. */
static int look(struct target *t, struct looks *l)
{
        int error = 0;

        l->count = 0;
        for (struct library *at = NULL; !error && (at = target_next(t, at));) {
                struct heap *h = &l->heaps[l->count];

                error = heap_read(h, &t->memory, at, HEAP_OBJECTS);
                if (error)
                        say(stderr, "stook info: %u: %s\n", t->memory.pid, h->error);
                else
                        l->paths[l->count++] = at->image->path;
        }
        if (!error)
                return 0;
        free_looks(l);
        return 1;
}

static int save(const struct looks *l, const char *path)
{
        struct baseline b = { 0 };
        int error = 0;

        for (size_t i = 0; i < l->count && !error; i++)
                error = baseline_add(&b, &l->heaps[i]) ? 0 : -ENOMEM;
        if (!error)
                error = baseline_save(&b, path);
        baseline_free(&b);
        if (!error)
                return 0;
        say(stderr, "stook info: %s: %s\n", path, strerror(-error));
        return STATUS_CANNOT;
}

/* @again: text was printed before. */
static void print(const struct options *o, struct target *t, const struct looks *l, bool again)
{
        const struct heap *heaps[LIBRARIES_MAX];
        struct json j;
        char name[512];

        for (size_t i = 0; i < l->count; i++)
                heaps[i] = &l->heaps[i];
        if (o->form == FORM_PROMETHEUS) {
                info_prometheus(heaps, l->count, &o->view, false, stdout);
        } else if (o->form == FORM_JSON) {
                json_begin(&j, stdout);
                json_count(&j, "format", 1);
                json_string(&j, "stook_version", STOOK_VERSION);
                json_array(&j, "libraries");
                for (size_t i = 0; i < l->count; i++)
                        info_json(&l->heaps[i], &o->view, l->paths[i], &j);
                json_array_end(&j);
                json_end(&j);
        } else {
                for (size_t i = 0; i < l->count; i++) {
                        target_name(t, l->heaps[i].library, name, sizeof name);
                        if (i || again)
                                putchar('\n');
                        say(stdout, "%s\n", name);
                        info_text(&l->heaps[i], &o->view, stdout);
                }
                target_print_others(t, stdout);
        }
}

/* ---- again and again ---- */

static void pause_for(double seconds)
{
        struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

        nanosleep(&t, NULL);
}

static int load(const struct options *o, const struct target *t, struct baseline *b)
{
        int error = o->since ? baseline_load(b, o->since) : 0;

        if (error)
                say(stderr, "stook info: %s: %s\n", o->since, error == -EBADMSG
                    ? "not what --save writes" : strerror(-error));
        else if (o->since && b->pid != t->memory.pid)
                say(stderr, "stook info: %s: is of process %u\n", o->since, b->pid);
        else
                return 0;
        return STATUS_CANNOT;
}

static int show(const struct options *o, struct target *t, const struct baseline *b)
{
        int status = 0;

        for (unsigned n = 0; !status; n++) {
                struct looks l;

                status = look(t, &l);
                if (status)
                        return status;
                if (o->save)
                        status = save(&l, o->save);
                for (size_t i = 0; i < l.count; i++)
                        baseline_take_off(b, &l.heaps[i]);
                print(o, t, &l, n > 0);
                free_looks(&l);
                if (fflush(stdout) || ferror(stdout)) {
                        say(stderr, "stook: standard output: %s\n", strerror(errno));
                        return STATUS_CANNOT;
                }
                if (o->every == 0 || n + 1 == o->count)
                        break;
                pause_for(o->every);
        }
        return status;
}

int cmd_info(int argc, char **argv)
{
        struct options o = { 0 };
        struct baseline b = { 0 };
        struct target t;
        int status = parse(argc, argv, &o);

        if (status >= 0)
                return status;
        status = target_open(&t, "info", o.what, o.exe, o.library);
        if (status)
                return status;
        status = load(&o, &t, &b);
        if (!status)
                status = show(&o, &t, &b);
        baseline_free(&b);
        target_close(&t);
        return status;
}
