/*
 * Purpose: `stook info --json`; see info.h. Keys stay what they are from version to version. Keys
 * of counters are the kernel's names of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/info/info.h"
#include "policy/constants.h"

static void write_shares(const struct heap_cache *c, struct json *j)
{
        json_object(j, "slabs_by_objects_out");
        json_count(j, "none", c->shares[0]);
        json_count(j, "to_25_percent", c->shares[1]);
        json_count(j, "to_50_percent", c->shares[2]);
        json_count(j, "to_75_percent", c->shares[3]);
        json_count(j, "below_100_percent", c->shares[4]);
        json_count(j, "all", c->shares[5]);
        json_object_end(j);
        json_count(j, "pinned_slabs", c->pinned_slabs);
        json_count(j, "pinned_bytes", c->pinned_bytes);
        json_count(j, "free_pages_in_slabs", c->free_pages);
}

static void write_nodes(const struct heap *h, const struct heap_cache *c, struct json *j)
{
        json_array(j, "nodes");
        for (unsigned i = 0; i < h->nodes; i++) {
                const struct heap_node *n = &c->node[i];

                json_object(j, NULL);
                json_count(j, "node", i);
                json_count(j, "slabs", n->slabs);
                json_count(j, "slabs_partial", n->partial);
                json_count(j, "barn_full", n->barn_full);
                json_count(j, "barn_empty", n->barn_empty);
                json_count(j, "objects_sent_home", n->objects_sent_home);
                json_count(j, "sheaves_sent_home", n->sheaves_sent_home);
                json_object_end(j);
        }
        json_array_end(j);
}

static void write_slots(const struct heap *h, const struct heap_cache *c, struct json *j)
{
        json_array(j, "slots");
        for (unsigned i = 0; i < h->slots; i++) {
                if (!c->slot_objects[i])
                        continue;
                json_object(j, NULL);
                json_count(j, "slot", i);
                json_count(j, "objects", c->slot_objects[i]);
                json_object_end(j);
        }
        json_array_end(j);
        json_count(j, "objects_in_barns", c->barn_objects);
        json_count(j, "objects_in_other_sheaves", c->other_objects);
}

static void write_shape(const struct heap_cache *c, struct json *j)
{
        const struct stook_cache *k = &c->cache;
        char letters[16];

        json_string(j, "name", c->name);
        json_count(j, "index", k->index);
        json_count(j, "born", k->born);
        json_array(j, "aliases");
        for (unsigned i = 0; i < c->alias_count; i++)
                json_string(j, NULL, c->aliases[i]);
        json_array_end(j);
        json_count(j, "users", k->references);
        json_string(j, "flags", info_flags(c, letters));
        json_count(j, "object_size", k->object_size);
        json_count(j, "align", k->align);
        json_count(j, "stride", k->slabs.stride);
        json_count(j, "objects_per_slab", k->slabs.objects);
        json_count(j, "slab_bytes", k->slabs.slab_bytes);
        json_bool(j, "ctor", info_ctor(c));
        json_string(j, "debug", info_debug(c, letters));
        json_count(j, "sheaf_capacity", k->barns.capacity);
        json_count(j, "barn_full_limit", k->barns.full_limit);
        json_count(j, "barn_empty_limit", k->barns.empty_limit);
        json_count(j, "min_partial", k->slabs.min_partial);
        json_count(j, "reserved_slabs", k->slabs.reserved);
}

static void write_cache(const struct heap *h, const struct heap_cache *c, struct json *j)
{
        const struct stook_cache_stats *s = &c->stats;

        json_object(j, NULL);
        write_shape(c, j);
        json_count(j, "objects_live", s->objects_live);
        json_count(j, "objects_cached", s->objects_cached);
        json_count(j, "sheaves", s->sheaves);
        json_count(j, "slabs", s->slabs);
        json_count(j, "space_bytes", s->slabs * s->slab_bytes);
        json_count(j, "slabs_peak", s->slabs_peak);
        json_count(j, "objects_peak", s->objects_peak);
        if (h->detail >= HEAP_OBJECTS)
                write_shares(c, j);
        write_nodes(h, c, j);
        write_slots(h, c, j);
        json_object(j, "counters");
#define WRITE(counter) json_count(j, #counter, s->counter);
        STOOK_COUNTERS(WRITE)
#undef WRITE
        json_object_end(j);
        json_object_end(j);
}

static void write_memory(const struct heap *h, struct json *j)
{
        const struct heap_pages *p = &h->pages;

        json_object(j, "memory");
        json_count(j, "space_bytes", p->space_bytes);
        json_count(j, "large_bytes", p->large_bytes);
        json_count(j, "large_objects", p->large_objects);
        json_count(j, "free_dirty_bytes", p->free_dirty_bytes);
        json_count(j, "free_clean_bytes", p->free_clean_bytes);
        json_count(j, "free_spans", p->free_spans);
        json_count(j, "largest_free_bytes", p->largest_free_bytes);
        json_count(j, "metadata_bytes", p->metadata_bytes);
        json_count(j, "process_huge_bytes", memory_huge_bytes(h->memory));
        if (h->resident.known) {
                json_object(j, "resident");
                json_count(j, "live_bytes", h->resident.live);
                json_count(j, "cached_bytes", h->resident.cached);
                json_count(j, "free_objects_bytes", h->resident.free_objects);
                json_count(j, "large_bytes", h->resident.large);
                json_count(j, "free_dirty_bytes", h->resident.dirty);
                json_count(j, "padding_bytes", h->resident.padding);
                json_count(j, "metadata_bytes", h->resident.own);
                json_object_end(j);
        }
        json_bool(j, "huge_faults_dear", h->huge_dear == STOOK_HUGE_DEAR);
        json_object_end(j);
}

static void write_options(const struct heap *h, struct json *j)
{
        json_array(j, "options");
        for (unsigned i = 0; i < STOOK_OPTIONS; i++) {
                const char *source = info_option_source(&h->options[i]);

                if (!source)
                        continue;
                json_object(j, NULL);
                json_string(j, "name", h->options[i].name);
                json_string(j, "value", h->options[i].value);
                json_string(j, "source", source);
                json_object_end(j);
        }
        json_array_end(j);
}

static void write_groups(const struct heap *h, struct json *j)
{
        json_array(j, "groups");
        for (size_t i = 0; i < h->group_count; i++) {
                const struct heap_group *g = &h->groups[i];

                json_object(j, NULL);
                json_count(j, "id", g->id);
                if (g->parent)
                        json_count(j, "parent", g->parent);
                else
                        json_null(j, "parent");
                json_string(j, "name", g->name);
                json_count(j, "usage_bytes", g->usage_bytes);
                json_count(j, "precharge_bytes", g->precharge_bytes);
                json_count(j, "peak_bytes", g->peak_bytes);
                if (g->limit_bytes == UINT64_MAX)
                        json_null(j, "limit_bytes");
                else
                        json_count(j, "limit_bytes", g->limit_bytes);
                json_count(j, "limit_events", g->limit_events);
                json_count(j, "refusals", g->refusals);
                json_bool(j, "of_process", g->of_process);
                json_bool(j, "ending", g->ending);
                json_object_end(j);
        }
        json_array_end(j);
}

static void write_heaps(const struct heap *h, struct json *j)
{
        json_array(j, "heaps");
        for (size_t i = 0; i < h->heap_count; i++) {
                const struct heap_heap *p = &h->heaps[i];
                char address[24];

                json_object(j, NULL);
                json_string(j, "name", p->name);
                snprintf(address, sizeof address, "%#" PRIx64, p->address);
                json_string(j, "address", address);
                json_count(j, "bytes", p->bytes);
                json_count(j, "peak_bytes", p->peak_bytes);
                if (p->limit_bytes == UINT64_MAX)
                        json_null(j, "limit_bytes");
                else
                        json_count(j, "limit_bytes", p->limit_bytes);
                json_count(j, "large_bytes", p->large_bytes);
                json_count(j, "objects_live", p->objects_live);
                json_count(j, "cache_count", p->caches);
                if (p->group)
                        json_count(j, "group_id", p->group);
                else
                        json_null(j, "group_id");
                json_count(j, "refusals", p->refusals);
                json_count(j, "spilled", p->spilled);
                json_bool(j, "ending", p->ending);
                json_object_end(j);
        }
        json_array_end(j);
}

void info_json(const struct heap *h, const struct info_view *view, const char *library,
               struct json *j)
{
        const struct heap_cache **caches;
        size_t n = info_choose(h, view, &caches);

        if (n == SIZE_MAX)
                n = 0;
        json_object(j, NULL);
        json_string(j, "library", library);
        json_count(j, "pid", h->memory->pid);
        json_string(j, "program", h->memory->program);
        json_string(j, "version", h->library->root.version);
        json_count(j, "page_bytes", h->library->root.page_bytes);
        json_count(j, "node_count", h->nodes);
        json_count(j, "slots_ready", h->slots_ready);
        json_string(j, "slot_index", h->locked ? "hash" : h->by_cpu ? "cpu_id" : "mm_cid");
        json_bool(j, "maintenance_thread", h->maintainer && h->maintainer == h->memory->pid);
        if (h->detail >= HEAP_SLABS)
                write_memory(h, j);
        json_array(j, "caches");
        for (size_t i = 0; i < n; i++)
                write_cache(h, caches[i], j);
        json_array_end(j);
        write_groups(h, j);
        write_heaps(h, j);
        write_options(h, j);
        json_object_end(j);
        free(caches);
}

int info_json_all(struct target *t, struct json *j, char *why)
{
        const struct info_view all = { 0 };
        int error = 0;

        json_array(j, "libraries");
        for (struct library *at = NULL; !error && (at = target_next(t, at));) {
                struct heap h;

                error = heap_read(&h, &t->memory, at, HEAP_OBJECTS);
                if (!error) {
                        info_json(&h, &all, at->image->path, j);
                        heap_free(&h);
                } else {
                        memcpy(why, h.error, sizeof h.error);
                }
        }
        json_array_end(j);
        return error;
}
