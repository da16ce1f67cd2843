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

#define TIMED_DEFAULT 9

struct options {
        struct replay_settings settings;
        struct replay_grid grid;
        const char *path, *caches, *json_path, *plot_path, *folder;
};

static const char usage[] =
        "usage: stook replay [--capacity N] [--barn N] [--barn-full N] [--barn-empty N]\n"
        "                    [--slots N] [--nodes N] [--cache NAMES]\n"
        "                    [--sweep PARAMETER=N,N...]... [--kernel FOLDER] [--repeat N]\n"
        "                    [--json FILE] [--plot FILE] TRACE\n";

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
        "  --barn N        both\n"
        "  --slots N       made-up CPUs, 1 to 4096 (as many as the trace has)\n"
        "  --nodes N       made-up NUMA nodes, 1 to 64 (1); CPU i is on node i modulo N\n"
        "  --cache NAMES   replay these caches alone: patterns, with commas between\n"
        "  --sweep PARAMETER=N,N...\n"
        "                  a replay for each value of capacity, barn, barn-full, barn-empty,\n"
        "                  slots or nodes: a table, what is advised for each cache, and a\n"
        "                  picture with --plot. Several times: each value with each\n"
        "  --kernel FOLDER compare with a kernel's own figures: /sys/kernel/slab, or a copy\n"
        "  --repeat N      timed runs of each replay (9; with several sweeps 0)\n"
        "  --json FILE     write all counters and samples of memory to FILE (-: standard output)\n"
        "  --plot FILE     write a picture (SVG): memory over time, the sweep, or heat maps\n"
        "  --help          show this\n";

/* ---- options ---- */

enum { OPTION_PARAMETER = OPTION_FIRST, OPTION_CACHE = OPTION_PARAMETER + 16, OPTION_SWEEP,
       OPTION_KERNEL, OPTION_JSON, OPTION_PLOT, OPTION_HELP };

/* The first ones are replay_parameters[]. */
static const struct option long_options[] = {
        { "capacity", required_argument, NULL, OPTION_PARAMETER },
        { "barn", required_argument, NULL, OPTION_PARAMETER + 1 },
        { "barn-full", required_argument, NULL, OPTION_PARAMETER + 2 },
        { "barn-empty", required_argument, NULL, OPTION_PARAMETER + 3 },
        { "slots", required_argument, NULL, OPTION_PARAMETER + 4 },
        { "nodes", required_argument, NULL, OPTION_PARAMETER + 5 },
        { "repeat", required_argument, NULL, OPTION_PARAMETER + 6 },
        { "cache", required_argument, NULL, OPTION_CACHE },
        { "sweep", required_argument, NULL, OPTION_SWEEP },
        { "kernel", required_argument, NULL, OPTION_KERNEL },
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
                return replay_grid_add(&o->grid, optarg);
        case OPTION_KERNEL:
                o->folder = optarg;
                return option_file("replay", "--kernel", optarg);
        case OPTION_JSON:
                o->json_path = optarg;
                return option_file("replay", "--json", optarg);
        case OPTION_PLOT:
                o->plot_path = optarg;
                return option_file("replay", "--plot", optarg);
        default:
                return replay_set(&o->settings, &replay_parameters[option - OPTION_PARAMETER],
                                  optarg);
        }
}

/* Return: -1, go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
        const unsigned unset = UINT_MAX;
        int option;

        *o = (struct options){ .settings = replay_settings_usual };
        o->settings.timed = unset;
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
        if (o->settings.timed == unset)
                o->settings.timed = o->grid.count > 1 ? 0 : TIMED_DEFAULT;
        return -1;
}

/* ---- the replays ---- */

static void release(struct replay_answer *a)
{
        for (size_t i = 0; a->results && i < a->count; i++)
                replay_result_release(&a->results[i]);
        replay_result_release(&a->as_kernel);
        free(a->results);
        free(a->advice);
        free(a->kernel);
}

/* The kernel's own settings, on the machine of the options. */
static bool run_as_kernel(const struct options *o, struct replay_answer *a, char *message,
                          size_t bytes)
{
        struct replay_settings settings = o->settings;
        bool fine;
        int32_t *capacities;

        a->kernel = replay_kernel_read(a->list, o->folder, message, bytes);
        if (!a->kernel)
                return false;
        capacities = replay_kernel_capacities(a->kernel, a->list->cache_count);
        settings.capacities = capacities;
        settings.timed = 0;
        fine = capacities && replay_watch(a->list, &settings, &a->as_kernel, message, bytes);
        free(capacities);
        return fine;
}

static bool chooses(const struct replay_grid *grid)
{
        for (unsigned i = 0; i < grid->count; i++)
                if (grid->sweep[i].of->is_chosen)
                        return true;
        return false;
}

/* False: said why. */
static bool run_all(const struct options *o, struct replay_answer *a)
{
        char message[PATH_MAX + 512] = "no memory";
        bool fine;

        a->results = calloc(a->count, sizeof *a->results);
        fine = a->results && (!o->folder || run_as_kernel(o, a, message, sizeof message));
        for (size_t i = 0; fine && i < a->count; i++) {
                struct replay_settings settings = o->settings;

                replay_grid_set(&o->grid, i, &settings);
                fine = replay_watch(a->list, &settings, &a->results[i], message, sizeof message);
        }
        fine = fine && replay_time(a->results, a->count, message, sizeof message);
        if (fine && chooses(&o->grid)) {
                a->advice = replay_advise(a->list, a->results, a->count, &a->advices, &a->few);
                fine = a->advice != NULL;
        }
        if (!fine)
                say(stderr, "stook replay: %s\n", message);
        return fine;
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

static bool write_json(const char *path, const struct replay_answer *a)
{
        FILE *out = open_output(path);
        struct json json;

        if (!out)
                return false;
        json_begin(&json, out);
        replay_json(a, &json);
        json_end(&json);
        return close_output(out, path);
}

static bool write_picture(const char *path, const struct replay_answer *a)
{
        FILE *out = open_output(path);
        bool fine;

        if (!out)
                return false;
        fine = replay_picture(a, out);
        return close_output(out, path) && fine;
}

static int replay(const struct options *o, const struct replay_list *list)
{
        struct replay_answer a = { .list = list, .path = o->path, .grid = &o->grid,
                                   .count = replay_grid_cells(&o->grid), .folder = o->folder };
        /* Text gives way to what else goes to standard output. */
        bool to_stdout = (o->json_path && !strcmp(o->json_path, "-")) ||
                         (o->plot_path && !strcmp(o->plot_path, "-"));
        bool fine;

        if (!to_stdout)
                replay_print_list(list, o->path, stdout);
        fine = run_all(o, &a);
        if (fine) {
                if (!to_stdout)
                        replay_print(&a, stdout);
                if (o->json_path)
                        fine = write_json(o->json_path, &a);
                if (o->plot_path)
                        fine = write_picture(o->plot_path, &a) && fine;
                if (!to_stdout)
                        fine = close_output(stdout, "standard output") && fine;
        }
        release(&a);
        return fine ? 0 : STATUS_CANNOT;
}

int cmd_replay(int argc, char **argv)
{
        struct replay_list list;
        struct options o;
        char message[PATH_MAX + 200];
        int status = parse(argc, argv, &o);

        if (status >= 0) {
                replay_grid_release(&o.grid);
                return status;
        }
        if (!replay_list_read(&list, o.path, message, sizeof message)) {
                say(stderr, "stook replay: %s\n", message);
                replay_grid_release(&o.grid);
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
        replay_grid_release(&o.grid);
        return status;
}
