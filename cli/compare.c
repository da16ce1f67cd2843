/*
 * Purpose: spreads, ratios and what they mean in words; see compare.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "compare.h"
#include "table.h"

#define CHANCE_ENOUGH 0.05              /* convention */
#define PAIRS_ENOUGH  6                 /* all on one side: 2 / 2^6 is 3 %, 2 / 2^5 would be 6 % */

static const struct {
        const char *text, *key;
} measures[MEASURES] = {
        [MEASURE_WALL] = { "wall time", "wall_s" },
        [MEASURE_CPU] = { "user+sys time", "cpu_s" },
        [MEASURE_PEAK] = { "peak resident", "peak_resident_bytes" },
};

static int side_init(struct side *side, const char *name, unsigned repeat)
{
        side->name = name;
        for (unsigned m = 0; m < MEASURES; m++) {
                side->runs[m] = calloc(repeat, sizeof *side->runs[m]);
                if (!side->runs[m])
                        return -ENOMEM;
        }
        return 0;
}

int comparison_init(struct comparison *c, unsigned repeat)
{
        memset(c, 0, sizeof *c);
        c->room = repeat;
        if (!side_init(&c->stook, "Stook", repeat) &&
            !side_init(&c->system, "system malloc", repeat))
                return 0;
        comparison_release(c);
        return -ENOMEM;
}

void comparison_release(struct comparison *c)
{
        for (unsigned m = 0; m < MEASURES; m++) {
                free(c->stook.runs[m]);
                free(c->system.runs[m]);
        }
        memset(c, 0, sizeof *c);
}

void comparison_add(struct side *side, const struct run_result *result)
{
        side->runs[MEASURE_WALL][side->count] = result->wall_s;
        side->runs[MEASURE_CPU][side->count] = result->cpu_s;
        side->runs[MEASURE_PEAK][side->count] = (double)result->peak_bytes;
        side->count++;
}

static int ascending(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

struct spread spread_of(const double *values, unsigned count)
{
        struct spread s = { 0, 0, 0 };
        double *sorted = count ? malloc(count * sizeof *sorted) : NULL;

        if (!sorted)
                return s;
        memcpy(sorted, values, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, ascending);
        s.min = sorted[0];
        s.max = sorted[count - 1];
        s.median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
        free(sorted);
        return s;
}

bool comparison_ratio(const struct comparison *c, enum measure m, struct spread *ratio)
{
        unsigned pairs = c->stook.count < c->system.count ? c->stook.count : c->system.count;
        double below = spread_of(c->system.runs[m], pairs).median;

        if (!pairs || below <= 0)
                return false;
        ratio->median = spread_of(c->stook.runs[m], pairs).median / below;
        for (unsigned i = 0; i < pairs; i++) {
                double r = c->stook.runs[m][i] / c->system.runs[m][i];

                if (!(c->system.runs[m][i] > 0))
                        return false;
                if (!i || r < ratio->min)
                        ratio->min = r;
                if (!i || r > ratio->max)
                        ratio->max = r;
        }
        return true;
}

static const char *measure_text(enum measure m, double value, char *buffer, size_t size)
{
        return m == MEASURE_PEAK ? bytes_text((uint64_t)value, buffer, size)
                                 : seconds_text(value, buffer, size);
}

static void spread_cells(struct table *t, const struct side *side, enum measure m)
{
        struct spread s = spread_of(side->runs[m], side->count);
        char text[32];

        table_cell(t, "%s", measure_text(m, s.min, text, sizeof text));
        table_cell(t, "%s", measure_text(m, s.median, text, sizeof text));
        table_cell(t, "%s", measure_text(m, s.max, text, sizeof text));
}

/*
 * If the allocators were equal, each pair would be a fair coin: how often it would fall at least so
 * one-sidedly, to either side. Terms of the binomial are relative to the middle one, the greatest.
 */
static double sign_test(unsigned less, unsigned more)
{
        unsigned n = less + more, rare = less < more ? less : more;
        double term = 1, lower = 0, all = 0;

        for (unsigned i = n / 2;; i--) {
                if (i <= rare)
                        lower += term;
                all += 2 * i == n ? term : 2 * term;    /* and its mirror image */
                if (!i)
                        break;
                term *= (double)i / (n - i + 1);
        }
        return 2 * lower < all ? 2 * lower / all : 1;
}

bool comparison_signs(const struct comparison *c, enum measure m, struct signs *signs)
{
        struct spread unused;
        unsigned pairs = c->stook.count < c->system.count ? c->stook.count : c->system.count;

        if (!comparison_ratio(c, m, &unused))
                return false;
        signs->less = signs->more = 0;
        signs->pairs = pairs;
        for (unsigned i = 0; i < pairs; i++) {
                signs->less += c->stook.runs[m][i] < c->system.runs[m][i];
                signs->more += c->stook.runs[m][i] > c->system.runs[m][i];
        }
        signs->chance = sign_test(signs->less, signs->more);
        return true;
}

/* "; less in 6 of 6 pairs of runs (0.81 to 0.94), 3 % likely by chance." */
static void say_signs(const struct signs *s, const struct spread *r, FILE *out)
{
        bool less = s->less != s->more ? s->less > s->more : r->median < 1;
        double percent = s->chance * 100;

        if (s->pairs == 1) {
                fputs(" (one pair of runs only: no spread is known).\n", out);
                return;
        }
        if (!s->less && !s->more) {
                fprintf(out, "; equal in all %u pairs of runs.\n", s->pairs);
                return;
        }
        fprintf(out, "; %s in %u of %u pairs of runs (%.2f to %.2f), ", less ? "less" : "more",
                less ? s->less : s->more, s->pairs, r->min, r->max);
        if (percent < 0.1)
                fputs("under 0.1 % likely by chance", out);
        else
                fprintf(out, "%.*f %% likely by chance", percent < 1, percent);
        if (s->chance <= CHANCE_ENOUGH)
                fputs(".\n", out);
        else if (s->less + s->more < PAIRS_ENOUGH)
                fprintf(out, ": fewer than %d pairs cannot show a difference.\n", PAIRS_ENOUGH);
        else
                fputs(": they show no difference.\n", out);
}

/* "It took 12 % less time on Stook than on the system malloc" and what the pairs say to that. */
static void sentence(const struct comparison *c, enum measure m, const char *subject,
                     const char *less, const char *more, FILE *out)
{
        struct spread r;
        struct signs signs;
        double percent;

        if (!comparison_ratio(c, m, &r) || !comparison_signs(c, m, &signs))
                return;
        percent = (r.median < 1 ? 1 - r.median : r.median - 1) * 100;
        fprintf(out, "%s ", subject);
        if (percent < 0.5)
                fputs("the same on both, within half a percent", out);
        else
                fprintf(out, "%.0f %% %s on Stook than on the system malloc", percent,
                        r.median < 1 ? less : more);
        say_signs(&signs, &r, out);
}

void comparison_print(const struct comparison *c, const char *program, FILE *out)
{
        bool both = c->system.count > 0;
        struct table t;

        if (!c->stook.count)
                return;
        fputc('\n', out);
        table_init(&t, both ? 9 : 4);
        table_row(&t);
        table_cell(&t, "%u %s each", c->stook.count, c->stook.count == 1 ? "run" : "runs");
        table_cell(&t, "%s: min", c->stook.name);
        table_cell(&t, "median");
        table_cell(&t, "max");
        if (both) {
                table_cell(&t, "| %s: min", c->system.name);
                table_cell(&t, "median");
                table_cell(&t, "max");
                table_cell(&t, "| ratio");
                table_cell(&t, "pairs");
        }
        for (enum measure m = 0; m < MEASURES; m++) {
                struct spread ratio;

                table_row(&t);
                table_cell(&t, "%s", measures[m].text);
                spread_cells(&t, &c->stook, m);
                if (!both)
                        continue;
                spread_cells(&t, &c->system, m);
                if (!comparison_ratio(c, m, &ratio))
                        continue;
                table_cell(&t, "%.3f", ratio.median);
                table_cell(&t, "%.3f..%.3f", ratio.min, ratio.max);
        }
        table_print(&t, out);

        fprintf(out, "\n%s ran %u %s on Stook", program, c->stook.count,
                c->stook.count == 1 ? "time" : "times");
        if (both)
                fprintf(out, " and %u on the system malloc, in turn", c->system.count);
        fputs(", after one run that was not timed.\n", out);
        if (both) {
                sentence(c, MEASURE_WALL, "It took", "less time", "more time", out);
                sentence(c, MEASURE_CPU, "Its processor time was", "less", "more", out);
                sentence(c, MEASURE_PEAK, "Its peak memory was", "less", "more", out);
                if (c->stook.count > 1 && c->system.count > 1)
                        fputs("Likely by chance: how often equal allocators would give pairs at "
                              "least so one-sided (sign test); up to 5 % counts as a difference.\n",
                              out);
        }
}

static void side_json(const struct side *side, const char *key, struct json *json)
{
        json_object(json, key);
        for (enum measure m = 0; m < MEASURES; m++) {
                json_array(json, measures[m].key);
                for (unsigned i = 0; i < side->count; i++)
                        if (m == MEASURE_PEAK)
                                json_count(json, NULL, (uint64_t)side->runs[m][i]);
                        else
                                json_number(json, NULL, side->runs[m][i]);
                json_array_end(json);
        }
        json_object_end(json);
}

void comparison_json(const struct comparison *c, struct json *json)
{
        json_object(json, "timed");
        json_count(json, "runs", c->stook.count);
        side_json(&c->stook, "stook", json);
        if (c->system.count) {
                side_json(&c->system, "system", json);
                json_object(json, "ratio");
                for (enum measure m = 0; m < MEASURES; m++) {
                        struct spread r;
                        struct signs signs;

                        if (!comparison_ratio(c, m, &r)) {
                                json_null(json, measures[m].key);
                                continue;
                        }
                        json_object(json, measures[m].key);
                        json_number(json, "of_medians", r.median);
                        json_number(json, "pair_min", r.min);
                        json_number(json, "pair_max", r.max);
                        comparison_signs(c, m, &signs);
                        json_count(json, "pairs_less", signs.less);
                        json_count(json, "pairs_more", signs.more);
                        json_number(json, "chance", signs.chance);
                        json_object_end(json);
                }
                json_object_end(json);
        }
        json_object_end(json);
}
