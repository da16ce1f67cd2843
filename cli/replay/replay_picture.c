/*
 * Purpose: the pictures of `stook replay`; see replay_print.h.
 */
#include <stdlib.h>
#include "cli/program/on_drop_in.h"
#include "cli/replay/chart.h"
#include "cli/replay/heat_map.h"
#include "cli/replay/replay_print.h"
#include "cli/text/plain_text.h"

#define TITLE_BYTES 256

/* "TRACE, CACHE: WHAT", in printable characters; several caches are counted. */
static const char *title_of(const struct replay_answer *a, const char *what,
                            char text[TITLE_BYTES])
{
        const struct replay_list *list = a->list;
        char trace[TITLE_BYTES / 2], cache[80];

        if (list->cache_count == 1)
                snprintf(cache, sizeof cache, "%s", list->caches[0].name);
        else
                snprintf(cache, sizeof cache, "%zu caches", list->cache_count);
        snprintf(text, TITLE_BYTES, "%s, %s: %s",
                 plain_text(name_of_program(a->path), trace, sizeof trace), cache, what);
        return text;
}

static void draw_memory(const struct replay_answer *a, FILE *out)
{
        const struct replay_result *r = &a->results[0];
        char title[TITLE_BYTES];
        double ms[REPLAY_SAMPLES], live[REPLAY_SAMPLES], taken[REPLAY_SAMPLES];
        double resident[REPLAY_SAMPLES];
        struct chart memory = {
                .title = title_of(a, "memory", title), .unit = CHART_BYTES,
                .x_title = "milliseconds of the trace",
                .points = r->sample_count, .x = ms,
                .lines = { { "resident", resident }, { "slabs and large objects", taken },
                           { "wanted by objects", live } },
                .line_count = 3,
        };

        for (size_t i = 0; i < r->sample_count; i++) {
                ms[i] = (double)r->samples[i].at_ns / 1e6;
                live[i] = (double)r->samples[i].live_bytes;
                taken[i] = (double)r->samples[i].taken_bytes;
                resident[i] = (double)r->samples[i].resident_bytes;
        }
        chart_page_begin(out, 1);
        if (r->sample_count)
                chart_draw(out, 0, &memory);
        chart_page_end(out);
}

/* One value for each result, of each line. */
struct curves {
        double *missed, *slabs, *ns, *taken, *resident;
};

static double share(uint64_t part, const struct replay_layers *l)
{
        uint64_t all = l->slot + l->barn + l->slabs;

        return all ? (double)part / (double)all : 0;
}

static void fill_curves(const struct curves *c, const struct replay_result *results, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                const struct replay_result *r = &results[i];
                struct replay_layers calls = { r->allocs.slot + r->frees.slot,
                                               r->allocs.barn + r->frees.barn,
                                               r->allocs.slabs + r->frees.slabs };

                c->missed[i] = share(calls.barn + calls.slabs, &calls);
                c->slabs[i] = share(calls.slabs, &calls);
                c->ns[i] = r->ns_per_call.median;
                c->taken[i] = (double)r->peak.taken_bytes;
                c->resident[i] = (double)r->peak.resident_bytes;
        }
}

static bool draw_sweep(const struct replay_answer *a, FILE *out)
{
        const struct replay_sweep *sweep = &a->grid->sweep[0];
        char title[TITLE_BYTES];
        double *room = calloc(5 * sweep->count, sizeof *room);
        struct curves c = { room, room + sweep->count, room + 2 * sweep->count,
                            room + 3 * sweep->count, room + 4 * sweep->count };
        struct chart calls = {
                .title = title_of(a, "calls that the slot's own sheaves did not answer", title),
                .unit = CHART_SHARE,
                .x_title = sweep->of->name, .points = sweep->count, .labels = sweep->values,
                .lines = { { "barn or slabs", c.missed }, { "slabs", c.slabs } },
                .line_count = 2,
        };
        struct chart time = {
                .title = "Nanoseconds of processor time a call", .unit = CHART_NUMBER,
                .x_title = sweep->of->name, .points = sweep->count, .labels = sweep->values,
                .lines = { { "median", c.ns } }, .line_count = 1,
        };
        struct chart memory = {
                .title = "Memory at most", .unit = CHART_BYTES,
                .x_title = sweep->of->name, .points = sweep->count, .labels = sweep->values,
                .lines = { { "resident", c.resident }, { "slabs and large objects", c.taken } },
                .line_count = 2,
        };

        if (!room)
                return false;
        fill_curves(&c, a->results, sweep->count);
        chart_page_begin(out, 3);
        chart_draw(out, 0, &calls);
        chart_draw(out, 1, &time);
        chart_draw(out, 2, &memory);
        chart_page_end(out);
        free(room);
        return true;
}

/* ---- a grid: for each cache, and each value of what is on no axis, three maps ---- */

#define MAPS       3
#define CACHES_MAX 12                   /* drawn, the busiest. Arbitrary */
#define MARGIN     16.0
#define TITLE      30.0                 /* above the maps of a cache */

struct maps {
        const struct replay_answer *answer;
        size_t columns, rows;           /* values of the first sweep, and of the second */
        size_t behind;                  /* combinations of the others' */
        double *values[MAPS];
        bool   *marked;
};

static size_t cell_of(const struct maps *m, size_t column, size_t row, size_t behind)
{
        return (column * m->rows + row) * m->behind + behind;
}

static bool is_advised(const struct replay_answer *a, uint32_t cache, size_t cell)
{
        for (size_t i = 0; i < a->advices; i++)
                if (a->advice[i].cache == cache && a->advice[i].result == cell)
                        return true;
        return false;
}

static void fill_maps(const struct maps *m, uint32_t cache, size_t behind)
{
        for (size_t i = 0; i < m->columns * m->rows; i++) {
                size_t cell = cell_of(m, i % m->columns, i / m->columns, behind);
                const struct replay_result *r = &m->answer->results[cell];
                struct replay_layers l = replay_cache_layers(r, cache);

                m->values[0][i] = share(l.barn + l.slabs, &l);
                m->values[1][i] = share(l.slabs, &l);
                m->values[2][i] = (double)replay_kept_bytes(r, cache);
                m->marked[i] = is_advised(m->answer, cache, cell);
        }
}

static void draw_maps(const struct maps *m, double y, FILE *out)
{
        static const char *const titles[MAPS] = { "calls past the CPU's sheaves",
                                                  "calls that reached the slabs",
                                                  "bytes kept at most" };
        const struct replay_sweep *sweep = m->answer->grid->sweep;

        for (unsigned i = 0; i < MAPS; i++) {
                struct heat_map map = {
                        .title = titles[i], .x_title = sweep[0].of->name,
                        .y_title = sweep[1].of->name, .x_labels = sweep[0].values,
                        .y_labels = sweep[1].values, .columns = m->columns, .rows = m->rows,
                        .values = m->values[i], .marked = m->marked,
                        .unit = i < 2 ? CHART_SHARE : CHART_BYTES,
                };

                heat_map_draw(out, MARGIN + i * heat_map_width(m->columns), y, &map);
        }
}

/* The trace, the cache, and the values of what is on no axis. */
static void draw_title(const struct maps *m, uint32_t cache, size_t behind, double y, FILE *out)
{
        const struct replay_grid *grid = m->answer->grid;
        char title[2 * TITLE_BYTES], trace[TITLE_BYTES];
        struct replay_layers l = replay_cache_layers(&m->answer->results[0], cache);
        size_t n = (size_t)snprintf(title, sizeof title, "%.80s, %s: %llu calls",
                                    plain_text(name_of_program(m->answer->path), trace,
                                               sizeof trace), m->answer->list->caches[cache].name,
                                    (unsigned long long)(l.slot + l.barn + l.slabs));

        for (unsigned s = 2; s < grid->count; s++)
                n += (size_t)snprintf(title + n, sizeof title - n, ", %s %s",
                                      grid->sweep[s].of->name,
                                      grid->sweep[s].values[replay_grid_index(grid, s, behind)]);
        if (m->answer->advices)
                snprintf(title + n, sizeof title - n, "; framed: advised");
        fputs("<g font-weight=\"bold\" font-size=\"15\">", out);
        chart_text(out, MARGIN, y + TITLE - 8, "start", "#000000", title);
        fputs("</g>\n", out);
}

/* Caches that have advice, the busiest first, each once. Return: how many, CACHES_MAX at most. */
static size_t choose_caches(const struct replay_answer *a, uint32_t *caches)
{
        size_t n = 0;

        for (size_t i = 0; i < a->advices && n < CACHES_MAX; i++)
                if (!n || caches[n - 1] != a->advice[i].cache)
                        caches[n++] = a->advice[i].cache;
        for (uint32_t i = 0; !n && i < a->list->cache_count && i < CACHES_MAX; i++)
                caches[i] = i;
        return n ? n : a->list->cache_count < CACHES_MAX ? a->list->cache_count : CACHES_MAX;
}

static bool draw_grid(const struct replay_answer *a, FILE *out)
{
        struct maps m = { .answer = a, .columns = a->grid->sweep[0].count,
                          .rows = a->grid->sweep[1].count };
        size_t cells = m.columns * m.rows;
        uint32_t caches[CACHES_MAX];
        size_t count = choose_caches(a, caches);
        double step = TITLE + heat_map_height(m.rows), y = 0;
        double *room = calloc(MAPS * cells, sizeof *room);
        bool fine;

        m.behind = a->count / cells;
        m.marked = calloc(cells, sizeof *m.marked);
        for (unsigned i = 0; i < MAPS; i++)
                m.values[i] = room + i * cells;
        fine = room && m.marked;
        if (fine) {
                chart_page_begin_sized(out, 2 * MARGIN + MAPS * heat_map_width(m.columns),
                                       (double)(count * m.behind) * step);
                for (size_t i = 0; i < count; i++)
                        for (size_t behind = 0; behind < m.behind; behind++, y += step) {
                                draw_title(&m, caches[i], behind, y, out);
                                fill_maps(&m, caches[i], behind);
                                draw_maps(&m, y + TITLE, out);
                        }
                chart_page_end(out);
        }
        free(m.marked);
        free(room);
        return fine;
}

bool replay_picture(const struct replay_answer *a, FILE *out)
{
        if (a->grid->count > 1)
                return draw_grid(a, out);
        if (a->grid->count)
                return draw_sweep(a, out);
        draw_memory(a, out);
        return true;
}
