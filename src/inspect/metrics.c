/*
 * Purpose: the heap's metrics, written by the process itself for a scraper. `stook info
 * --prometheus` does the same from outside, by the same names (metrics.h).
 * Place: API; reads all layers. What a metric needs of all caches is taken once, before anything is
 * written, so all metrics of a cache are of one moment.
 * Concurrency: relaxed reads. No lock is held while the stream is written: it may allocate.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cache/cache.h"
#include "gate/gate.h"
#include "group/group.h"
#include "heap/heaps.h"
#include "inspect/inspect.h"
#include "inspect/metrics.h"
#include "os/os.h"
#include "report/report.h"
#include "stat/counter.h"

/* A name may be 63 bytes, and each of them 5 in a label. */
#define LINE_BYTES 640

struct metric {
        const char *name, *help;
        bool        counts;
        uint16_t    field;              /* offset of a uint64_t */
};

enum { gauge, counter };

#define OF_CACHE(name, type, help, field) \
        { name, help, type == counter, offsetof(struct stook_cache_stats, field) },
#define OF_COUNTER(field) \
        { STOOK_METRIC_OF_COUNTER(field), true, offsetof(struct stook_cache_stats, field) },
#define OF_TOTALS(name, type, help, field) \
        { name, help, type == counter, offsetof(struct stook_totals, field) },
#define OF_GROUP(name, type, help, field) \
        { name, help, type == counter, offsetof(struct stook_group_stats, field) },

#define OF_HEAP(name, type, help, field) \
        { name, help, type == counter, offsetof(struct stook_heap_stats, field) },

static const struct metric of_cache[] = { STOOK_METRICS_OF_CACHE(OF_CACHE)
                                          STOOK_COUNTERS(OF_COUNTER) };
static const struct metric of_totals[] = { STOOK_METRICS_OF_HEAP(OF_TOTALS)
                                           STOOK_METRICS_OF_PROCESS(OF_TOTALS) };
static const struct metric of_group[] = { STOOK_METRICS_OF_GROUP(OF_GROUP) };
static const struct metric of_heap[] = { STOOK_METRICS_OF_PROGRAM_HEAP(OF_HEAP) };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- lines ---- */

struct writer {
        FILE  *out;
        bool   open;                    /* OpenMetrics */
        size_t bytes;
        char   line[LINE_BYTES];
};

static void words(struct writer *w, const char *text)
{
        for (; *text && w->bytes < LINE_BYTES; text++)
                w->line[w->bytes++] = *text;
}

/* A label's value, as Prometheus quotes it. What is not printable becomes text. */
static void quoted(struct writer *w, const char *text)
{
        char byte[8];

        words(w, "\"");
        for (; *text; text++) {
                unsigned char c = (unsigned char)*text;

                if (c == '\\' || c == '"')
                        stook_report_format(byte, sizeof(byte), "\\%s", c == '"' ? "\"" : "\\");
                else if (c < ' ' || c > '~')
                        stook_report_format(byte, sizeof(byte), c < 16 ? "\\\\x0%x" : "\\\\x%x",
                                            (uint64_t)c);
                else
                        memcpy(byte, (char[]){ (char)c, 0 }, 2);
                words(w, byte);
        }
        words(w, "\"");
}

static void end_line(struct writer *w)
{
        words(w, "\n");
        fwrite(w->line, 1, w->bytes, w->out);
        w->bytes = 0;
}

static void head(struct writer *w, const struct metric *metric)
{
        const char *const lines[2][2] = {
                { "# HELP stook_", metric->help },
                { "# TYPE stook_", metric->counts ? "counter" : "gauge" },
        };

        for (unsigned i = 0; i < 2; i++) {
                words(w, lines[i][0]);
                words(w, metric->name);
                /* OpenMetrics names the family, Prometheus the sample. */
                words(w, metric->counts && !w->open ? "_total " : " ");
                words(w, lines[i][1]);
                end_line(w);
        }
}

/*
 * @label: names the sample among those of its metric; NULL: it is the only one. @second: the format
 * of another label, with @id.
 */
static void sample(struct writer *w, const struct metric *metric, const char *label,
                   const char *name, const char *second, uint64_t id, const void *from)
{
        char text[64];
        uint64_t value;

        memcpy(&value, (const char *)from + metric->field, sizeof(value));
        words(w, "stook_");
        words(w, metric->name);
        words(w, metric->counts ? "_total" : "");
        if (label) {
                words(w, "{");
                words(w, label);
                words(w, "=");
                quoted(w, name);
                stook_report_format(text, sizeof(text), second, id);
                words(w, text);
        }
        stook_report_format(text, sizeof(text), value == UINT64_MAX ? " +Inf" : " %u", value);
        words(w, text);
        end_line(w);
}

/* ---- caches ---- */

struct seen {
        uint64_t born;
        struct stook_cache_stats stats;
};

/* Those that ever had a slab. @sums: [bound]. Return: how many, in @seen. */
static unsigned look(unsigned bound, struct stook_sheaf_sums *sums, struct seen *seen)
{
        unsigned n = 0;

        stook_snapshot_sums(sums, bound);
        for (unsigned i = 1; i < bound; i++) {
                const struct stook_cache *cache = stook_cache_at(i);
                uint32_t state = __atomic_load_n(&cache->state, __ATOMIC_ACQUIRE);

                if ((state != STOOK_CACHE_LIVE && state != STOOK_CACHE_DYING) ||
                    !stook_counted(&cache->counters, STOOK_STAT_alloc_slab))
                        continue;
                seen[n].born = cache->born;
                stook_snapshot_cache(cache, &sums[i], &seen[n++].stats);
        }
        return n;
}

static bool caches(struct writer *w)
{
        unsigned bound = stook_caches_bound(), n;
        size_t room = bound * (sizeof(struct seen) + sizeof(struct stook_sheaf_sums));
        struct seen *seen = stook_os_zeroed(room);

        if (!seen)
                return false;
        n = look(bound, (struct stook_sheaf_sums *)(void *)(seen + bound), seen);
        for (unsigned m = 0; m < COUNT(of_cache); m++) {
                head(w, &of_cache[m]);
                for (unsigned i = 0; i < n; i++)
                        sample(w, &of_cache[m], "cache", seen[i].stats.name, ",born=\"%u\"}",
                               seen[i].born, &seen[i].stats);
        }
        stook_os_unreserve(seen, room);
        return true;
}

/* ---- the rest ---- */

static void groups(struct writer *w)
{
        struct stook_group_stats stats = { .stats_size = sizeof(stats) };
        unsigned bound = __atomic_load_n(&stook_groups_bound, __ATOMIC_ACQUIRE);

        for (unsigned m = 0; m < COUNT(of_group); m++) {
                head(w, &of_group[m]);
                for (unsigned id = 1; id < bound; id++) {
                        const struct stook_group *group = stook_group_at((uint16_t)id);

                        if (__atomic_load_n(&group->state, __ATOMIC_RELAXED) == STOOK_GROUP_FREE)
                                continue;
                        stook_group_get_stats(group, &stats);
                        if (!stats.limit_bytes)
                                stats.limit_bytes = UINT64_MAX;
                        sample(w, &of_group[m], "group", stats.name, ",id=\"%u\"}", id, &stats);
                }
        }
}

struct seen_heap {
        const struct stook_heap *heap;
        struct stook_heap_stats stats;
};

/* Heaps that were never destroyed since; those that are made meanwhile are left out. */
static bool heaps(struct writer *w)
{
        struct stook_heap *first = __atomic_load_n(&stook_heaps, __ATOMIC_ACQUIRE), *heap;
        struct seen_heap *seen;
        size_t room = 0, n = 0;

        for (heap = first; heap; heap = heap->next)
                room += sizeof(*seen);
        seen = room ? stook_os_zeroed(room) : NULL;
        if (room && !seen)
                return false;
        for (heap = first; heap; heap = heap->next) {
                if (!stook_heap_is_live(heap))
                        continue;
                seen[n].heap = heap;
                stook_snapshot_heap(heap, &seen[n].stats);
                if (!seen[n].stats.limit_bytes)
                        seen[n].stats.limit_bytes = UINT64_MAX;
                n++;
        }
        for (unsigned m = 0; m < COUNT(of_heap); m++) {
                head(w, &of_heap[m]);
                for (size_t i = 0; i < n; i++)
                        sample(w, &of_heap[m], "heap", seen[i].stats.name, ",address=\"0x%x\"}",
                               (uintptr_t)seen[i].heap, &seen[i].stats);
        }
        if (room)
                stook_os_unreserve(seen, room);
        return true;
}

STOOK_API int stook_metrics_write(FILE *out, enum stook_metrics_format format)
{
        struct writer w = { .out = out, .open = format == STOOK_METRICS_OPENMETRICS };
        struct stook_totals totals = { .totals_size = sizeof(totals) };

        if (!out || (unsigned)format > STOOK_METRICS_OPENMETRICS)
                return -EINVAL;
        if (stook_get_totals(&totals) || !caches(&w))
                return -ENOMEM;
        for (unsigned m = 0; m < COUNT(of_totals); m++) {
                head(&w, &of_totals[m]);
                sample(&w, &of_totals[m], NULL, NULL, NULL, 0, &totals);
        }
        groups(&w);
        if (!heaps(&w))
                return -ENOMEM;
        if (w.open) {
                words(&w, "# EOF");
                end_line(&w);
        }
        return ferror(out) ? -EIO : 0;
}
