/*
 * Purpose: the pictures of `stook replay`; see replay_print.h.
 */
#include <stdlib.h>
#include "cli/replay/chart.h"
#include "cli/replay/replay_print.h"

void replay_picture(const struct replay_result *r, FILE *out)
{
        double ms[REPLAY_SAMPLES], live[REPLAY_SAMPLES], taken[REPLAY_SAMPLES];
        double resident[REPLAY_SAMPLES];
        struct chart memory = {
                .title = "Memory", .x_title = "milliseconds of the trace", .unit = CHART_BYTES,
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

bool replay_sweep_picture(const struct replay_result *results, const struct replay_sweep *sweep,
                          FILE *out)
{
        double *room = calloc(5 * sweep->count, sizeof *room);
        struct curves c = { room, room + sweep->count, room + 2 * sweep->count,
                            room + 3 * sweep->count, room + 4 * sweep->count };
        struct chart calls = {
                .title = "Calls that the slot's own sheaves did not answer", .unit = CHART_SHARE,
                .x_title = sweep->parameter, .points = sweep->count, .labels = sweep->values,
                .lines = { { "barn or slabs", c.missed }, { "slabs", c.slabs } },
                .line_count = 2,
        };
        struct chart time = {
                .title = "Nanoseconds of processor time a call", .unit = CHART_NUMBER,
                .x_title = sweep->parameter, .points = sweep->count, .labels = sweep->values,
                .lines = { { "median", c.ns } }, .line_count = 1,
        };
        struct chart memory = {
                .title = "Memory at most", .unit = CHART_BYTES,
                .x_title = sweep->parameter, .points = sweep->count, .labels = sweep->values,
                .lines = { { "resident", c.resident }, { "slabs and large objects", c.taken } },
                .line_count = 2,
        };

        if (!room)
                return false;
        fill_curves(&c, results, sweep->count);
        chart_page_begin(out, 3);
        chart_draw(out, 0, &calls);
        chart_draw(out, 1, &time);
        chart_draw(out, 2, &memory);
        chart_page_end(out);
        free(room);
        return true;
}
