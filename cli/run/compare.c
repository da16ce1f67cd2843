/*
 * Purpose: spreads, ratios and what they mean in words; see compare.h.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cli/run/compare.h"
#include "cli/text/plain_text.h"
#include "cli/text/table.h"

#define TAIL_ENOUGH  0.025              /* convention: 95 % lie between two such tails */
#define PAIRS_ENOUGH 6                  /* all on one side: 2 / 2^6 is 3 %, 2 / 2^5 would be 6 % */

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

int comparison_init(struct comparison *c, unsigned repeat, const char *rival)
{
        memset(c, 0, sizeof *c);
        c->room = repeat;
        c->the = rival ? "" : "the ";
        if (!side_init(&c->stook, "Stook", repeat) &&
            !side_init(&c->rival, rival ? rival : "system malloc", repeat))
                return 0;
        comparison_release(c);
        return -ENOMEM;
}

void comparison_release(struct comparison *c)
{
        for (unsigned m = 0; m < MEASURES; m++) {
                free(c->stook.runs[m]);
                free(c->rival.runs[m]);
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
        unsigned pairs = c->stook.count < c->rival.count ? c->stook.count : c->rival.count;
        double below = spread_of(c->rival.runs[m], pairs).median;

        if (!pairs || below <= 0)
                return false;
        ratio->median = spread_of(c->stook.runs[m], pairs).median / below;
        for (unsigned i = 0; i < pairs; i++) {
                double r = c->stook.runs[m][i] / c->rival.runs[m][i];

                if (!(c->rival.runs[m][i] > 0))
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

/* A row's three cells: least, median, greatest. */
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

/*
 * How many ratios lie outside the interval at each end: the narrowest pair of order statistics that
 * encloses the median with 95 %. exp and lgamma, for 2^-n alone is 0 from some thousand pairs on.
 */
static unsigned outside(unsigned n)
{
        double   tail = 0;
        unsigned below = 0;

        for (; below < n / 2; below++) {
                tail += exp(lgamma(n + 1.0) - lgamma(below + 1.0) - lgamma(n - below + 1.0) -
                            n * log(2));
                if (tail > TAIL_ENOUGH)
                        break;
        }
        return below ? below - 1 : 0;
}

/* The interval of the ratios, and what it says. False: no memory. */
static bool judge(const struct comparison *c, enum measure m, struct signs *signs)
{
        unsigned n = signs->pairs, k = outside(n);
        double  *ratios = malloc(n * sizeof *ratios);

        if (!ratios)
                return false;
        for (unsigned i = 0; i < n; i++)
                ratios[i] = c->stook.runs[m][i] / c->rival.runs[m][i];
        qsort(ratios, n, sizeof *ratios, ascending);
        signs->ratio = (ratios[(n - 1) / 2] + ratios[n / 2]) / 2;
        signs->low = ratios[k];
        signs->high = ratios[n - 1 - k];
        signs->verdict = n < PAIRS_ENOUGH || (signs->low <= 1 && signs->high >= 1) ?
                VERDICT_NO_DIFFERENCE : signs->high < 1 ? VERDICT_LESS : VERDICT_MORE;
        free(ratios);
        return true;
}

bool comparison_signs(const struct comparison *c, enum measure m, struct signs *signs)
{
        struct spread unused;
        unsigned pairs = c->stook.count < c->rival.count ? c->stook.count : c->rival.count;

        if (!comparison_ratio(c, m, &unused))
                return false;
        signs->less = signs->more = 0;
        signs->pairs = pairs;
        for (unsigned i = 0; i < pairs; i++) {
                signs->less += c->stook.runs[m][i] < c->rival.runs[m][i];
                signs->more += c->stook.runs[m][i] > c->rival.runs[m][i];
        }
        signs->chance = sign_test(signs->less, signs->more);
        return judge(c, m, signs);
}

/*
 * "Time: 12 % less on Stook than on the system malloc", and on the next line "(median of the 6
 * pairs' ratios 0.88, 95 % interval 0.85 to 0.91)"; or what keeps it from being said.
 */
static void sentence(const struct comparison *c, enum measure m, const char *subject,
                     const char *less, const char *more, FILE *out)
{
        struct signs s;

        if (!comparison_signs(c, m, &s))
                return;
        say(out, "%s ", subject);
        if (s.verdict == VERDICT_NO_DIFFERENCE)
                fputs("no difference seen", out);
        else
                say(out, "%.*f %% %s on Stook than on %s%s", fabs(s.ratio - 1) < 0.095,
                    fabs(s.ratio - 1) * 100, s.verdict == VERDICT_LESS ? less : more, c->the,
                    c->rival.name);
        if (s.pairs < PAIRS_ENOUGH)
                say(out, ": fewer than %d pairs of runs cannot show one\n"
                         "  (median of the pairs' ratios %.2f).\n",
                    PAIRS_ENOUGH, s.ratio);
        else
                say(out, "\n  (median of the %u pairs' ratios %.2f, 95 %% interval %.2f to "
                         "%.2f).\n",
                    s.pairs, s.ratio, s.low, s.high);
}

/* The measure, and below it a row for each side: a table of less than 80 columns. */
static void rows_of_both(struct table *t, const struct comparison *c, enum measure m)
{
        struct spread ratio;

        table_row(t);
        table_cell(t, "%s", measures[m].text);
        table_row(t);
        table_cell(t, "  %s", c->stook.name);
        spread_cells(t, &c->stook, m);
        table_row(t);
        table_cell(t, "  %s", c->rival.name);
        spread_cells(t, &c->rival, m);
        if (!comparison_ratio(c, m, &ratio))
                return;
        table_cell(t, "%.3f", ratio.median);
        table_cell(t, "%.3f..%.3f", ratio.min, ratio.max);
}

static void print_table(const struct comparison *c, FILE *out)
{
        bool both = c->rival.count > 0;
        struct table t;

        table_init(&t, both ? 6 : 4);
        table_row(&t);
        table_cell(&t, "%u %s each", c->stook.count, c->stook.count == 1 ? "run" : "runs");
        table_cell(&t, "min");
        table_cell(&t, "median");
        table_cell(&t, "max");
        table_cell(&t, "ratio");        /* of the medians; a table of one side has no room for it */
        table_cell(&t, "pairs");
        for (enum measure m = 0; m < MEASURES; m++) {
                if (both) {
                        rows_of_both(&t, c, m);
                        continue;
                }
                table_row(&t);
                table_cell(&t, "%s", measures[m].text);
                spread_cells(&t, &c->stook, m);
        }
        table_print(&t, out);
}

void comparison_print(const struct comparison *c, const char *program, FILE *out)
{
        bool both = c->rival.count > 0;

        if (!c->stook.count)
                return;
        fputc('\n', out);
        print_table(c, out);
        say(out, "\n%s ran %u %s on Stook", program, c->stook.count,
            c->stook.count == 1 ? "time" : "times");
        if (both)
                say(out, " and %u on %s%s, in turn", c->rival.count, c->the, c->rival.name);
        fputs(both ? ",\n" : ", ", out);
        fputs("after one run that was not timed.\n", out);
        if (both) {
                fputs("In the table, \"ratio\" is that of the two medians, and \"pairs\" are the "
                      "least and\nthe greatest ratio of a pair.\n", out);
                sentence(c, MEASURE_WALL, "Time:", "less", "more", out);
                sentence(c, MEASURE_CPU, "Processor time:", "less", "more", out);
                sentence(c, MEASURE_PEAK, "Peak memory:", "less", "more", out);
        }
}

static const char *const verdicts[] = {
        [VERDICT_NO_DIFFERENCE] = "no difference seen",
        [VERDICT_LESS] = "less",
        [VERDICT_MORE] = "more",
};

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
        if (c->rival.count) {
                side_json(&c->rival, "system", json);
                json_string(json, "against", c->rival.name);
                json_object(json, "ratio");
                for (enum measure m = 0; m < MEASURES; m++) {
                        struct spread r;
                        struct signs signs = { 0 };

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
                        json_number(json, "of_pairs", signs.ratio);
                        json_number(json, "low", signs.low);
                        json_number(json, "high", signs.high);
                        json_string(json, "verdict", verdicts[signs.verdict]);
                        json_object_end(json);
                }
                json_object_end(json);
        }
        json_object_end(json);
}
