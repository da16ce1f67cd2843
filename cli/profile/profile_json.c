/*
 * Purpose: see profile_json.h.
 */
#include "cli/profile/profile_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/profile/short_name.h"
#include "cli/program/on_drop_in.h"

#define PARTS ((double)(1 << STOOK_PROFILE_PART_BITS))

/* Functions by number, so that each stands there once. */
struct writing {
        const struct profile_view *view;
        struct json *json;
        const struct profile_function **functions;
        size_t   count, room;           /* room: of `table`, a power of two */
        size_t  *table;                 /* numbers + 1 */
        bool     failed;
};

static bool is_same(const struct profile_function *a, const struct profile_function *b)
{
        return a == b || (a->line == b->line && !strcmp(a->name, b->name) &&
                          !strcmp(a->file ? a->file : "", b->file ? b->file : ""));
}

static size_t hash_of(const struct profile_function *f)
{
        size_t hash = (size_t)f->line;

        for (const char *c = f->name; *c; c++)
                hash = (hash ^ (unsigned char)*c) * 1099511628211u;
        return hash ^ hash >> 23;
}

static bool grow(struct writing *w)
{
        size_t room = w->room ? 2 * w->room : 1024;
        size_t *table = calloc(room, sizeof *table);
        void *functions = realloc(w->functions, room * sizeof *w->functions);

        if (functions)
                w->functions = functions;
        if (!table || !functions) {
                free(table);
                w->failed = true;
                return false;
        }
        for (size_t n = 0; n < w->count; n++) {
                size_t i = hash_of(w->functions[n]) & (room - 1);

                while (table[i])
                        i = (i + 1) & (room - 1);
                table[i] = n + 1;
        }
        free(w->table);
        w->table = table;
        w->room = room;
        return true;
}

static size_t number_of(struct writing *w, const struct profile_function *f)
{
        size_t i;

        if (2 * w->count >= w->room && !grow(w))
                return 0;
        for (i = hash_of(f) & (w->room - 1); w->table[i]; i = (i + 1) & (w->room - 1))
                if (is_same(w->functions[w->table[i] - 1], f))
                        return w->table[i] - 1;
        w->functions[w->count] = f;
        w->table[i] = ++w->count;
        return w->count - 1;
}

/* The outermost first. */
static void put_stack(struct writing *w, const char *key, const struct pprof_stack *stack)
{
        const struct profile_function *functions[PROFILE_FRAMES_MOST];
        size_t count = profile_names_of(w->view->names, stack, functions);

        json_array(w->json, key);
        for (size_t i = 0; i < count; i++)
                json_count(w->json, NULL, number_of(w, functions[i]));
        json_array_end(w->json);
}

/* Exactly, as far as it is not below 0. */
static void put_integer(struct json *json, const char *key, int64_t value)
{
        if (value >= 0)
                json_count(json, key, (uint64_t)value);
        else
                json_number(json, key, (double)value);
}

static void put_types(struct writing *w)
{
        const struct pprof *p = w->view->names->profile;

        json_array(w->json, "types");
        for (size_t i = 0; i < p->type_count; i++) {
                double spread;
                int64_t total = profile_total(p, (int)i, &spread);

                json_object(w->json, NULL);
                json_string(w->json, "name", pprof_string(p, p->types[i]));
                json_bool(w->json, "bytes", pprof_is_bytes(p, (int)i));
                put_integer(w->json, "total", total);
                json_number(w->json, "spread", spread);
                json_object_end(w->json);
        }
        json_array_end(w->json);
        json_count(w->json, "type", (uint64_t)w->view->type);
}

static void put_sample(struct writing *w, const struct pprof_sample *s)
{
        const struct pprof *p = w->view->names->profile;
        struct json *json = w->json;
        double rate;

        json_object(json, NULL);
        put_stack(w, "stack", &s->stack);
        json_array(json, "values");
        for (size_t i = 0; i < p->type_count; i++)
                put_integer(json, NULL, s->values[i]);
        json_array_end(json);
        if (s->has_more) {
                json_array(json, "samples");
                for (size_t i = 0; i < STOOK_PROFILE_KINDS; i++)
                        json_count(json, NULL, s->more.values[i].samples);
                json_array_end(json);
                json_array(json, "variances");
                for (size_t i = 0; i < STOOK_PROFILE_KINDS; i++) {
                        json_number(json, NULL, s->more.values[i].objects_variance);
                        json_number(json, NULL, s->more.values[i].bytes_variance);
                }
                json_array_end(json);
                if (profile_is_suspect(p, s, &rate) &&
                    !profile_is_noise(p, s, 2 * STOOK_PROFILE_INUSE + 1))
                        json_number(json, "rate", rate);
        }
        json_object_end(json);
}

static void put_pair(struct writing *w, const struct pprof_pair *pair)
{
        const struct stook_profile_file_pair *v = &pair->values;
        struct json *json = w->json;

        json_object(json, NULL);
        put_stack(w, "born", &pair->born);
        put_stack(w, "died", &pair->died);
        json_number(json, "objects", (double)v->objects / PARTS);
        json_number(json, "bytes", (double)v->bytes / PARTS);
        json_number(json, "elsewhere", (double)v->elsewhere / PARTS);
        json_count(json, "samples", v->samples);
        json_array(json, "lives");
        for (unsigned i = 0; i < STOOK_PROFILE_LIVES; i++)
                json_number(json, NULL, (double)v->lives[i] / PARTS);
        json_array_end(json);
        json_object_end(json);
}

static void put_all(struct writing *w)
{
        const struct pprof *p = w->view->names->profile;
        struct json *json = w->json;

        json_count(json, "period", p->period);
        json_number(json, "seconds", (double)p->duration_ns / 1e9);
        json_count(json, "time", p->time_ns / 1000000000);
        json_number(json, "peak", (double)p->session.peak_ns / 1e9);
        json_number(json, "mark", (double)p->session.mark_ns / 1e9);
        json_count(json, "lost", p->session.lost);
        json_bool(json, "lifetimes", p->session.lifetimes);
        put_types(w);
        json_array(json, "stacks");
        for (size_t i = 0; i < p->sample_count; i++)
                put_sample(w, &p->samples[i]);
        json_array_end(json);
        json_array(json, "pairs");
        for (size_t i = 0; i < p->pair_count; i++)
                put_pair(w, &p->pairs[i]);
        json_array_end(json);
        json_array(json, "life_from");
        for (unsigned i = 0; i < STOOK_PROFILE_LIVES; i++)
                json_number(json, NULL, (double)profile_life_from(i) / 1e9);
        json_array_end(json);
        json_array(json, "functions");
        for (size_t i = 0; i < w->count; i++) {
                const struct profile_function *f = w->functions[i];
                char name[256];

                json_array(json, NULL);
                json_string(json, NULL, f->name);
                short_name(f->name, name, sizeof name);
                json_string(json, NULL, name);
                if (f->file) {
                        json_string(json, NULL, name_of_program(f->file));
                        json_count(json, NULL, (uint64_t)f->line);
                }
                json_array_end(json);
        }
        json_array_end(json);
}

int profile_json(const struct profile_view *view, struct json *json)
{
        struct writing w = { .view = view, .json = json };

        json_object(json, "profile");
        put_all(&w);
        json_object_end(json);
        free(w.functions);
        free(w.table);
        return w.failed ? -ENOMEM : 0;
}

/* ---- the document ---- */

static void put_frame(struct json *json, const struct profile_function *f)
{
        char line[2200];

        if (f->file)
                snprintf(line, sizeof line, "%.1000s %.1000s:%d", f->name, f->file, f->line);
        else
                snprintf(line, sizeof line, "%.1000s", f->name);
        json_string(json, NULL, line);
}

void profile_json_stacks(const struct profile_view *view, FILE *out)
{
        const struct profile_function *functions[PROFILE_FRAMES_MOST];
        const struct pprof *p = view->names->profile;
        struct json json;

        json_begin(&json, out);
        json_string(&json, "type", pprof_string(p, p->types[view->type]) ?: "?");
        json_count(&json, "interval", p->period);
        json_array(&json, "stacks");
        for (size_t i = 0; i < p->sample_count; i++) {
                size_t count = profile_names_of(view->names, &p->samples[i].stack, functions);

                json_object(&json, NULL);
                json_array(&json, "stack");
                while (count)
                        put_frame(&json, functions[--count]);
                json_array_end(&json);
                json_object(&json, "values");
                for (size_t k = 0; k < p->type_count; k++)
                        put_integer(&json, pprof_string(p, p->types[k]) ?: "?",
                                    p->samples[i].values[k]);
                json_object_end(&json);
                json_object_end(&json);
        }
        json_array_end(&json);
        json_end(&json);
}
