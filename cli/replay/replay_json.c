/*
 * Purpose: replays as JSON; see replay_print.h. Its keys stand in stook-replay(1), and stay.
 */
#include "cli/replay/replay_print.h"

static void layers_json(const char *key, const struct replay_layers *l, struct json *j)
{
        json_object(j, key);
        json_count(j, "slot", l->slot);
        json_count(j, "barn", l->barn);
        json_count(j, "slabs", l->slabs);
        json_object_end(j);
}

static void list_json(const struct replay_list *l, const char *path, struct json *j)
{
        json_object(j, "trace");
        json_string(j, "file", path);
        json_count(j, "events", l->count);
        json_count(j, "cache_count", l->cache_count);
        json_count(j, "cpu_count", l->cpu_count);
        json_count(j, "nanoseconds", l->count ? l->events[l->count - 1].at_ns : 0);
        json_count(j, "frees_before", l->frees_before);
        json_count(j, "frees_of_null", l->frees_of_null);
        json_count(j, "frees_implied", l->frees_implied);
        json_count(j, "frees_by_rcu", l->frees_by_rcu);
        json_count(j, "failed_allocations", l->failed);
        json_count(j, "other_events", l->other_events);
        json_count(j, "lost_events", l->lost);
        json_count(j, "filtered_events", l->filtered);
        json_count(j, "cut_bytes", l->cut_bytes);
        json_count(j, "damaged_bytes", l->damage.bytes);
        json_object_end(j);
}

static void chosen_json(const char *key, int value, struct json *j)
{
        if (value < 0)
                json_null(j, key);
        else
                json_count(j, key, (uint64_t)value);
}

static void settings_json(const struct replay_result *r, struct json *j)
{
        json_object(j, "settings");
        chosen_json("sheaf_capacity", r->settings.capacity, j);
        chosen_json("barn_full", r->settings.barn_full, j);
        chosen_json("barn_empty", r->settings.barn_empty, j);
        json_count(j, "slot_count", r->settings.slots);
        json_count(j, "node_count", r->settings.nodes);
        json_string(j, "backend", r->backend);
        json_object_end(j);
}

static void cache_json(const struct stook_cache_stats *s, struct json *j)
{
        struct replay_layers allocs, frees;

        replay_layers(s, &allocs, &frees);
        json_object(j, NULL);
        json_string(j, "name", s->name);
        json_count(j, "object_size", s->object_size);
        json_count(j, "stride", s->stride);
        json_count(j, "sheaf_capacity", s->sheaf_capacity);
        json_count(j, "slabs", s->slabs);
        json_count(j, "space_bytes", s->slabs * s->slab_bytes);
        json_count(j, "objects_live", s->objects_live);
        json_count(j, "objects_cached", s->objects_cached);
        layers_json("allocated_from", &allocs, j);
        layers_json("freed_to", &frees, j);
        json_object(j, "counters");
#define COUNTER(name) json_count(j, #name, s->name);
        STOOK_COUNTERS(COUNTER)
#undef COUNTER
        json_object_end(j);
        json_object_end(j);
}

static void sample_json(const char *key, const struct replay_sample *s, bool with_place,
                        struct json *j)
{
        json_object(j, key);
        if (with_place) {
                json_count(j, "event", s->event);
                json_count(j, "at_ns", s->at_ns);
        }
        json_count(j, "live_bytes", s->live_bytes);
        json_count(j, "taken_bytes", s->taken_bytes);
        json_count(j, "resident_bytes", s->resident_bytes);
        json_object_end(j);
}

static void ns_json(const struct replay_result *r, struct json *j)
{
        if (!r->settings.timed) {
                json_null(j, "ns_per_call");
                return;
        }
        json_object(j, "ns_per_call");
        json_number(j, "min", r->ns_per_call.min);
        json_number(j, "median", r->ns_per_call.median);
        json_number(j, "max", r->ns_per_call.max);
        json_count(j, "runs", r->settings.timed);
        json_object_end(j);
}

static void result_json(const struct replay_list *l, const struct replay_result *r, struct json *j)
{
        json_object(j, NULL);
        settings_json(r, j);
        json_count(j, "calls", r->calls);
        json_count(j, "failed", r->failed);
        json_count(j, "live_objects", r->live_objects);
        ns_json(r, j);
        layers_json("allocated_from", &r->allocs, j);
        layers_json("freed_to", &r->frees, j);
        sample_json("peak", &r->peak, false, j);
        json_array(j, "samples");
        for (size_t i = 0; i < r->sample_count; i++)
                sample_json(NULL, &r->samples[i], true, j);
        json_array_end(j);
        json_array(j, "caches");
        for (size_t i = 0; i < l->cache_count; i++)
                cache_json(&r->stats[i], j);
        json_array_end(j);
        json_object_end(j);
}

static void advice_json(const struct replay_answer *a, struct json *j)
{
        json_array(j, "advised");
        for (size_t i = 0; i < a->advices; i++) {
                const struct replay_advice *advice = &a->advice[i];
                const struct replay_result *r = &a->results[advice->result];
                const struct stook_cache_stats *s = &r->stats[advice->cache];
                struct replay_layers layers = replay_cache_layers(r, advice->cache);

                json_object(j, NULL);
                json_string(j, "cache", s->name);
                json_count(j, "replay", advice->result);
                json_count(j, "calls", advice->calls);
                json_count(j, "slot_count", r->settings.slots);
                json_count(j, "node_count", r->settings.nodes);
                json_count(j, "sheaf_capacity", s->sheaf_capacity);
                chosen_json("barn_full", r->settings.barn_full, j);
                chosen_json("barn_empty", r->settings.barn_empty, j);
                layers_json("answered_by", &layers, j);
                json_count(j, "kept_bytes", replay_kept_bytes(r, advice->cache));
                json_count(j, "peak_bytes", s->slabs_peak * s->slab_bytes);
                json_object_end(j);
        }
        json_array_end(j);
}

static void kernel_json(const struct replay_answer *a, struct json *j)
{
        json_object(j, "kernel");
        json_string(j, "folder", a->folder);
        json_array(j, "caches");
        for (size_t i = 0; i < a->list->cache_count; i++) {
                const struct replay_kernel_cache *k = &a->kernel[i];
                struct replay_layers allocs, frees;

                if (!k->is_there)
                        continue;
                replay_layers(&a->as_kernel.stats[i], &allocs, &frees);
                json_object(j, NULL);
                json_string(j, "name", a->list->caches[i].name);
                json_count(j, "object_size", k->object_size);
                if (k->has_sheaves)
                        json_count(j, "sheaf_capacity", k->sheaf_capacity);
                else
                        json_null(j, "sheaf_capacity");
                json_bool(j, "shared", k->is_shared);
                json_bool(j, "counted", k->is_counted);
                layers_json("allocated_from", &k->allocs, j);
                layers_json("freed_to", &k->frees, j);
                layers_json("replay_allocated_from", &allocs, j);
                layers_json("replay_freed_to", &frees, j);
                json_object_end(j);
        }
        json_array_end(j);
        json_object_end(j);
}

void replay_json(const struct replay_answer *a, struct json *j)
{
        list_json(a->list, a->path, j);
        json_array(j, "replays");
        for (size_t i = 0; i < a->count; i++)
                result_json(a->list, &a->results[i], j);
        json_array_end(j);
        if (a->advice)
                advice_json(a, j);
        if (a->kernel)
                kernel_json(a, j);
}

bool replay_json_usual(const char *path, struct json *j, char *message, size_t bytes)
{
        const struct replay_grid grid = { .count = 0 };
        struct replay_result result = { .samples = NULL };
        struct replay_list list;
        struct replay_answer a = { .list = &list, .path = path, .grid = &grid, .results = &result,
                                   .count = 1 };
        bool fine = replay_list_read(&list, path, message, bytes);

        if (!fine)
                return false;
        if (!list.count)
                snprintf(message, bytes, "%s: it has no allocation", path);
        fine = list.count && replay_watch(&list, &replay_settings_usual, &result, message, bytes);
        if (fine) {
                json_object(j, "replay");
                replay_json(&a, j);
                json_object_end(j);
                replay_result_release(&result);
        }
        replay_list_release(&list);
        return fine;
}
