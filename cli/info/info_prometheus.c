/*
 * Purpose: `stook info --prometheus`; see info.h. A scrape needs no exporter in the process.
 * Each metric has its HELP and TYPE once, then a line for each cache. Names of caches are not
 * unique, so `born` is a label, too.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cli/info/info.h"

struct chosen {
        const struct heap_cache **caches;
        size_t count;
};

struct scrape {
        const struct heap *heaps;
        const char *const *libraries;
        struct chosen     *chosen;      /* for each heap */
        size_t             count;
        FILE              *out;
};

/* A label's value: backslash and quote are escaped, control characters become text. */
static void write_value(FILE *out, const char *text)
{
        fputc('"', out);
        for (; *text; text++) {
                unsigned char c = (unsigned char)*text;

                if (c == '\\' || c == '"')
                        fprintf(out, "\\%c", c);
                else if (c < ' ' || c >= 0x7f)
                        fprintf(out, "\\\\x%02x", c);
                else
                        fputc(c, out);
        }
        fputc('"', out);
}

static void write_head(const struct scrape *s, const char *name, const char *type, const char *help)
{
        fprintf(s->out, "# HELP stook_%s %s\n# TYPE stook_%s %s\n", name, help, name, type);
}

/* Without the closing brace. */
static void write_labels(const struct scrape *s, size_t heap, const char *name)
{
        fprintf(s->out, "stook_%s{pid=\"%u\",library=", name, s->heaps[heap].memory->pid);
        write_value(s->out, s->libraries[heap]);
}

static void write_caches(const struct scrape *s, const char *name, const char *type,
                         const char *help, uint64_t (*value)(const struct heap_cache *))
{
        write_head(s, name, type, help);
        for (size_t i = 0; i < s->count; i++)
                for (size_t k = 0; k < s->chosen[i].count; k++) {
                        const struct heap_cache *c = s->chosen[i].caches[k];

                        write_labels(s, i, name);
                        fputs(",cache=", s->out);
                        write_value(s->out, c->name);
                        fprintf(s->out, ",born=\"%" PRIu64 "\"} %" PRIu64 "\n", c->cache.born,
                                value(c));
                }
}

static void write_heaps(const struct scrape *s, const char *name, const char *help,
                        uint64_t (*value)(const struct heap *))
{
        write_head(s, name, "gauge", help);
        for (size_t i = 0; i < s->count; i++) {
                write_labels(s, i, name);
                fprintf(s->out, "} %" PRIu64 "\n", value(&s->heaps[i]));
        }
}

/* ---- values ---- */

#define VALUE_OF_COUNTER(counter) \
        static uint64_t value_of_##counter(const struct heap_cache *c) \
        { \
                return c->stats.counter; \
        }
STOOK_COUNTERS(VALUE_OF_COUNTER)
VALUE_OF_COUNTER(objects_live)
VALUE_OF_COUNTER(objects_cached)
VALUE_OF_COUNTER(object_size)
VALUE_OF_COUNTER(stride)
VALUE_OF_COUNTER(objects_per_slab)
VALUE_OF_COUNTER(slab_bytes)
VALUE_OF_COUNTER(slabs)
VALUE_OF_COUNTER(slabs_peak)
VALUE_OF_COUNTER(objects_peak)
VALUE_OF_COUNTER(sheaves)
VALUE_OF_COUNTER(sheaf_capacity)

static uint64_t value_of_pinned(const struct heap_cache *c)
{
        return c->pinned_bytes;
}

#define VALUE_OF_PAGES(field) \
        static uint64_t value_of_##field(const struct heap *h) \
        { \
                return h->pages.field; \
        }
VALUE_OF_PAGES(space_bytes)
VALUE_OF_PAGES(large_bytes)
VALUE_OF_PAGES(large_objects)
VALUE_OF_PAGES(free_dirty_bytes)
VALUE_OF_PAGES(free_clean_bytes)
VALUE_OF_PAGES(metadata_bytes)

static void write_counters(const struct scrape *s)
{
#define WRITE(counter) \
        write_caches(s, "cache_" #counter "_total", "counter", \
                     "The kernel's counter " #counter ", see stook/stats.h.", \
                     value_of_##counter);
        STOOK_COUNTERS(WRITE)
#undef WRITE
}

static void write_sizes(const struct scrape *s)
{
        write_caches(s, "cache_objects_live", "gauge", "Objects with users.",
                     value_of_objects_live);
        write_caches(s, "cache_objects_cached", "gauge", "Objects in sheaves.",
                     value_of_objects_cached);
        write_caches(s, "cache_object_size_bytes", "gauge", "Bytes that users may use.",
                     value_of_object_size);
        write_caches(s, "cache_stride_bytes", "gauge", "Bytes from one object to the next.",
                     value_of_stride);
        write_caches(s, "cache_objects_per_slab", "gauge", "Objects that a slab is cut into.",
                     value_of_objects_per_slab);
        write_caches(s, "cache_slab_bytes", "gauge", "Bytes of a slab.", value_of_slab_bytes);
        write_caches(s, "cache_slabs", "gauge", "Live slabs.", value_of_slabs);
        write_caches(s, "cache_slabs_peak", "gauge", "Most live slabs at once.",
                     value_of_slabs_peak);
        write_caches(s, "cache_objects_peak", "gauge", "Most objects in use or in sheaves at once.",
                     value_of_objects_peak);
        write_caches(s, "cache_sheaves", "gauge", "Sheaves of the cache.", value_of_sheaves);
        write_caches(s, "cache_sheaf_capacity", "gauge", "Objects that a new sheaf holds.",
                     value_of_sheaf_capacity);
        write_caches(s, "cache_pinned_bytes", "gauge",
                     "Bytes of slabs that only objects in sheaves keep.", value_of_pinned);
}

static void write_resident(const struct scrape *s)
{
        static const struct {
                const char *cause;
                size_t      field;
        } causes[] = {
                { "live", offsetof(struct heap_resident, live) },
                { "cached", offsetof(struct heap_resident, cached) },
                { "free_objects", offsetof(struct heap_resident, free_objects) },
                { "large", offsetof(struct heap_resident, large) },
                { "free_dirty", offsetof(struct heap_resident, dirty) },
                { "padding", offsetof(struct heap_resident, padding) },
                { "metadata", offsetof(struct heap_resident, own) },
        };

        write_head(s, "resident_bytes", "gauge", "Resident bytes of the heap, by what has them.");
        for (size_t i = 0; i < s->count; i++)
                for (size_t k = 0; k < sizeof causes / sizeof causes[0]; k++) {
                        const struct heap_resident *r = &s->heaps[i].resident;

                        if (!r->known)
                                continue;
                        write_labels(s, i, "resident_bytes");
                        fprintf(s->out, ",cause=\"%s\"} %" PRIu64 "\n", causes[k].cause,
                                *(const uint64_t *)(const void *)((const char *)r +
                                                                  causes[k].field));
                }
}

static void write_memory(const struct scrape *s)
{
        write_heaps(s, "space_bytes", "Bytes of all slabs.", value_of_space_bytes);
        write_heaps(s, "large_bytes", "Bytes of large objects.", value_of_large_bytes);
        write_heaps(s, "large_objects", "Large objects.", value_of_large_objects);
        write_heaps(s, "free_dirty_bytes", "Bytes of free pages that have content.",
                    value_of_free_dirty_bytes);
        write_heaps(s, "free_clean_bytes", "Bytes of free pages without content.",
                    value_of_free_clean_bytes);
        write_heaps(s, "metadata_bytes", "Bytes of the library's own data.",
                    value_of_metadata_bytes);
        write_resident(s);
}

/* ---- groups ---- */

static void write_group_metric(const struct scrape *s, const char *name, const char *type,
                               const char *help, size_t field)
{
        write_head(s, name, type, help);
        for (size_t i = 0; i < s->count; i++)
                for (size_t k = 0; k < s->heaps[i].group_count; k++) {
                        const struct heap_group *g = &s->heaps[i].groups[k];
                        uint64_t value;

                        memcpy(&value, (const char *)g + field, sizeof value);
                        write_labels(s, i, name);
                        fputs(",group=", s->out);
                        write_value(s->out, g->name);
                        fprintf(s->out, ",id=\"%u\"} ", g->id);
                        if (value == UINT64_MAX)
                                fputs("+Inf\n", s->out);
                        else
                                fprintf(s->out, "%" PRIu64 "\n", value);
                }
}

static void write_groups(const struct scrape *s)
{
        write_group_metric(s, "group_usage_bytes", "gauge",
                           "Bytes of live objects charged to the group, as stook_group_usage().",
                           offsetof(struct heap_group, usage));
        write_group_metric(s, "group_precharge_bytes", "gauge",
                           "Bytes charged to the group in advance, for CPUs.",
                           offsetof(struct heap_group, precharge));
        write_group_metric(s, "group_peak_bytes", "gauge", "Most bytes of usage and precharge.",
                           offsetof(struct heap_group, peak));
        write_group_metric(s, "group_limit_bytes", "gauge", "Most bytes that may be charged.",
                           offsetof(struct heap_group, limit));
        write_group_metric(s, "group_refusals_total", "counter", "Allocations that were refused.",
                           offsetof(struct heap_group, refusals));
}

/* ---- heaps ---- */

static void write_heap_metric(const struct scrape *s, const char *name, const char *type,
                              const char *help, size_t field)
{
        write_head(s, name, type, help);
        for (size_t i = 0; i < s->count; i++)
                for (size_t k = 0; k < s->heaps[i].heap_count; k++) {
                        const struct heap_heap *p = &s->heaps[i].heaps[k];
                        uint64_t value;

                        memcpy(&value, (const char *)p + field, sizeof value);
                        write_labels(s, i, name);
                        fputs(",heap=", s->out);
                        write_value(s->out, p->name);
                        fprintf(s->out, ",address=\"%#" PRIx64 "\"} ", p->address);
                        if (value == UINT64_MAX)
                                fputs("+Inf\n", s->out);
                        else
                                fprintf(s->out, "%" PRIu64 "\n", value);
                }
}

static void write_program_heaps(const struct scrape *s)
{
        write_heap_metric(s, "heap_bytes", "gauge", "Bytes of the heap's slabs and large objects.",
                          offsetof(struct heap_heap, bytes));
        write_heap_metric(s, "heap_peak_bytes", "gauge", "Most bytes of them.",
                          offsetof(struct heap_heap, peak));
        write_heap_metric(s, "heap_limit_bytes", "gauge", "Most bytes that the heap may have.",
                          offsetof(struct heap_heap, limit));
        write_heap_metric(s, "heap_large_bytes", "gauge", "Bytes of the heap's large objects.",
                          offsetof(struct heap_heap, large_bytes));
        write_heap_metric(s, "heap_objects_live", "gauge", "Objects in slabs that callers own.",
                          offsetof(struct heap_heap, objects_live));
        write_heap_metric(s, "heap_refusals_total", "counter", "Allocations that failed.",
                          offsetof(struct heap_heap, refusals));
}

void info_prometheus(const struct heap *heaps, const char *const *libraries, size_t count,
                     const struct info_view *view, FILE *out)
{
        struct scrape s = { heaps, libraries, calloc(count + 1, sizeof *s.chosen), count, out };

        if (!s.chosen)
                return;
        for (size_t i = 0; i < count; i++) {
                s.chosen[i].count = info_choose(&heaps[i], view, &s.chosen[i].caches);
                if (s.chosen[i].count == SIZE_MAX)
                        s.chosen[i].count = 0;
        }
        write_sizes(&s);
        write_counters(&s);
        write_memory(&s);
        write_groups(&s);
        write_program_heaps(&s);
        for (size_t i = 0; i < count; i++)
                free(s.chosen[i].caches);
        free(s.chosen);
}
