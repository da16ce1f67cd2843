/*
 * Purpose: `stook ps`: all processes on Stook that this user may look into, with their totals.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/exporter/fleet.h"
#include "cli/text/json.h"
#include "cli/text/option_text.h"
#include "cli/text/plain_text.h"
#include "cli/text/table.h"

#define STATUS_NONE 1

static const char usage[] = "usage: stook ps [--json]\n";
static const char help[] =
        "\n"
        "Lists the processes that use Stook and that this user may look into: bytes of live\n"
        "objects, of large objects of malloc, of slabs, free pages with content, what of the heap\n"
        "is resident, and caches. A line tells how many processes the system refused.\n"
        "Exit status: 0: there is one at least; 1: none; 2: stook cannot do what was asked.\n"
        "\n"
        "options:\n"
        "  --json  with keys that stay\n"
        "  --help  show this\n";

struct listing {
        struct table table;
        struct json  json;
        bool         as_json;
};

struct totals {
        uint64_t live, slabs, large, dirty, resident;
        size_t   caches;
};

static struct totals totals_of(const struct heap *h)
{
        const struct heap_resident *r = &h->resident;
        struct totals t = {
                .slabs = h->pages.space_bytes, .large = h->pages.large_bytes,
                .dirty = h->pages.free_dirty_bytes, .caches = h->cache_count,
                .resident = r->slabs + r->large + r->dirty + r->padding + r->own,
        };

        for (size_t i = 0; i < h->cache_count; i++)
                t.live += h->caches[i].stats.objects_live * h->caches[i].stats.object_size;
        t.live += t.large;
        return t;
}

static void add_row(struct listing *l, const struct memory *m, const struct heap *h,
                    const struct totals *t)
{
        const char *slash = strrchr(h->library->image->path, '/');

        table_row(&l->table);
        table_cell(&l->table, "%u %s", m->pid, m->program);
        table_bytes(&l->table, t->live);
        table_bytes(&l->table, t->large);
        table_bytes(&l->table, t->slabs);
        table_bytes(&l->table, t->dirty);
        table_bytes(&l->table, t->resident);
        table_count(&l->table, t->caches);
        table_cell(&l->table, "%s", slash ? slash + 1 : h->library->image->path);
}

static void add_json(struct listing *l, const struct memory *m, const struct heap *h,
                     const struct totals *t)
{
        struct json *j = &l->json;

        json_object(j, NULL);
        json_count(j, "pid", m->pid);
        json_string(j, "program", m->program);
        json_string(j, "library", h->library->image->path);
        json_count(j, "live_bytes", t->live);
        json_count(j, "large_bytes", t->large);
        json_count(j, "space_bytes", t->slabs);
        json_count(j, "free_dirty_bytes", t->dirty);
        if (h->resident.known)
                json_count(j, "resident_bytes", t->resident);
        json_count(j, "cache_count", t->caches);
        json_object_end(j);
}

static void add(struct listing *l, const struct fleet_process *p)
{
        for (size_t i = 0; i < p->count; i++) {
                struct totals totals = totals_of(&p->heaps[i]);

                (l->as_json ? add_json : add_row)(l, &p->memory, &p->heaps[i], &totals);
        }
}

static void write_json(struct listing *l, const struct fleet *fleet)
{
        struct json *j = &l->json;

        json_begin(j, stdout);
        json_array(j, "processes");
        for (size_t i = 0; i < fleet->count; i++)
                add(l, &fleet->processes[i]);
        json_array_end(j);
        json_object(j, "refused");
        for (unsigned i = 0; i < FLEET_REASONS; i++)
                json_count(j, fleet_reason_key(i), fleet->refused[i]);
        json_object_end(j);
        json_end(j);
}

static void print(struct listing *l, const struct fleet *fleet)
{
        static const char *const columns[] = { "process", "live", "large", "slabs", "dirty",
                                               "resident", "caches", "library" };

        table_init(&l->table, sizeof columns / sizeof columns[0]);
        table_row(&l->table);
        for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
                table_cell(&l->table, "%s", columns[i]);
        for (size_t i = 0; i < fleet->count; i++)
                add(l, &fleet->processes[i]);
        table_print(&l->table, stdout);
        for (unsigned i = 0; i < FLEET_REASONS; i++)
                if (fleet->refused[i])
                        say(stdout, "%u process%s not looked at: %s\n", fleet->refused[i],
                            fleet->refused[i] == 1 ? "" : "es", fleet_reason_text(i));
}

/* Return: -1, go on; else the exit status. */
static int parse(int argc, char **argv, bool *as_json)
{
        static const struct option long_options[] = {
                { "json", no_argument, NULL, OPTION_FIRST }, { "help", no_argument, NULL, 'h' },
                { 0 }
        };
        int c;

        opterr = 0;
        while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
                if (c == 'h')
                        return option_help(usage, help);
                if (c != OPTION_FIRST)
                        return option_refuse("ps", c, argv, usage);
                *as_json = true;
        }
        if (optind != argc)
                return option_misused("ps", usage, "too much: '%s'", argv[optind]);
        return -1;
}

int cmd_ps(int argc, char **argv)
{
        struct listing l = { 0 };
        struct fleet fleet;
        int status = parse(argc, argv, &l.as_json);

        if (status >= 0)
                return status;
        status = fleet_look(&fleet) ? 0 : STATUS_CANNOT;
        if (status)
                fputs("stook ps: no memory\n", stderr);
        else if (!fleet.count)
                status = STATUS_NONE;
        if (l.as_json)
                write_json(&l, &fleet);
        else
                print(&l, &fleet);
        fleet_release(&fleet);
        return option_printed("ps", status);
}
