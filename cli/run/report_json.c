/*
 * Purpose: what a run left, as JSON. The keys are documented in stook-run(1) and stay.
 */
#include <string.h>
#include "cli/run/report.h"

static void shares_json(const struct shares *s, struct json *j)
{
        json_object(j, "allocated_shares");
        json_number(j, "slot", s->slot);
        json_number(j, "barn", s->barn);
        json_number(j, "slabs", s->slabs);
        json_object_end(j);
}

static void counters_json(const struct stook_cache_stats *s, struct json *j)
{
        json_object(j, "counters");
#define COUNTER(name) json_count(j, #name, s->name);
        STOOK_COUNTERS(COUNTER)
#undef COUNTER
        json_object_end(j);
}

static void cache_fields(const struct stook_cache_stats *s, struct json *j)
{
        struct shares shares;

        json_string(j, "name", s->name);
        json_count(j, "object_size", s->object_size);
        json_count(j, "stride", s->stride);
        json_count(j, "objects_per_slab", s->objects_per_slab);
        json_count(j, "slab_bytes", s->slab_bytes);
        json_count(j, "sheaf_capacity", s->sheaf_capacity);
        json_count(j, "slabs", s->slabs);
        json_count(j, "sheaves", s->sheaves);
        json_count(j, "objects_live", s->objects_live);
        json_count(j, "objects_cached", s->objects_cached);
        json_count(j, "live_bytes", stats_live_bytes(s));
        json_count(j, "cached_bytes", stats_cached_bytes(s));
        json_count(j, "space_bytes", s->slabs * s->slab_bytes);
        json_count(j, "slabs_peak", s->slabs_peak);
        json_count(j, "objects_peak", s->objects_peak);
        json_count(j, "peak_bytes", stats_peak_bytes(s));
        stats_shares(s, &shares);
        shares_json(&shares, j);
        counters_json(s, j);
}

static void caches_json(const struct process *p, struct json *j)
{
        json_array(j, "caches");
        for (size_t i = 0; i < p->count; i++) {
                json_object(j, NULL);
                cache_fields(&p->caches[i], j);
                json_object_end(j);
        }
        json_array_end(j);
        json_count(j, "caches_left_out", p->caches_more);
        json_array(j, "caches_destroyed");
        for (size_t i = 0; i < p->gone_count; i++) {
                json_object(j, NULL);
                json_count(j, "destroyed", p->gone[i].caches);
                cache_fields(&p->gone[i].stats, j);
                json_object_end(j);
        }
        json_array_end(j);
}

static void totals_json(const struct process *p, struct json *j)
{
        struct process_totals t;
        struct shares shares;

        process_totals(p, &t);
        process_shares(p, &shares);
        json_object(j, "totals");
        json_count(j, "slabs", t.counters.slabs);
        json_count(j, "sheaves", t.counters.sheaves);
        json_count(j, "objects_live", t.counters.objects_live);
        json_count(j, "objects_cached", t.counters.objects_cached);
        json_count(j, "live_bytes", t.live_bytes);
        json_count(j, "cached_bytes", t.cached_bytes);
        json_count(j, "space_bytes", t.space_bytes);
        json_count(j, "large_bytes", t.large_bytes);
        shares_json(&shares, j);
        counters_json(&t.counters, j);
        json_object_end(j);
}

static void group_json(const char *key, const struct stook_group_stats *g, struct json *j)
{
        if (!g->stats_size) {
                json_null(j, key);
                return;
        }
        json_object(j, key);
        json_string(j, "name", g->name);
        if (g->limit_bytes)
                json_count(j, "limit_bytes", g->limit_bytes);
        else
                json_null(j, "limit_bytes");
        json_count(j, "usage_bytes", g->usage_bytes);
        json_count(j, "precharge_bytes", g->precharge_bytes);
        json_count(j, "peak_bytes", g->peak_bytes);
        json_count(j, "limit_events", g->limit_events);
        json_count(j, "refusals", g->refusals);
        json_object_end(j);
}

/* NAME=VALUE lines as an object; the names alone as an array. */
static void variables_json(const struct process *p, struct json *j)
{
        char copy[sizeof p->variables], *rest, *line, *value;

        json_object(j, "variables");
        memcpy(copy, p->variables, sizeof copy);
        for (rest = copy; (line = strsep(&rest, "\n"));)
                if ((value = strchr(line, '='))) {
                        *value = 0;
                        json_string(j, line, value + 1);
                }
        json_object_end(j);
        json_array(j, "unknown_variables");
        memcpy(copy, p->variables, sizeof copy);
        for (rest = copy; (line = strsep(&rest, "\n"));)
                if (*line && !strchr(line, '='))
                        json_string(j, NULL, line);
        json_array_end(j);
}

static void process_json(const struct process *p, struct json *j)
{
        static const char *const ends[] = { [PROCESS_ENDED] = "ended",
                                            [PROCESS_REPLACED] = "executed",
                                            [PROCESS_RUNNING] = "running" };
        uint64_t age;

        json_object(j, NULL);
        json_count(j, "pid", p->pid);
        json_count(j, "parent", p->parent);
        json_string(j, "program", p->program);
        json_string(j, "birth", p->birth == STOOK_STATS_BORN_BY_FORK ? "fork" : "exec");
        json_string(j, "end", ends[p->end]);
        json_string(j, "figures", !p->published ? "none" : p->exact ? "exact" : "earlier");
        if (process_age_ms(p, &age))
                json_count(j, "figures_age_ms", age);
        else if (p->exact)
                json_count(j, "figures_age_ms", 0);
        else
                json_null(j, "figures_age_ms");
        if (p->peak_bytes)
                json_count(j, "peak_resident_bytes", p->peak_bytes);
        else
                json_null(j, "peak_resident_bytes");
        variables_json(p, j);
        if (p->published) {
                json_string(j, "backend", p->backend);
                json_object(j, "pages");
                json_count(j, "reserved_bytes", p->reserved_bytes);
                json_count(j, "taken_bytes", p->taken_bytes);
                json_count(j, "free_dirty_bytes", p->free_dirty_bytes);
                json_count(j, "free_clean_bytes", p->free_clean_bytes);
                json_count(j, "metadata_bytes", p->metadata_bytes);
                json_object_end(j);
                group_json("group", &p->group, j);
                json_array(j, "groups");
                for (size_t i = 0; i < p->group_count; i++)
                        group_json(NULL, &p->groups[i], j);
                json_array_end(j);
                json_count(j, "groups_left_out", p->groups_more);
                totals_json(p, j);
                caches_json(p, j);
        }
        json_object_end(j);
}

void report_json(const struct figures *f, const struct run_result *root, struct json *j)
{
        json_object(j, "run");
        json_count(j, "pid", (uint64_t)root->pid);
        json_count(j, "exit_status", (uint64_t)root->status);
        if (root->signal)
                json_count(j, "signal", (uint64_t)root->signal);
        else
                json_null(j, "signal");
        json_number(j, "wall_s", root->wall_s);
        json_number(j, "user_s", root->user_s);
        json_number(j, "sys_s", root->sys_s);
        json_count(j, "peak_resident_bytes", root->peak_bytes);
        json_object_end(j);
        json_array(j, "processes");
        for (size_t i = 0; i < f->count; i++)
                process_json(&f->processes[i], j);
        json_array_end(j);
        json_count(j, "processes_left_out", f->no_room);
}
