/*
 * Purpose: `stook info`: the heap of a process or of a core, once or every so often.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/commands.h"
#include "cli/info/baseline.h"
#include "cli/info/info.h"
#include "cli/memory/target.h"
#include "cli/text/plain_text.h"

enum form { FORM_TEXT, FORM_JSON, FORM_PROMETHEUS };

struct options {
        struct info_view view;
        enum form   form;
        struct target_request request;
        const char *save, *since;
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
        "  --json          every figure, with keys that stay\n"
        "  --prometheus    in Prometheus' text format\n"
        "  --sort KEY      bytes (of slabs; the default), name, live, cached, size, allocs,\n"
        "                  loss (bytes of slabs that live objects do not fill) or age\n"
        "  --name PATTERN  only caches whose name or alias matches, such as 'conn*'\n"
        "  --all           also malloc's classes that were never used\n"
        "  --long          each cache at length: aliases, settings, slots, nodes, counters\n"
        "  --fragmentation\n"
        "                  slabs by the share of their objects that are out (with users or in\n"
        "                  sheaves), slabs that only sheaves keep, free pages in slabs\n"
        "  --slots         the objects in each slot, by cache\n"
        "  --every SECONDS\n"
        "                  again and again; --count N: so often\n"
        "  --save FILE     write the counters to FILE, too\n"
        "  --since FILE    count from the moment that FILE was saved: a reset of the counters\n"
        TARGET_HELP_TEXT
        "\n"
        "Columns: objects live, their size, bytes from one to the next, bytes of slabs; slabs,\n"
        "those with free objects, full sheaves in barns; objects and pages of a slab; objects in\n"
        "sheaves; percent of slabs that have free objects, percent of bytes that live objects\n"
        "fill. Flags: * aliases, A aligned to cache lines, c constructor, g charged to groups,\n"
        "m malloc's or a heap's, n no sheaves, o random order, r RCU, d debugged, t traced,\n"
        "p profiled, D being destroyed.\n";

enum { OPTION_JSON = TARGET_OPTION_FIRST, OPTION_PROMETHEUS, OPTION_SORT, OPTION_NAME, OPTION_ALL,
       OPTION_LONG, OPTION_FRAGMENTATION, OPTION_SLOTS, OPTION_EVERY, OPTION_COUNT,
       OPTION_SAVE, OPTION_SINCE };

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
        TARGET_OPTIONS
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

static bool take_form(struct options *o, enum form form)
{
        if (o->form != FORM_TEXT && o->form != form) {
                option_misused("info", usage, "--json or --prometheus, not both");
                return false;
        }
        o->form = form;
        return true;
}

static bool take(int option, void *data)
{
        struct options *o = data;

        switch (option) {
        case OPTION_JSON:
                return take_form(o, FORM_JSON);
        case OPTION_PROMETHEUS:
                return take_form(o, FORM_PROMETHEUS);
        case OPTION_SORT:
                o->view.sort = optarg;
                return is_sort(optarg);
        case OPTION_NAME:
                o->view.name = optarg;
                return true;
        case OPTION_ALL:
                return o->view.all = true;
        case OPTION_LONG:
                return o->view.details = true;
        case OPTION_FRAGMENTATION:
                return o->view.shares = true;
        case OPTION_SLOTS:
                return o->view.by_slot = true;
        case OPTION_EVERY:
                return option_seconds("info", "--every", optarg, &o->every);
        case OPTION_COUNT:
                return option_count("info", "--count", optarg, INT_MAX, &o->count);
        case OPTION_SAVE:
                o->save = optarg;
                return option_file("info", "--save", optarg);
        default:
                o->since = optarg;
                return true;
        }
}

static const struct target_command command = { "info", usage, help, long_options, take, NULL };

/* Return: -1, go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
        int status = target_options(&command, argc, argv, &o->request, o);

        if (status >= 0)
                return status;
        if (o->count && o->every == 0)
                return option_misused("info", usage, "--count goes with --every only");
        o->request.what = option_process("info", argc, argv, usage);
        return o->request.what ? -1 : STATUS_CANNOT;
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
        status = target_open(&t, "info", &o.request);
        if (status)
                return status;
        status = load(&o, &t, &b);
        if (!status)
                status = show(&o, &t, &b);
        baseline_free(&b);
        target_close(&t);
        return status;
}
