/*
 * Purpose: the tables of `stook replay` that compare settings: the cells of a grid, what is advised
 * for each cache, and a kernel's own figures beside a replay; see replay_print.h.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/replay/replay_print.h"
#include "cli/text/plain_text.h"

void replay_print_grid(const struct replay_answer *a, FILE *out)
{
        static const char *const columns[] = { "alloc slot%", "barn%", "slab%", "free slot%",
                                               "barn%", "slab%", "ns/call", "slabs", "resident" };
        const struct replay_grid *grid = a->grid;
        struct table t;

        table_init(&t, grid->count + sizeof columns / sizeof columns[0]);
        table_row(&t);
        for (unsigned s = 0; s < grid->count; s++)
                table_cell(&t, "%s", grid->sweep[s].of->name);
        for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
                table_cell(&t, "%s", columns[i]);
        for (size_t i = 0; i < a->count; i++) {
                const struct replay_result *r = &a->results[i];

                table_row(&t);
                for (unsigned s = 0; s < grid->count; s++)
                        table_cell(&t, "%s", grid->sweep[s].values[replay_grid_index(grid, s, i)]);
                replay_print_layers(&t, &r->allocs);
                replay_print_layers(&t, &r->frees);
                if (r->settings.timed)
                        table_cell(&t, "%.1f", r->ns_per_call.median);
                else
                        table_cell(&t, "-");
                table_bytes(&t, r->peak.taken_bytes);
                table_bytes(&t, r->peak.resident_bytes);
        }
        table_print(&t, out);
}

/* ---- what is advised ---- */

static void limit_cell(struct table *t, int limit)
{
        if (limit < 0)
                table_cell(t, "-");
        else
                table_count(t, (uint64_t)limit);
}

static bool is_swept(const struct replay_grid *grid, const char *name)
{
        for (unsigned s = 0; s < grid->count; s++)
                if (!strcmp(grid->sweep[s].of->name, name))
                        return true;
        return false;
}

void replay_print_advice(const struct replay_answer *a, FILE *out)
{
        static const char *const columns[] = { "capacity", "full", "empty", "slot%", "barn%",
                                               "slab%", "kept", "slabs" };
        const size_t count = sizeof columns / sizeof columns[0];
        bool slots = is_swept(a->grid, "slots"), nodes = is_swept(a->grid, "nodes");
        struct table t;

        say(out, "\nadvised: least memory kept in sheaves, with at most one trip to the barn in %d "
            "calls\nmore than the best\n", ADVICE_CALLS);
        table_init(&t, (unsigned)count + 2 + slots + nodes);
        table_row(&t);
        table_cell(&t, "cache");
        table_cell(&t, "calls");
        if (slots)
                table_cell(&t, "slots");
        if (nodes)
                table_cell(&t, "nodes");
        for (size_t i = 0; i < count; i++)
                table_cell(&t, "%s", columns[i]);
        for (size_t i = 0; i < a->advices; i++) {
                const struct replay_advice *advice = &a->advice[i];
                const struct replay_result *r = &a->results[advice->result];
                const struct stook_cache_stats *s = &r->stats[advice->cache];
                struct replay_layers layers = replay_cache_layers(r, advice->cache);

                table_row(&t);
                table_cell(&t, "%s", s->name);
                table_count(&t, advice->calls);
                if (slots)
                        table_count(&t, r->settings.slots);
                if (nodes)
                        table_count(&t, r->settings.nodes);
                table_count(&t, s->sheaf_capacity);
                limit_cell(&t, r->settings.barn_full);
                limit_cell(&t, r->settings.barn_empty);
                replay_print_layers(&t, &layers);
                table_bytes(&t, replay_kept_bytes(r, advice->cache));
                table_bytes(&t, s->slabs_peak * s->slab_bytes);
        }
        table_print(&t, out);
        if (a->few)
                say(out, "%zu %s of fewer than %d calls: too few to say\n", a->few,
                    a->few == 1 ? "cache" : "caches", ADVICE_LEAST);
}

/* ---- a kernel beside it ---- */

static void share_cells(struct table *t, const struct replay_layers *l)
{
        double all = (double)(l->slot + l->barn + l->slabs);

        if (all > 0) {
                table_percent(t, (double)l->slot / all);
                table_percent(t, (double)l->slabs / all);
        } else {
                table_cell(t, "-");
                table_cell(t, "-");
        }
}

/* On as many slots and nodes as the replay with the kernel's capacities has. */
static void advised_cell(struct table *t, const struct replay_answer *a, uint32_t cache)
{
        for (size_t i = 0; i < a->advices; i++) {
                const struct replay_result *r = &a->results[a->advice[i].result];

                if (a->advice[i].cache == cache &&
                    r->settings.slots == a->as_kernel.settings.slots &&
                    r->settings.nodes == a->as_kernel.settings.nodes) {
                        table_count(t, r->stats[cache].sheaf_capacity);
                        return;
                }
        }
        table_cell(t, "-");
}

static void kernel_row(struct table *t, const struct replay_answer *a, uint32_t cache,
                       bool counted)
{
        const struct replay_kernel_cache *k = &a->kernel[cache];
        struct replay_layers layers = replay_cache_layers(&a->as_kernel, cache), allocs, frees;

        replay_layers(&a->as_kernel.stats[cache], &allocs, &frees);
        table_row(t);
        table_cell(t, "%s%s", a->list->caches[cache].name, k->is_shared ? " *" : "");
        table_count(t, layers.slot + layers.barn + layers.slabs);
        table_count(t, k->object_size);
        if (k->has_sheaves)
                table_count(t, k->sheaf_capacity);
        else
                table_cell(t, "-");
        advised_cell(t, a, cache);
        share_cells(t, &allocs);
        share_cells(t, &frees);
        if (counted) {
                share_cells(t, &k->allocs);
                share_cells(t, &k->frees);
        }
}

/* Those of the trace with most calls first: as the caches of one replay. */
static int busiest_first(const void *a, const void *b)
{
        const struct replay_advice *x = a, *y = b;

        if (x->calls != y->calls)
                return x->calls > y->calls ? -1 : 1;
        return x->cache < y->cache ? -1 : 1;
}

static void print_kernel_table(const struct replay_answer *a, bool counted, FILE *out)
{
        static const char *const columns[] = {
                "cache", "calls", "size", "sheaf", "advised", "alloc slot%", "slab%", "free slot%",
                "slab%", "kernel's alloc slot%", "slab%", "free slot%", "slab%"
        };
        size_t count = sizeof columns / sizeof columns[0] - (counted ? 0 : 4), n = 0;
        struct replay_advice *order = calloc(a->list->cache_count + 1, sizeof *order);
        struct table t;

        for (uint32_t i = 0; order && i < a->list->cache_count; i++) {
                struct replay_layers l = replay_cache_layers(&a->as_kernel, i);

                if (a->kernel[i].is_there)
                        order[n++] = (struct replay_advice){ i, 0, l.slot + l.barn + l.slabs };
        }
        if (order)
                qsort(order, n, sizeof *order, busiest_first);
        table_init(&t, (unsigned)count);
        table_row(&t);
        for (size_t i = 0; i < count; i++)
                table_cell(&t, "%s", columns[i]);
        for (size_t i = 0; i < n; i++)
                kernel_row(&t, a, order[i].cache, counted);
        table_print(&t, out);
        free(order);
}

void replay_print_kernel(const struct replay_answer *a, FILE *out)
{
        size_t there = 0, sheaves = 0, counted = 0, shared = 0;

        for (uint32_t i = 0; i < a->list->cache_count; i++) {
                const struct replay_kernel_cache *k = &a->kernel[i];

                there += k->is_there;
                sheaves += k->has_sheaves && k->sheaf_capacity;
                counted += k->is_counted;
                shared += k->is_there && k->is_shared;
        }
        say(out, "\nthe kernel of %s: %zu of the trace's %zu caches, %zu with sheaves\n",
            a->folder, there, a->list->cache_count, sheaves);
        say(out, "  shares: of a replay with its capacities%s\n",
            counted ? ", and of its counters"
                    : "; it counts no calls itself: it was built without CONFIG_SLUB_STATS");
        if (shared)
                say(out, "  * merged with other caches%s\n",
                    counted ? ", whose calls are among the kernel's" : "");
        print_kernel_table(a, counted, out);
}
