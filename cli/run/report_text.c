/*
 * Purpose: the tables of `stook run --stats`; see report.h.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/run/report.h"
#include "cli/text/plain_text.h"
#include "cli/text/table.h"

#define TABLES_MAX    4                 /* processes with a table of their own each */
#define BESIDE_MIN    ((uint64_t)16 << 20)      /* less beside a group is not told; arbitrary */
#define SUMMARIES_MAX 20                /* lines, where they are more */

/* At most 100 letters wide: what is left out or rounded is in the JSON. */
static const char *const headings[] = {
        "cache", "size", "live", "bytes", "cached", "slabs", "peak", "allocs", "slot/barn%",
        "filled", "flushed"
};
#define COLUMNS (sizeof headings / sizeof headings[0])
static const char *const summary_headings[] = {
        "program", "pid", "peak", "live", "cached", "slabs", "large", "allocs", "figures"
};
#define SUMMARY_COLUMNS (sizeof summary_headings / sizeof summary_headings[0])

static void counters_cells(struct table *t, const struct stook_cache_stats *s, uint64_t live_bytes,
                           uint64_t cached_bytes, uint64_t space_bytes, uint64_t peak_bytes,
                           const struct shares *shares)
{
        table_count_short(t, s->objects_live);
        table_bytes_short(t, live_bytes);
        table_bytes_short(t, cached_bytes);
        table_bytes_short(t, space_bytes);
        if (peak_bytes)
                table_bytes_short(t, peak_bytes);
        else
                table_cell(t, "-");
        table_count_short(t, s->alloc_fastpath + s->alloc_slowpath);
        table_cell(t, "%.0f/%.0f", shares->slot * 100, shares->barn * 100);
        table_count_short(t, s->sheaf_refill);
        table_count_short(t, s->sheaf_flush);
}

static void cache_cells(struct table *t, const struct stook_cache_stats *s)
{
        struct shares shares;

        stats_shares(s, &shares);
        table_count(t, s->object_size);
        counters_cells(t, s, stats_live_bytes(s), stats_cached_bytes(s), s->slabs * s->slab_bytes,
                       stats_peak_bytes(s), &shares);
}

static int by_size(const void *a, const void *b)
{
        const struct stook_cache_stats *x = a, *y = b;

        if (x->stride != y->stride)
                return x->stride < y->stride ? -1 : 1;
        return strcmp(x->name, y->name);
}

static void when_text(const struct process *p, char *buffer, size_t size)
{
        uint64_t age;

        if (!p->published)
                snprintf(buffer, size, "no figures: it %s without many calls to the allocator",
                         p->end == PROCESS_REPLACED ? "executed another program" :
                         p->end == PROCESS_RUNNING ? "is still running," :
                         "ended other than by exit(),");
        else if (p->exact)
                snprintf(buffer, size, "at exit");
        else if (process_age_ms(p, &age))
                snprintf(buffer, size, "as of %llu ms before %s", (unsigned long long)age,
                         p->end == PROCESS_REPLACED ? "it executed another program" : "its end");
        else
                snprintf(buffer, size, "%sas of one of its last slow calls",
                         p->end == PROCESS_RUNNING ? "still running, " : "");
}

/* The same for a column of the summary. */
static void when_short(const struct process *p, char *buffer, size_t size)
{
        uint64_t age;

        if (!p->published)
                snprintf(buffer, size, "none left");
        else if (p->exact)
                snprintf(buffer, size, "at exit");
        else if (process_age_ms(p, &age))
                snprintf(buffer, size, "%llu ms before %s", (unsigned long long)age,
                         p->end == PROCESS_REPLACED ? "exec" : "the end");
        else
                snprintf(buffer, size, p->end == PROCESS_RUNNING ? "still running" : "late");
}

static void print_group(const struct stook_group_stats *g, const char *name, FILE *out)
{
        char used[32], limit[32] = "no limit", peak[32];

        if (!g->stats_size)
                return;
        if (g->limit_bytes)
                bytes_text(g->limit_bytes, limit, sizeof limit);
        say(out, "group%s%s: %s of %s in use, %s at most; %llu %s refused\n",
            *name ? " " : "", name, bytes_text(g->usage_bytes, used, sizeof used), limit,
            bytes_text(g->peak_bytes, peak, sizeof peak), (unsigned long long)g->refusals,
            g->refusals == 1 ? "allocation was" : "allocations were");
}

static void print_groups(const struct process *p, FILE *out)
{
        print_group(&p->group, "", out);
        for (size_t i = 0; i < p->group_count; i++)
                /* The process's own was the first. */
                if (!p->group.stats_size || strcmp(p->groups[i].name, p->group.name))
                        print_group(&p->groups[i], p->groups[i].name, out);
        if (p->groups_more)
                say(out, "(%u further groups are not shown)\n", p->groups_more);
}

/* Lines with a '=' (@known), or those without, in a row. */
static void print_variables(const char *variables, bool known, const char *title, FILE *out)
{
        char copy[STOOK_STATS_PAGE_VARIABLES], *rest = copy, *line;
        unsigned shown = 0;

        snprintf(copy, sizeof copy, "%s", variables);
        while ((line = strsep(&rest, "\n")))
                if (*line && known == (strchr(line, '=') != NULL))
                        say(out, "%s%s", shown++ ? " " : title, line);
        if (shown)
                fputc('\n', out);
}

void report_group(const struct figures *f, bool after_print, FILE *out)
{
        const struct process *refused = NULL, *beside = NULL;
        unsigned long long refusals = 0;
        char resident[32], counted[32], limit[32];

        for (size_t i = 0; i < f->count; i++) {
                const struct process *p = &f->processes[i];
                const struct stook_group_stats *g = &p->group;

                if (!g->stats_size)
                        continue;
                if (g->refusals && (!refused || g->refusals > refused->group.refusals))
                        refused = p;
                refusals += g->refusals;
                if (p->peak_bytes > g->peak_bytes + BESIDE_MIN &&
                    p->peak_bytes - g->peak_bytes > g->limit_bytes &&
                    (!beside || p->peak_bytes > beside->peak_bytes))
                        beside = p;
        }
        if (refused && !(after_print && f->count <= TABLES_MAX)) {
                say(out, "stook: %s (pid %u): %llu %s refused beyond the group limit of %s",
                    refused->program, refused->pid, (unsigned long long)refused->group.refusals,
                    refused->group.refusals == 1 ? "allocation was" : "allocations were",
                    bytes_text(refused->group.limit_bytes, limit, sizeof limit));
                if (refusals > refused->group.refusals)
                        say(out, " (%llu in all processes)", refusals);
                fputc('\n', out);
        }
        if (beside)
                say(out, "stook: note: %s (pid %u) was resident with %s, of which its group "
                    "counted %s at most: what a program maps by itself (mmap), its code and "
                    "its stacks do not count\n", beside->program, beside->pid,
                    bytes_text(beside->peak_bytes, resident, sizeof resident),
                    bytes_text(beside->group.peak_bytes, counted, sizeof counted));
}

static void print_heading(const struct process *p, FILE *out)
{
        char when[120], text[32];

        when_text(p, when, sizeof when);
        say(out, "\n%s (pid %u%s), %s", p->program, p->pid,
            p->birth == STOOK_STATS_BORN_BY_FORK ? ", forked" : "", when);
        if (p->peak_bytes)
                say(out, ", peak resident %s", bytes_text(p->peak_bytes, text, sizeof text));
        fputs("\n", out);
}

/* The largest first, then those that were destroyed, then the sums. */
static void print_caches(const struct process *p, const struct process_totals *totals, FILE *out)
{
        struct shares shares;
        struct table t;

        qsort(p->caches, p->count, sizeof *p->caches, by_size);
        table_init(&t, COLUMNS);
        table_row(&t);
        for (size_t i = 0; i < COLUMNS; i++)
                table_cell(&t, "%s", headings[i]);
        for (size_t i = 0; i < p->count; i++) {
                table_row(&t);
                table_cell(&t, "%s", p->caches[i].name);
                cache_cells(&t, &p->caches[i]);
        }
        for (size_t i = 0; i < p->gone_count; i++) {
                const struct gone_caches *gone = &p->gone[i];

                table_row(&t);
                if (gone->caches == 1)
                        table_cell(&t, "%s (destroyed)", gone->stats.name);
                else
                        table_cell(&t, "%s (%llu destroyed)", gone->stats.name,
                                   (unsigned long long)gone->caches);
                cache_cells(&t, &gone->stats);
        }
        process_shares(p, &shares);
        table_row(&t);
        table_cell(&t, "total");
        table_cell(&t, "-");
        counters_cells(&t, &totals->counters, totals->live_bytes, totals->cached_bytes,
                       totals->space_bytes, 0, &shares);
        table_print(&t, out);
}

static void print_process(const struct process *p, FILE *out)
{
        struct process_totals totals;
        char text[32];

        print_heading(p, out);
        if (!p->published)
                return;
        process_totals(p, &totals);
        print_caches(p, &totals, out);
        say(out, "objects above 128 KiB: %s", bytes_text(totals.large_bytes, text, sizeof text));
        say(out, "; free pages kept: %s", bytes_text(p->free_dirty_bytes, text, sizeof text));
        say(out, "\nthe allocator's own data: %s",
            bytes_text(p->metadata_bytes, text, sizeof text));
        say(out, "; backend %s\n", p->backend[0] ? p->backend : "unknown");
        print_groups(p, out);
        print_variables(p->variables, true, "settings: ", out);
        print_variables(p->variables, false, "variables that Stook does not read: ", out);
        if (p->caches_more)
                say(out, "(%u further caches are not shown)\n", p->caches_more);
}

static uint64_t heap_bytes(const struct process *p)
{
        return p->taken_bytes + p->free_dirty_bytes;
}

static int biggest_first(const void *a, const void *b)
{
        const struct process *x = *(const struct process *const *)a;
        const struct process *y = *(const struct process *const *)b;

        if (heap_bytes(x) != heap_bytes(y))
                return heap_bytes(x) > heap_bytes(y) ? -1 : 1;
        return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void print_summary(const struct figures *f, FILE *out)
{
        const struct process **order = malloc(f->count * sizeof *order);
        struct table t;
        char when[40];

        if (!order)
                return;
        for (size_t i = 0; i < f->count; i++)
                order[i] = &f->processes[i];
        qsort(order, f->count, sizeof *order, biggest_first);
        say(out, "\n%zu processes", f->count);
        if (f->count > SUMMARIES_MAX)
                say(out, "; the %d with the biggest heaps", SUMMARIES_MAX);
        fputs(":\n", out);
        table_init(&t, SUMMARY_COLUMNS);
        table_row(&t);
        for (size_t i = 0; i < SUMMARY_COLUMNS; i++)
                table_cell(&t, "%s", summary_headings[i]);
        for (size_t i = 0; i < f->count && i < SUMMARIES_MAX; i++) {
                const struct process *p = order[i];
                struct process_totals totals;

                process_totals(p, &totals);
                when_short(p, when, sizeof when);
                table_row(&t);
                table_cell(&t, "%s", p->program);
                table_cell(&t, "%u", p->pid);
                if (p->peak_bytes)
                        table_bytes_short(&t, p->peak_bytes);
                else
                        table_cell(&t, "-");
                table_bytes_short(&t, totals.live_bytes);
                table_bytes_short(&t, totals.cached_bytes);
                table_bytes_short(&t, totals.space_bytes);
                table_bytes_short(&t, totals.large_bytes);
                table_count_short(&t, totals.counters.alloc_fastpath +
                                      totals.counters.alloc_slowpath);
                table_cell(&t, "%s", when);
        }
        table_print(&t, out);
        fputs("\nThe biggest:", out);
        print_process(order[0], out);
        fputs("(all processes and all counters: --json)\n", out);
        free(order);
}

/* Python's own arenas hold its small objects: the table would show a fraction of its memory. */
static void say_hidden(const struct figures *f, FILE *out)
{
        const char *chosen = getenv("PYTHONMALLOC");

        if (chosen && strncmp(chosen, "malloc", 6) == 0)
                return;
        for (size_t i = 0; i < f->count; i++)
                if (!strncmp(f->processes[i].program, "python", 6)) {
                        say(out, "stook: note: %s keeps objects of up to 512 bytes in memory "
                            "that it maps by itself; PYTHONMALLOC=malloc shows them here\n",
                            f->processes[i].program);
                        return;
                }
}

void report_print(const struct figures *f, const struct run_result *root, const char *program,
                  FILE *out)
{
        char wall[32], cpu[32], peak[32], end[64];

        if (root->signal)
                snprintf(end, sizeof end, "signal %d (%s)", root->signal, strsignal(root->signal));
        else
                snprintf(end, sizeof end, "exit status %d", root->status);
        say(out, "\nstook: %s: %s, %s (%s of processor time), peak resident %s%s\n", program,
            end, seconds_text(root->wall_s, wall, sizeof wall),
            seconds_text(root->cpu_s, cpu, sizeof cpu),
            bytes_text(root->peak_bytes, peak, sizeof peak),
            f->count > 1 ? " (largest process)" : "");
        if (!f->count && !f->no_file)
                fputs("stook: no process left figures: the drop-in was not loaded, or could not "
                      "open the file for them\n", out);
        if (f->count <= TABLES_MAX)
                for (size_t i = 0; i < f->count; i++)
                        print_process(&f->processes[i], out);
        else
                print_summary(f, out);
        say_hidden(f, out);
        if (f->no_room)
                say(out, "(%llu further processes found no room for their figures)\n",
                    (unsigned long long)f->no_room);
}
