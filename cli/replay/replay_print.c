/*
 * Purpose: the text of `stook replay`; see replay_print.h.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/replay/replay_print.h"
#include "cli/text/plain_text.h"
#include "cli/text/table.h"

static const char *const headings[] = { "cache", "size", "sheaf", "allocated", "slot%", "barn%",
                                        "slab%", "freed", "slot%", "barn%", "slab%", "live",
                                        "slabs", "slab bytes" };
#define COLUMNS (sizeof headings / sizeof headings[0])

static void print_count(uint64_t count, const char *one, const char *more, FILE *out)
{
        if (count)
                say(out, "  %llu %s\n", (unsigned long long)count, count == 1 ? one : more);
}

void replay_print_list(const struct replay_list *l, const char *path, FILE *out)
{
        uint64_t span_ns = l->count ? l->events[l->count - 1].at_ns : 0;
        char span[32];

        say(out, "%s: %zu events of %zu %s on %u %s, over %s\n", path, l->count, l->cache_count,
            l->cache_count == 1 ? "cache" : "caches", l->cpu_count,
            l->cpu_count == 1 ? "CPU" : "CPUs",
            seconds_text((double)span_ns / 1e9, span, sizeof span));
        print_count(l->frees_before, "free of an older object is left out",
                    "frees of objects older than the trace are left out", out);
        print_count(l->frees_of_null, "free of a null pointer is left out",
                    "frees of null pointers are left out", out);
        print_count(l->failed, "failed allocation is left out",
                    "failed allocations are left out", out);
        print_count(l->filtered, "event of another cache is left out",
                    "events of other caches are left out", out);
        print_count(l->other_events, "other event is left out", "other events are left out", out);
        print_count(l->lost, "event was lost when the trace was recorded",
                    "events were lost when the trace was recorded", out);
        print_count(l->frees_implied,
                    "free is not in the trace: it is replayed where its address is used again",
                    "frees are not in the trace: each is replayed where its address is used again",
                    out);
        print_count(l->frees_by_rcu, "free by RCU is replayed as a plain one",
                    "frees by RCU are replayed as plain ones", out);
        print_count(l->cut_bytes, "byte at its end is left out: the trace ends early",
                    "bytes at its end are left out: the trace ends early", out);
        if (l->damage.bytes)
                say(out, "  %llu bytes are left out: damaged at byte %llu: %s\n",
                    (unsigned long long)l->damage.bytes, (unsigned long long)l->damage.at,
                    l->damage.what);
}

static void chosen_text(int value, char *buffer, size_t size)
{
        if (value < 0)
                snprintf(buffer, size, "default");
        else
                snprintf(buffer, size, "%d", value);
}

static void print_settings(const struct replay_result *r, FILE *out)
{
        char capacity[16], full[16], empty[16];

        chosen_text(r->settings.capacity, capacity, sizeof capacity);
        chosen_text(r->settings.barn_full, full, sizeof full);
        chosen_text(r->settings.barn_empty, empty, sizeof empty);
        say(out, "replayed with: capacity %s, barn-full %s, barn-empty %s, %u %s, %u %s; "
            "backend %s\n", capacity, full, empty, r->settings.slots,
            r->settings.slots == 1 ? "slot" : "slots", r->settings.nodes,
            r->settings.nodes == 1 ? "node" : "nodes", r->backend);
}

void replay_print_layers(struct table *t, const struct replay_layers *l)
{
        double all = (double)(l->slot + l->barn + l->slabs);

        if (all > 0) {
                table_percent(t, (double)l->slot / all);
                table_percent(t, (double)l->barn / all);
                table_percent(t, (double)l->slabs / all);
        } else {
                for (unsigned i = 0; i < 3; i++)
                        table_cell(t, "-");
        }
}

static void cache_row(struct table *t, const struct stook_cache_stats *s)
{
        struct replay_layers allocs, frees;

        replay_layers(s, &allocs, &frees);
        table_row(t);
        table_cell(t, "%s", s->name);
        table_count(t, s->object_size);
        table_count(t, s->sheaf_capacity);
        table_count(t, s->alloc_fastpath + s->alloc_slowpath);
        replay_print_layers(t, &allocs);
        table_count(t, s->free_fastpath + s->free_slowpath);
        replay_print_layers(t, &frees);
        table_count(t, s->objects_live);
        table_count(t, s->slabs);
        table_bytes(t, s->slabs * s->slab_bytes);
}

static void total_row(struct table *t, const struct replay_list *l, const struct replay_result *r)
{
        uint64_t live = 0, slabs = 0, bytes = 0;

        for (size_t i = 0; i < l->cache_count; i++) {
                live += r->stats[i].objects_live;
                slabs += r->stats[i].slabs;
                bytes += r->stats[i].slabs * r->stats[i].slab_bytes;
        }
        table_row(t);
        table_cell(t, "total");
        table_cell(t, "-");
        table_cell(t, "-");
        table_count(t, r->allocs.slot + r->allocs.barn + r->allocs.slabs);
        replay_print_layers(t, &r->allocs);
        table_count(t, r->frees.slot + r->frees.barn + r->frees.slabs);
        replay_print_layers(t, &r->frees);
        table_count(t, live);
        table_count(t, slabs);
        table_bytes(t, bytes);
}

static uint64_t allocated(const struct stook_cache_stats *s)
{
        return s->alloc_fastpath + s->alloc_slowpath;
}

static int busiest_first(const void *a, const void *b)
{
        const struct stook_cache_stats *x = *(const struct stook_cache_stats *const *)a;
        const struct stook_cache_stats *y = *(const struct stook_cache_stats *const *)b;

        if (allocated(x) != allocated(y))
                return allocated(x) > allocated(y) ? -1 : 1;
        return strcmp(x->name, y->name);
}

static void print_caches(const struct replay_list *l, const struct replay_result *r, FILE *out)
{
        const struct stook_cache_stats **order = calloc(l->cache_count + 1, sizeof *order);
        struct table t;

        if (!order)
                return;
        for (size_t i = 0; i < l->cache_count; i++)
                order[i] = &r->stats[i];
        qsort(order, l->cache_count, sizeof *order, busiest_first);
        table_init(&t, COLUMNS);
        table_row(&t);
        for (size_t i = 0; i < COLUMNS; i++)
                table_cell(&t, "%s", headings[i]);
        for (size_t i = 0; i < l->cache_count; i++)
                cache_row(&t, order[i]);
        total_row(&t, l, r);
        table_print(&t, out);
        free(order);
}

static void print_memory(const char *name, const struct replay_sample *s, FILE *out)
{
        char live[32], taken[32], resident[32];

        say(out, "memory %s: %s wanted, %s in slabs and large objects, %s resident\n", name,
            bytes_text(s->live_bytes, live, sizeof live),
            bytes_text(s->taken_bytes, taken, sizeof taken),
            bytes_text(s->resident_bytes, resident, sizeof resident));
}

static void print_time(const struct replay_result *r, FILE *out)
{
        if (r->settings.timed)
                say(out, "time: %.1f ns of processor time a call (least %.1f, most %.1f of %u "
                    "runs), ", r->ns_per_call.median, r->ns_per_call.min, r->ns_per_call.max,
                    r->settings.timed);
        say(out, "%llu calls\n", (unsigned long long)r->calls);
}

static void print_one(const struct replay_list *l, const struct replay_result *r, FILE *out)
{
        print_settings(r, out);
        fputc('\n', out);
        print_caches(l, r, out);
        fputc('\n', out);
        print_time(r, out);
        print_memory("at most", &r->peak, out);
        if (r->sample_count)
                print_memory("at the end", &r->samples[r->sample_count - 1], out);
        if (r->failed)
                say(out, "%llu allocations got no memory\n", (unsigned long long)r->failed);
}

void replay_print(const struct replay_answer *a, FILE *out)
{
        if (a->grid->count)
                replay_print_grid(a, out);
        else
                print_one(a->list, &a->results[0], out);
        if (a->advice)
                replay_print_advice(a, out);
        if (a->kernel)
                replay_print_kernel(a, out);
}
