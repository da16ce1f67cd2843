/*
 * Purpose: `stook replay`: the calls of a trace, made once more on libstook, with a front end of
 * the user's choice.
 * Exit status: 0; 2: bad options, a damaged trace, one that cannot be replayed, or a file that
 * cannot be written. One line says why.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stook/stook.h>
#include "cli/commands.h"
#include "cli/replay/replay_print.h"
#include "cli/text/option_text.h"
#include "cli/text/plain_text.h"

#define SWEEP_MAX     32                /* values; arbitrary */
#define NODES_MAX     64
#define TIMED_DEFAULT 9
#define TIMED_MAX     1000
#define BARN_MAX      4096              /* stook_cache_tune() */

struct options {
        struct replay_settings settings;
        const char *path, *caches, *json_path, *plot_path;
        char       *sweep_text;         /* its values are cut out of it */
        const struct parameter *swept;  /* NULL: no sweep */
        const char *values[SWEEP_MAX];
        size_t      value_count;
};

static const char usage[] =
        "usage: stook replay [--capacity N] [--barn-full N] [--barn-empty N] [--slots N]\n"
        "                    [--nodes N] [--cache NAMES] [--sweep PARAMETER=N,N...]\n"
        "                    [--repeat N] [--json FILE] [--plot FILE] TRACE\n";

static const char help[] =
        "\n"
        "Makes the calls of TRACE on libstook, in one thread, on made-up CPUs. Shows which layer\n"
        "answered them, the time they took, and memory. TRACE is a file of `stook record`, or\n"
        "the kernel's slab events (kmem_cache_alloc, kmem_cache_free, kmalloc, kfree) as `perf\n"
        "script`, `trace-cmd report`, tracefs or bpftrace (tools/trace/kmem.bt) print them, plain\n"
        "or packed by xz, gzip or zstd; -: such text on standard input.\n"
        "\n"
        "options:\n"
        "  --capacity N    objects of a sheaf, 0 to 65534; 0: no sheaves (the library chooses)\n"
        "  --barn-full N   full sheaves that a barn keeps, 0 to 4096 (10)\n"
        "  --barn-empty N  empty sheaves that a barn keeps, 0 to 4096 (10)\n"
        "  --slots N       made-up CPUs, 1 to 4096 (as many as the trace has)\n"
        "  --nodes N       made-up NUMA nodes, 1 to 64 (1); CPU i is on node i modulo N\n"
        "  --cache NAMES   replay these caches alone: patterns, with commas between\n"
        "  --sweep PARAMETER=N,N...\n"
        "                  a replay for each value of capacity, barn-full, barn-empty, slots or\n"
        "                  nodes: a table, and a picture with --plot\n"
        "  --repeat N      timed runs of each replay (9)\n"
        "  --json FILE     write all counters and samples of memory to FILE (-: standard output)\n"
        "  --plot FILE     write a picture (SVG): memory over time, or the sweep\n"
        "  --help          show this\n";

/* ---- numbers that may be set and swept ---- */

static const struct parameter {
        const char *name;
        long        least, most;
        size_t      at;                 /* an int or unsigned in struct replay_settings */
} parameters[] = {
        { "capacity", 0, 65534, offsetof(struct replay_settings, capacity) },
        { "barn-full", 0, BARN_MAX, offsetof(struct replay_settings, barn_full) },
        { "barn-empty", 0, BARN_MAX, offsetof(struct replay_settings, barn_empty) },
        { "slots", 1, REPLAY_CPUS, offsetof(struct replay_settings, slots) },
        { "nodes", 1, NODES_MAX, offsetof(struct replay_settings, nodes) },
        { "repeat", 1, TIMED_MAX, offsetof(struct replay_settings, timed) },
};
#define PARAMETERS (sizeof parameters / sizeof parameters[0])
#define SWEPT      (PARAMETERS - 1)     /* not the last one */

static bool set(struct replay_settings *settings, const struct parameter *p, const char *text)
{
        char *end;
        long n;
        int value;

        errno = 0;
        n = strtol(text, &end, 10);
        if (errno || *end || text[0] < '0' || text[0] > '9' || n < p->least || n > p->most)
                return false;
        value = (int)n;
        memcpy((char *)settings + p->at, &value, sizeof value);
        return true;
}

static bool say_number(const struct parameter *p, const char *text)
{
        say(stderr, "stook replay: %s takes a number from %ld to %ld, not '%s'\n", p->name,
            p->least, p->most, text);
        return false;
}

/* "capacity=0,16,32": all values are tried before anything is done. */
static bool parse_sweep(struct options *o, const char *text)
{
        struct replay_settings scratch = o->settings;
        char *rest, *value;

        free(o->sweep_text);
        o->sweep_text = rest = strdup(text);
        o->swept = NULL;
        o->value_count = 0;
        value = rest ? strsep(&rest, "=") : NULL;
        for (size_t i = 0; value && i < SWEPT; i++)
                if (!strcmp(parameters[i].name, value))
                        o->swept = &parameters[i];
        if (!o->swept || !rest) {
                say(stderr, "stook replay: --sweep takes capacity, barn-full, barn-empty, "
                    "slots or nodes, then =N,N..., not '%s'\n", text);
                return false;
        }
        while ((value = strsep(&rest, ","))) {
                if (!set(&scratch, o->swept, value))
                        return say_number(o->swept, value);
                if (o->value_count == SWEEP_MAX) {
                        say(stderr, "stook replay: --sweep takes at most %d values\n", SWEEP_MAX);
                        return false;
                }
                o->values[o->value_count++] = value;
        }
        return true;
}

/* ---- options ---- */

enum { OPTION_PARAMETER = OPTION_FIRST, OPTION_CACHE = OPTION_PARAMETER + 16, OPTION_SWEEP,
       OPTION_JSON, OPTION_PLOT, OPTION_HELP };

static const struct option long_options[] = {
        { "capacity", required_argument, NULL, OPTION_PARAMETER },
        { "barn-full", required_argument, NULL, OPTION_PARAMETER + 1 },
        { "barn-empty", required_argument, NULL, OPTION_PARAMETER + 2 },
        { "slots", required_argument, NULL, OPTION_PARAMETER + 3 },
        { "nodes", required_argument, NULL, OPTION_PARAMETER + 4 },
        { "repeat", required_argument, NULL, OPTION_PARAMETER + 5 },
        { "cache", required_argument, NULL, OPTION_CACHE },
        { "sweep", required_argument, NULL, OPTION_SWEEP },
        { "json", required_argument, NULL, OPTION_JSON },
        { "plot", required_argument, NULL, OPTION_PLOT },
        { "help", no_argument, NULL, OPTION_HELP },
        { 0 }
};

static bool parse_value(struct options *o, int option)
{
        switch (option) {
        case OPTION_CACHE:
                o->caches = optarg;
                return true;
        case OPTION_SWEEP:
                return parse_sweep(o, optarg);
        case OPTION_JSON:
                o->json_path = optarg;
                return option_file("replay", "--json", optarg);
        case OPTION_PLOT:
                o->plot_path = optarg;
                return option_file("replay", "--plot", optarg);
        default:
                return set(&o->settings, &parameters[option - OPTION_PARAMETER], optarg) ||
                       say_number(&parameters[option - OPTION_PARAMETER], optarg);
        }
}

/* Return: -1, go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
        int option;

        *o = (struct options){ .settings = { -1, -1, -1, 0, 1, TIMED_DEFAULT } };
        opterr = 0;
        while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
                if (option == OPTION_HELP || option == 'h')
                        return option_help(usage, help);
                if (option == ':' || option == '?')
                        return option_refuse("replay", option, argv, usage);
                if (!parse_value(o, option))
                        return STATUS_CANNOT;
        }
        if (optind != argc - 1)
                return option_misused("replay", usage, optind == argc
                                      ? "no trace given" : "more than one trace given");
        o->path = argv[optind];
        return -1;
}

/* ---- the replays ---- */

static void release(struct replay_result *results, size_t count)
{
        for (size_t i = 0; i < count; i++)
                replay_result_release(&results[i]);
        free(results);
}

/* NULL: said why. */
static struct replay_result *run_each(const struct options *o, const struct replay_list *list,
                                      size_t count)
{
        struct replay_result *results = calloc(count, sizeof *results);
        char message[PATH_MAX + 200] = "no memory";
        bool fine = results != NULL;

        for (size_t i = 0; fine && i < count; i++) {
                struct replay_settings settings = o->settings;

                if (o->swept)
                        set(&settings, o->swept, o->values[i]);
                fine = replay_watch(list, &settings, &results[i], message, sizeof message);
        }
        if (fine && replay_time(results, count, message, sizeof message))
                return results;
        say(stderr, "stook replay: %s\n", message);
        if (results)
                release(results, count);
        return NULL;
}

static FILE *open_output(const char *path)
{
        FILE *out = !strcmp(path, "-") ? stdout : fopen(path, "we");

        if (!out)
                say(stderr, "stook replay: %s: %s\n", path, strerror(errno));
        return out;
}

static bool close_output(FILE *out, const char *path)
{
        bool fine = !fflush(out) && !ferror(out);

        if (!fine)
                say(stderr, "stook replay: %s: %s\n", path, strerror(errno));
        if (out != stdout)
                fclose(out);
        return fine;
}

static bool write_json(const struct options *o, const struct replay_list *list,
                       const struct replay_result *results, size_t count)
{
        FILE *out = open_output(o->json_path);
        struct json json;

        if (!out)
                return false;
        json_begin(&json, out);
        replay_json(list, o->path, results, count, &json);
        json_end(&json);
        return close_output(out, o->json_path);
}

static bool write_picture(const struct options *o, const struct replay_result *results,
                          const struct replay_sweep *sweep)
{
        FILE *out = open_output(o->plot_path);
        bool fine = true;

        if (!out)
                return false;
        if (o->swept)
                fine = replay_sweep_picture(results, sweep, out);
        else
                replay_picture(results, out);
        return close_output(out, o->plot_path) && fine;
}

static int replay(const struct options *o, const struct replay_list *list)
{
        struct replay_sweep sweep = { o->swept ? o->swept->name : "", o->values, o->value_count };
        size_t count = o->swept ? o->value_count : 1;
        /* Text gives way to what else goes to standard output. */
        bool to_stdout = (o->json_path && !strcmp(o->json_path, "-")) ||
                         (o->plot_path && !strcmp(o->plot_path, "-"));
        struct replay_result *results;
        bool fine = true;

        if (!to_stdout)
                replay_print_list(list, o->path, stdout);
        results = run_each(o, list, count);
        if (!results)
                return STATUS_CANNOT;
        if (!to_stdout && o->swept)
                replay_print_sweep(results, &sweep, stdout);
        else if (!to_stdout)
                replay_print(list, results, stdout);
        if (o->json_path)
                fine = write_json(o, list, results, count);
        if (o->plot_path)
                fine = write_picture(o, results, &sweep) && fine;
        if (!to_stdout)
                fine = close_output(stdout, "standard output") && fine;
        release(results, count);
        return fine ? 0 : STATUS_CANNOT;
}

int cmd_replay(int argc, char **argv)
{
        struct replay_list list;
        struct options o;
        char message[PATH_MAX + 200];
        int status = parse(argc, argv, &o);

        if (status >= 0) {
                free(o.sweep_text);
                return status;
        }
        if (!replay_list_read(&list, o.path, message, sizeof message)) {
                say(stderr, "stook replay: %s\n", message);
                free(o.sweep_text);
                return STATUS_CANNOT;
        }
        if (o.caches)
                replay_list_keep(&list, o.caches);
        if (list.count) {
                status = replay(&o, &list);
        } else {
                say(stderr, "stook replay: %s: %s\n", o.path,
                    o.caches ? "no event is of such a cache"
                             : "it has nothing to replay: no allocation");
                status = STATUS_CANNOT;
        }
        replay_list_release(&list);
        free(o.sweep_text);
        return status;
}
