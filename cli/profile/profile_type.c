/*
 * Purpose: see profile_type.h.
 */
#include "cli/profile/profile_type.h"

#include <stdlib.h>
#include <string.h>

#define PARTS ((double)(1 << STOOK_PROFILE_PART_BITS))

int profile_type_default(const struct pprof *p)
{
        int type = pprof_type(p, STOOK_PROFILE_FILE_DEFAULT);

        if (type < 0)
                type = pprof_type(p, "inuse_space");
        return type < 0 ? (int)p->type_count - 1 : type;
}

bool profile_spread(const struct pprof *p, const struct pprof_sample *s, int type,
                    uint64_t *samples, double *variance)
{
        int kind = pprof_kind(p, type);

        if (!s->has_more || kind < 0)
                return false;
        *samples = s->more.values[kind].samples;
        *variance = pprof_is_bytes(p, type) ? s->more.values[kind].bytes_variance
                                            : s->more.values[kind].objects_variance;
        if (!(*variance >= 0 && *variance < 1e36))      /* of a damaged file */
                *variance = 0;
        return true;
}

bool profile_is_noise(const struct pprof *p, const struct pprof_sample *s, int type)
{
        uint64_t samples;
        double variance;

        return profile_spread(p, s, type, &samples, &variance) &&
               samples < PROFILE_SAMPLES_FEW && variance > 0;
}

static int sort_type;                   /* for the comparison */

static int larger_first(const void *a, const void *b)
{
        const struct pprof_sample *x = a, *y = b;
        int64_t left = x->values[sort_type], right = y->values[sort_type];

        return left != right ? (left < right ? 1 : -1) : x->stack.first < y->stack.first ? -1 : 1;
}

void profile_sort(struct pprof *p, int type)
{
        sort_type = type;
        if (p->sample_count)
                qsort(p->samples, p->sample_count, sizeof *p->samples, larger_first);
}

/* ---- times ---- */

uint64_t profile_life_from(unsigned i)
{
        return i ? UINT64_C(1) << (STOOK_PROFILE_LIFE_BITS + i - 1) : 0;
}

static unsigned life_of(uint64_t ns)
{
        unsigned i = 0;

        while (i + 1 < STOOK_PROFILE_LIVES && profile_life_from(i + 1) <= ns)
                i++;
        return i;
}

/* Of windows so wide as a damaged file may say, all the time lies in the first. */
static double width_of(const struct stook_profile_windows *w)
{
        uint64_t bits = w->shift < 39 ? w->shift + STOOK_PROFILE_WINDOW_BITS : 63;

        return (double)(UINT64_C(1) << bits);
}

void profile_ages(const struct pprof *p, const struct pprof_sample *s,
                  uint64_t bytes[STOOK_PROFILE_LIVES])
{
        const struct stook_profile_windows *w = &s->more.windows;
        double width = width_of(w), now = (double)p->session.ns;

        memset(bytes, 0, STOOK_PROFILE_LIVES * sizeof *bytes);
        for (unsigned i = 0; s->has_more && i < STOOK_PROFILE_WINDOWS; i++) {
                double age = now - (i + 1) * width;

                if (w->born[i] > w->gone[i])
                        bytes[life_of(age > 0 ? (uint64_t)age : 0)] += w->born[i] - w->gone[i];
        }
}

/* What the windows from @from to @to ns have; of a window that is cut its share. */
static double between(const uint64_t *windows, double width, double from, double to)
{
        double sum = 0;

        for (unsigned i = 0; i < STOOK_PROFILE_WINDOWS; i++) {
                double start = i * width, end = start + width;
                double left = from > start ? from : start, right = to < end ? to : end;

                if (right > left)
                        sum += (double)windows[i] * (right - left) / width;
        }
        return sum;
}

bool profile_is_suspect(const struct pprof *p, const struct pprof_sample *s, double *rate)
{
        const struct stook_profile_windows *w = &s->more.windows;
        double width = width_of(w), quarter = (double)p->session.ns / 4, born = 0, died = 0;

        if (!p->has_session || !s->has_more || quarter <= 0)
                return false;
        for (unsigned q = 0; q < 4; q++) {
                double in = between(w->born, width, q * quarter, (q + 1) * quarter);
                double out = between(w->died, width, q * quarter, (q + 1) * quarter);
                double gone = between(w->gone, width, q * quarter, (q + 1) * quarter);

                if (in <= out || (!q && gone >= in / 10))
                        return false;
                born += in;
                died += out;
        }
        *rate = (born - died) / PARTS / ((double)p->session.ns / 60e9);
        return true;
}

/* ---- lifetimes ---- */

static bool copy_stack(const struct pprof *p, const struct pprof_stack *from, struct pprof *to,
                       struct pprof_stack *stack)
{
        for (size_t i = 0; i < from->count; i++)
                if (!pprof_add_to_stack(to, stack, p->stacks[from->first + i]))
                        return false;
        return true;
}

/* A location that is a name. Its number: 0: no memory. */
static uint64_t add_name(struct pprof *to, const char *name, uint64_t id)
{
        struct pprof_location *location = pprof_add_location(to);
        struct pprof_function *function = pprof_add_function(to);
        struct pprof_line *line = pprof_add_line(to);

        if (!location || !function || !line)
                return 0;
        *function = (struct pprof_function){ id, pprof_add_string(to, name), 0 };
        *line = (struct pprof_line){ id, 0 };
        *location = (struct pprof_location){ .id = id, .first = to->line_count - 1, .count = 1 };
        return function->name ? id : 0;
}

/* Mappings, locations and functions as they are; strings keep their numbers. */
static bool copy_places(const struct pprof *p, struct pprof *to)
{
        for (size_t i = 0; i < p->string_count; i++)
                if (pprof_add_string(to, p->strings[i]) != i && *p->strings[i])
                        return false;
#define COPY(what, items, count) \
        for (size_t i = 0; i < p->count; i++) { \
                struct pprof_##what *copy = pprof_add_##what(to); \
                if (!copy) \
                        return false; \
                *copy = p->items[i]; \
        }
        COPY(mapping, mappings, mapping_count)
        COPY(location, locations, location_count)
        COPY(line, lines, line_count)
        COPY(function, functions, function_count)
#undef COPY
        return true;
}

static uint64_t whole(double parts)
{
        return (uint64_t)(parts / PARTS + 0.5);
}

static bool add_life(const struct pprof *p, const struct pprof_stack *born,
                     const struct pprof_stack *died, uint64_t freed_by, struct pprof *to,
                     unsigned life, double objects, double bytes)
{
        struct pprof_sample *s = whole(objects) || whole(bytes) ? pprof_add_sample(to) : NULL;
        struct pprof_stack stack = { 0 };

        if (!whole(objects) && !whole(bytes))
                return true;
        if (!s || (died && !copy_stack(p, died, to, &stack)) ||
            !pprof_add_to_stack(to, &stack, freed_by) || !copy_stack(p, born, to, &stack))
                return false;
        s->stack = stack;
        s->values[0] = (int64_t)whole(objects);
        s->values[1] = (int64_t)whole(bytes);
        s->life_ns = profile_life_from(life ? life : 1);
        return true;
}

static bool add_pair(const struct pprof *p, const struct pprof_pair *pair, uint64_t freed_by,
                     struct pprof *to)
{
        const struct stook_profile_file_pair *v = &pair->values;

        for (unsigned i = 0; i < STOOK_PROFILE_LIVES; i++) {
                double objects = (double)v->lives[i];
                double share = v->objects ? objects / (double)v->objects : 0;

                if (!add_life(p, &pair->born, &pair->died, freed_by, to, i, objects,
                              share * (double)v->bytes))
                        return false;
        }
        return true;
}

static bool add_in_use(const struct pprof *p, const struct pprof_sample *s, uint64_t in_use,
                       struct pprof *to)
{
        uint64_t bytes[STOOK_PROFILE_LIVES];
        int type = 2 * STOOK_PROFILE_INUSE;
        double size = s->values[type] ? (double)s->values[type + 1] / (double)s->values[type] : 0;

        profile_ages(p, s, bytes);
        for (unsigned i = 0; i < STOOK_PROFILE_LIVES; i++)
                if (bytes[i] && !add_life(p, &s->stack, NULL, in_use, to, i,
                                          size > 0 ? (double)bytes[i] / size : 0,
                                          (double)bytes[i]))
                        return false;
        return true;
}

bool profile_lifetimes(const struct pprof *p, struct pprof *to)
{
        static const char *const types[][2] = { { "freed_objects", "count" },
                                                { "freed_space", "bytes" } };
        uint64_t freed_by, in_use;

        *to = (struct pprof){ .period = p->period, .time_ns = p->time_ns,
                              .duration_ns = p->duration_ns };
        if (!copy_places(p, to))
                return false;
        freed_by = add_name(to, PROFILE_FREED_BY, UINT64_MAX - 1);
        in_use = add_name(to, PROFILE_IN_USE, UINT64_MAX);
        for (to->type_count = 0; to->type_count < 2; to->type_count++) {
                to->types[to->type_count] = pprof_add_string(to, types[to->type_count][0]);
                to->units[to->type_count] = pprof_add_string(to, types[to->type_count][1]);
        }
        if (!freed_by || !in_use)
                return false;
        for (size_t i = 0; i < p->pair_count; i++)
                if (!add_pair(p, &p->pairs[i], freed_by, to))
                        return false;
        for (size_t i = 0; i < p->sample_count; i++)
                if (p->samples[i].has_more && !add_in_use(p, &p->samples[i], in_use, to))
                        return false;
        to->has_session = p->has_session;
        to->session = p->session;
        pprof_sort(to);
        return true;
}
