/*
 * Purpose: `stook info --prometheus`; see info.h. A scrape needs no exporter in the process.
 * Each metric has its HELP and TYPE once, then a line for each cache. Names of caches are not
 * unique, so `born` is a label, too. Names and help of what stook_metrics_write() tells as well are
 * those of src/inspect/metrics.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cli/info/info.h"
#include "inspect/metrics.h"

/* Of a heap. Labels are made once, for there are many metrics. */
struct chosen {
        const struct heap_cache **caches;
        size_t count;
        char  *labels;                  /* of the heap: {pid="1",...; without the closing brace */
        char **cache_labels;            /* [count]: ,cache="...",born="1" */
};

struct scrape {
        const struct heap *const *heaps;
        struct chosen     *chosen;      /* for each heap */
        size_t             count;
        bool               openmetrics;
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

/* Of a heap or of what it has: where its value lies there. */
struct metric {
        const char *name, *help;
        bool        counts;
        size_t      field;              /* offset of a uint64_t */
};

enum { gauge, counter };

#define OF_CACHE(name, type, help, field) \
        { name, help, type == counter, offsetof(struct heap_cache, stats.field) },
#define OF_COUNTER(field) \
        { STOOK_METRIC_OF_COUNTER(field), true, offsetof(struct heap_cache, stats.field) },
#define OF_HEAP(name, type, help, field) \
        { name, help, type == counter, offsetof(struct heap, pages.field) },
#define OF_GROUP(name, type, help, field) \
        { name, help, type == counter, offsetof(struct heap_group, field) },

static const struct metric of_cache[] = {
        STOOK_METRICS_OF_CACHE(OF_CACHE)
        { "cache_pinned_bytes", "Bytes of slabs that only objects in sheaves keep.", false,
          offsetof(struct heap_cache, pinned_bytes) },
        STOOK_COUNTERS(OF_COUNTER)
};
static const struct metric of_heap[] = { STOOK_METRICS_OF_HEAP(OF_HEAP) };
static const struct metric of_group[] = { STOOK_METRICS_OF_GROUP(OF_GROUP) };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void write_head(const struct scrape *s, const struct metric *m)
{
        const char *end = m->counts && !s->openmetrics ? "_total" : "";

        fprintf(s->out, "# HELP stook_%s%s %s\n# TYPE stook_%s%s %s\n", m->name, end, m->help,
                m->name, end, m->counts ? "counter" : "gauge");
}

/* False: no memory. */
static bool make_labels(const struct heap *heap, struct chosen *chosen)
{
        size_t bytes;
        FILE *out = open_memstream(&chosen->labels, &bytes);

        if (!out)
                return false;
        fprintf(out, "{pid=\"%u\",library=", heap->memory->pid);
        write_value(out, heap->library->image->path);
        fputs(",program=", out);
        write_value(out, heap->memory->program);
        if (fclose(out))
                return false;
        chosen->cache_labels = calloc(chosen->count + 1, sizeof *chosen->cache_labels);
        for (size_t i = 0; i < chosen->count && chosen->cache_labels; i++) {
                out = open_memstream(&chosen->cache_labels[i], &bytes);
                if (!out)
                        return false;
                fputs(",cache=", out);
                write_value(out, chosen->caches[i]->name);
                fprintf(out, ",born=\"%" PRIu64 "\"", chosen->caches[i]->cache.born);
                if (fclose(out))
                        return false;
        }
        return chosen->cache_labels;
}

static void free_chosen(struct chosen *chosen)
{
        for (size_t i = 0; i < chosen->count && chosen->cache_labels; i++)
                free(chosen->cache_labels[i]);
        free(chosen->cache_labels);
        free(chosen->labels);
        free(chosen->caches);
}

/* Without the closing brace. */
static void write_labels(const struct scrape *s, size_t heap, const struct metric *m)
{
        fputs("stook_", s->out);
        fputs(m->name, s->out);
        if (m->counts)
                fputs("_total", s->out);
        fputs(s->chosen[heap].labels, s->out);
}

static void write_number(const struct scrape *s, const struct metric *m, const void *from)
{
        uint64_t value;

        memcpy(&value, (const char *)from + m->field, sizeof value);
        if (value == UINT64_MAX)
                fputs("} +Inf\n", s->out);
        else
                fprintf(s->out, "} %" PRIu64 "\n", value);
}

static void write_caches(const struct scrape *s, const struct metric *m)
{
        bool of_objects = m->field == offsetof(struct heap_cache, pinned_bytes);

        write_head(s, m);
        for (size_t i = 0; i < s->count; i++)
                for (size_t k = 0; k < s->chosen[i].count; k++) {
                        if (of_objects && s->heaps[i]->detail < HEAP_OBJECTS)
                                continue;
                        write_labels(s, i, m);
                        fputs(s->chosen[i].cache_labels[k], s->out);
                        write_number(s, m, s->chosen[i].caches[k]);
                }
}

static void write_heaps(const struct scrape *s, const struct metric *m)
{
        write_head(s, m);
        for (size_t i = 0; i < s->count; i++) {
                write_labels(s, i, m);
                write_number(s, m, s->heaps[i]);
        }
}

static void write_resident(const struct scrape *s)
{
        static const struct metric resident = {
                "resident_bytes", "Resident bytes of the heap, by what has them.", false, 0
        };
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

        write_head(s, &resident);
        for (size_t i = 0; i < s->count; i++)
                for (size_t k = 0; k < COUNT(causes); k++) {
                        const struct heap_resident *r = &s->heaps[i]->resident;

                        if (!r->known)
                                continue;
                        write_labels(s, i, &resident);
                        fprintf(s->out, ",cause=\"%s\"", causes[k].cause);
                        write_number(s, &resident, (const char *)r + causes[k].field);
                }
}

static void write_groups(const struct scrape *s, const struct metric *m)
{
        write_head(s, m);
        for (size_t i = 0; i < s->count; i++)
                for (size_t k = 0; k < s->heaps[i]->group_count; k++) {
                        const struct heap_group *g = &s->heaps[i]->groups[k];

                        write_labels(s, i, m);
                        fputs(",group=", s->out);
                        write_value(s->out, g->name);
                        fprintf(s->out, ",id=\"%u\"", g->id);
                        write_number(s, m, g);
                }
}

/* ---- heaps ---- */

#define OF_PROGRAM_HEAP(name, type, help, field) \
        { name, help, type == counter, offsetof(struct heap_heap, field) },

static const struct metric of_program_heap[] = {
        STOOK_METRICS_OF_PROGRAM_HEAP(OF_PROGRAM_HEAP)
};

static void write_program_heaps(const struct scrape *s, const struct metric *m)
{
        write_head(s, m);
        for (size_t i = 0; i < s->count; i++)
                for (size_t k = 0; k < s->heaps[i]->heap_count; k++) {
                        const struct heap_heap *p = &s->heaps[i]->heaps[k];

                        write_labels(s, i, m);
                        fputs(",heap=", s->out);
                        write_value(s->out, p->name);
                        fprintf(s->out, ",address=\"%#" PRIx64 "\"", p->address);
                        write_number(s, m, p);
                }
}

static void write_all(const struct scrape *s)
{
        for (size_t m = 0; m < COUNT(of_cache); m++)
                write_caches(s, &of_cache[m]);
        for (size_t m = 0; m < COUNT(of_heap); m++)
                write_heaps(s, &of_heap[m]);
        write_resident(s);
        for (size_t m = 0; m < COUNT(of_group); m++)
                write_groups(s, &of_group[m]);
        for (size_t m = 0; m < COUNT(of_program_heap); m++)
                write_program_heaps(s, &of_program_heap[m]);
}

void info_prometheus(const struct heap *const *heaps, size_t count, const struct info_view *view,
                     bool openmetrics, FILE *out)
{
        struct scrape s = { heaps, calloc(count + 1, sizeof *s.chosen), count, openmetrics, out };
        bool good = s.chosen;

        for (size_t i = 0; i < count && good; i++) {
                s.chosen[i].count = info_choose(heaps[i], view, &s.chosen[i].caches);
                if (s.chosen[i].count == SIZE_MAX)
                        s.chosen[i].count = 0;
                good = make_labels(heaps[i], &s.chosen[i]);
        }
        if (good)
                write_all(&s);
        for (size_t i = 0; i < count && s.chosen; i++)
                free_chosen(&s.chosen[i]);
        free(s.chosen);
}
