/*
 * Purpose: see profile_text.h. What is printed with +- is the estimate's standard deviation.
 */
#include "cli/profile/profile_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include "cli/program/on_drop_in.h"
#include "cli/text/plain_text.h"
#include "cli/text/table.h"

/* Without libm: Newton's steps, from above. */
static double root_of(double x)
{
        double root = x > 1 ? x : 1;

        for (int i = 0; x > 0 && i < 200; i++) {
                double next = (root + x / root) / 2;

                if (next >= root)
                        break;
                root = next;
        }
        return x > 0 ? root : 0;
}

/* bytes_text, with the unit of bytes, too. */
static const char *size_text(double bytes, char *text, size_t room)
{
        if (bytes < 1024)
                snprintf(text, room, "%.0f B", bytes);
        else
                bytes_text((uint64_t)bytes, text, room);
        return text;
}

const char *profile_amount(const struct pprof *p, int type, int64_t value, char *text, size_t bytes)
{
        uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
        char number[64];

        if (pprof_is_bytes(p, type))
                size_text((double)size, number, sizeof number);
        else
                snprintf(number, sizeof number, "%" PRIu64 " objects", size);
        snprintf(text, bytes, "%s%s", value < 0 ? "-" : "", number);
        return text;
}

int64_t profile_total(const struct pprof *p, int type, double *spread)
{
        double variance = 0, one;
        bool known = p->sample_count;
        uint64_t samples;
        int64_t total = 0;

        for (size_t i = 0; i < p->sample_count; i++) {
                total += p->samples[i].values[type];
                if (profile_spread(p, &p->samples[i], type, &samples, &one))
                        variance += one;
                else
                        known = false;
        }
        *spread = known ? root_of(variance) : -1;
        return total;
}

/* " +- 1.2 KiB" */
static const char *spread_text(const struct pprof *p, int type, double spread, char *text,
                               size_t bytes)
{
        char amount[64];

        text[0] = '\0';
        if (spread >= 0)
                snprintf(text, bytes, " +- %s",
                         profile_amount(p, type, (int64_t)(spread + 0.5), amount, sizeof amount));
        return text;
}

static void print_line(const struct profile_function *f, const char *indent, FILE *out)
{
        if (f->file)
                say(out, "%s%s %s:%d\n", indent, f->name, name_of_program(f->file), f->line);
        else
                say(out, "%s%s\n", indent, f->name);
}

/* The innermost first. */
static void print_stack(struct profile_names *names, const struct pprof_stack *stack,
                        const char *indent, FILE *out)
{
        const struct profile_function *functions[PROFILE_FRAMES_MOST];
        size_t count = profile_names_of(names, stack, functions);

        while (count)
                print_line(functions[--count], indent, out);
}

/* ---- stacks ---- */

static void print_head(const struct profile_view *v, FILE *out)
{
        const struct pprof *p = v->names->profile;
        char total[64], spread[80], text[64];
        double deviation;
        int64_t sum = profile_total(p, v->type, &deviation);
        int kind = pprof_kind(p, v->type);

        say(out, "%s: %s%s", pprof_string(p, p->types[v->type]),
            profile_amount(p, v->type, sum, total, sizeof total),
            spread_text(p, v->type, deviation, spread, sizeof spread));
        if (p->period)
                say(out, ", by samples of one in %s",
                    size_text((double)p->period, text, sizeof text));
        if (p->has_session && kind == STOOK_PROFILE_PEAK && p->session.peak_ns)
                say(out, "; %s after the start",
                    seconds_text((double)p->session.peak_ns / 1e9, text, sizeof text));
        if (p->has_session && kind == STOOK_PROFILE_GROWTH)
                say(out, p->session.mark_ns ? "; since a mark %s after the start"
                                            : "; since the start, for there was no mark",
                    seconds_text((double)p->session.mark_ns / 1e9, text, sizeof text));
        fputc('\n', out);
}

static void print_sample(const struct profile_view *v, const struct pprof_sample *s, double total,
                         FILE *out)
{
        const struct pprof *p = v->names->profile;
        char text[64], spread[80];
        uint64_t samples;
        double variance;
        bool known = profile_spread(p, s, v->type, &samples, &variance);

        say(out, "\n%s%s, %.1f %%",
            profile_amount(p, v->type, s->values[v->type], text, sizeof text),
            spread_text(p, v->type, known ? root_of(variance) : -1, spread, sizeof spread),
            total != 0 ? 100.0 * (double)s->values[v->type] / total : 0);
        if (known)
                say(out, samples == 1 ? ", 1 sample" : ", %" PRIu64 " samples", samples);
        fputc('\n', out);
        print_stack(v->names, &s->stack, "        ", out);
}

void profile_text_stacks(const struct profile_view *v, FILE *out)
{
        const struct pprof *p = v->names->profile;
        double total, unused;
        size_t shown = 0, hidden = 0;
        int64_t hidden_sum = 0;
        char text[64];

        print_head(v, out);
        total = (double)profile_total(p, v->type, &unused);
        for (size_t i = 0; i < p->sample_count; i++) {
                const struct pprof_sample *s = &p->samples[i];

                if (!s->values[v->type])
                        continue;
                if (!v->all && profile_is_noise(p, s, v->type)) {
                        hidden++;
                        hidden_sum += s->values[v->type];
                } else if (shown < v->top) {
                        print_sample(v, s, total, out);
                        shown++;
                }
        }
        if (hidden)
                say(out, "\n%s in %zu stack%s of fewer than %d samples (--all shows all)\n",
                    profile_amount(p, v->type, hidden_sum, text, sizeof text), hidden,
                    hidden == 1 ? "" : "s", PROFILE_SAMPLES_FEW);
}

void profile_text_folded(const struct profile_view *v, FILE *out)
{
        const struct profile_function *functions[PROFILE_FRAMES_MOST];
        const struct pprof *p = v->names->profile;

        for (size_t i = 0; i < p->sample_count; i++) {
                size_t count;

                if (p->samples[i].values[v->type] <= 0)
                        break;
                count = profile_names_of(v->names, &p->samples[i].stack, functions);
                for (size_t k = 0; k < count; k++)
                        for (const char *c = k ? ";" : "", *n = functions[k]->name; *c || *n; )
                                fputc(*c ? *c++ : *n == ';' ? (n++, ':') : *n++, out);
                say(out, " %" PRId64 "\n", p->samples[i].values[v->type]);
        }
}

/* ---- lifetimes ---- */

static const char *life_text(unsigned i, char *text, size_t bytes)
{
        return seconds_text((double)profile_life_from(i) / 1e9, text, bytes);
}

/* "from 2 us 13 %, from 4 us 87 %" */
static void print_lives(const uint64_t lives[STOOK_PROFILE_LIVES], FILE *out)
{
        const char *comma = "    ";
        double all = 0;
        char text[64];

        for (unsigned i = 0; i < STOOK_PROFILE_LIVES; i++)
                all += (double)lives[i];
        for (unsigned i = 0; i < STOOK_PROFILE_LIVES; i++) {
                if (!lives[i] || (double)lives[i] < all / 200)
                        continue;
                say(out, "%s%s%s %.0f %%", comma, i ? "from " : "below ",
                    life_text(i ? i : 1, text, sizeof text), 100.0 * (double)lives[i] / all);
                comma = ", ";
        }
        fputc('\n', out);
}

static int more_bytes_first(const void *a, const void *b)
{
        const struct pprof_pair *x = a, *y = b;

        return (x->values.bytes < y->values.bytes) - (x->values.bytes > y->values.bytes);
}

static void print_pair(const struct profile_view *v, const struct pprof_pair *pair, FILE *out)
{
        const struct stook_profile_file_pair *x = &pair->values;
        char text[64];

        say(out, "\n%s in %" PRIu64 " object%s, %.0f %% freed by another thread, %" PRIu64
            " sample%s; they lived\n",
            size_text((double)(x->bytes >> STOOK_PROFILE_PART_BITS), text, sizeof text),
            x->objects >> STOOK_PROFILE_PART_BITS,
            x->objects >> STOOK_PROFILE_PART_BITS == 1 ? "" : "s",
            x->objects ? 100.0 * (double)x->elsewhere / (double)x->objects : 0, x->samples,
            x->samples == 1 ? "" : "s");
        print_lives(x->lives, out);
        fputs("    allocated by\n", out);
        print_stack(v->names, &pair->born, "        ", out);
        fputs("    freed by\n", out);
        print_stack(v->names, &pair->died, "        ", out);
}

static void print_in_use(const struct profile_view *v, FILE *out)
{
        const struct pprof *p = v->names->profile;
        int type = pprof_type(p, "inuse_space");
        unsigned shown = 0;
        char text[64];

        for (size_t i = 0; type >= 0 && i < p->sample_count && shown < v->top; i++) {
                const struct pprof_sample *s = &p->samples[i];
                uint64_t ages[STOOK_PROFILE_LIVES];

                if (s->values[type] <= 0 || (!v->all && profile_is_noise(p, s, type)))
                        continue;
                profile_ages(p, s, ages);
                say(out, "\n%s in use; they have lived\n",
                    size_text((double)s->values[type], text, sizeof text));
                print_lives(ages, out);
                fputs("    allocated by\n", out);
                print_stack(v->names, &s->stack, "        ", out);
                shown++;
        }
}

void profile_text_lifetimes(const struct profile_view *v, FILE *out)
{
        const struct pprof *p = v->names->profile;
        unsigned shown = 0;

        say(out, "lifetimes: %zu pair%s of stacks that allocated and freed\n", p->pair_count,
            p->pair_count == 1 ? "" : "s");
        if (p->pair_count)
                qsort(p->pairs, p->pair_count, sizeof *p->pairs, more_bytes_first);
        for (size_t i = 0; i < p->pair_count && shown < v->top; i++) {
                if (!v->all && p->period > 1 && p->pairs[i].values.samples < PROFILE_SAMPLES_FEW)
                        continue;
                print_pair(v, &p->pairs[i], out);
                shown++;
        }
        print_in_use(v, out);
}

/* ---- suspects ---- */

struct suspect {
        const struct pprof_sample *sample;
        double rate;
};

static int faster_first(const void *a, const void *b)
{
        const struct suspect *x = a, *y = b;

        return (x->rate < y->rate) - (x->rate > y->rate);
}

static void print_suspect(const struct profile_view *v, const struct suspect *suspect, int type,
                          FILE *out)
{
        const struct pprof *p = v->names->profile;
        double minutes = (double)p->session.ns / 60e9, variance = 0;
        char rate[64], spread[64], text[64];
        uint64_t samples = 0;

        profile_spread(p, suspect->sample, type, &samples, &variance);
        say(out, "\n%s a minute +- %s, %s in use, %" PRIu64 " samples\n",
            size_text(suspect->rate, rate, sizeof rate),
            size_text(root_of(variance) / minutes, spread, sizeof spread),
            size_text((double)suspect->sample->values[type], text, sizeof text), samples);
        print_stack(v->names, &suspect->sample->stack, "        ", out);
}

size_t profile_text_suspects(const struct profile_view *v, FILE *out)
{
        const struct pprof *p = v->names->profile;
        struct suspect *suspects = calloc(p->sample_count + 1, sizeof *suspects);
        int type = pprof_type(p, "inuse_space");
        size_t count = 0;
        char text[64];

        for (size_t i = 0; suspects && type >= 0 && i < p->sample_count; i++) {
                const struct pprof_sample *s = &p->samples[i];

                if (profile_is_suspect(p, s, &suspects[count].rate) &&
                    (v->all || !profile_is_noise(p, s, type)))
                        suspects[count++].sample = s;
        }
        if (count)
                qsort(suspects, count, sizeof *suspects, faster_first);
        say(out, "suspects: %zu stack%s of which more was allocated than freed in each quarter of "
            "%s\n", count, count == 1 ? "" : "s",
            seconds_text((double)p->session.ns / 1e9, text, sizeof text));
        for (size_t i = 0; i < count && i < v->top; i++)
                print_suspect(v, &suspects[i], type, out);
        free(suspects);
        return count;
}
