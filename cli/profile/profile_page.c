/*
 * Purpose: see profile_page.h. The page is page.html; the profile stands in it as JSON, in which no
 * "<" is left, so that no name can end it.
 */
#include "cli/profile/profile_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/info/info.h"
#include "cli/page_html.h"              /* page_html[], made from page.html */
#include "cli/program/on_drop_in.h"
#include "cli/text/json.h"

#define DATA "@DATA@"
#define PARTS ((double)(1 << STOOK_PROFILE_PART_BITS))

/* Functions by number, so that each stands there once. */
struct page {
        const struct profile_view *view;
        struct json json;
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

static bool grow(struct page *page)
{
        size_t room = page->room ? 2 * page->room : 1024;
        size_t *table = calloc(room, sizeof *table);
        void *functions = realloc(page->functions, room * sizeof *page->functions);

        if (functions)
                page->functions = functions;
        if (!table || !functions) {
                free(table);
                page->failed = true;
                return false;
        }
        for (size_t n = 0; n < page->count; n++) {
                size_t i = hash_of(page->functions[n]) & (room - 1);

                while (table[i])
                        i = (i + 1) & (room - 1);
                table[i] = n + 1;
        }
        free(page->table);
        page->table = table;
        page->room = room;
        return true;
}

static size_t number_of(struct page *page, const struct profile_function *f)
{
        size_t i;

        if (2 * page->count >= page->room && !grow(page))
                return 0;
        for (i = hash_of(f) & (page->room - 1); page->table[i]; i = (i + 1) & (page->room - 1))
                if (is_same(page->functions[page->table[i] - 1], f))
                        return page->table[i] - 1;
        page->functions[page->count] = f;
        page->table[i] = ++page->count;
        return page->count - 1;
}

/* The outermost first. */
static void put_stack(struct page *page, const char *key, const struct pprof_stack *stack)
{
        const struct profile_function *functions[PROFILE_FRAMES_MOST];
        size_t count = profile_names_of(page->view->names, stack, functions);

        json_array(&page->json, key);
        for (size_t i = 0; i < count; i++)
                json_count(&page->json, NULL, number_of(page, functions[i]));
        json_array_end(&page->json);
}

/* Exactly, as far as it is not below 0. */
static void put_integer(struct json *json, const char *key, int64_t value)
{
        if (value >= 0)
                json_count(json, key, (uint64_t)value);
        else
                json_number(json, key, (double)value);
}

static void put_types(struct page *page)
{
        const struct pprof *p = page->view->names->profile;

        json_array(&page->json, "types");
        for (size_t i = 0; i < p->type_count; i++) {
                double spread;
                int64_t total = profile_total(p, (int)i, &spread);

                json_object(&page->json, NULL);
                json_string(&page->json, "name", pprof_string(p, p->types[i]));
                json_bool(&page->json, "bytes", pprof_is_bytes(p, (int)i));
                put_integer(&page->json, "total", total);
                json_number(&page->json, "spread", spread);
                json_object_end(&page->json);
        }
        json_array_end(&page->json);
        json_count(&page->json, "type", (uint64_t)page->view->type);
}

static void put_sample(struct page *page, const struct pprof_sample *s)
{
        const struct pprof *p = page->view->names->profile;
        struct json *json = &page->json;
        double rate;

        json_object(json, NULL);
        put_stack(page, "stack", &s->stack);
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

static void put_pair(struct page *page, const struct pprof_pair *pair)
{
        const struct stook_profile_file_pair *v = &pair->values;
        struct json *json = &page->json;

        json_object(json, NULL);
        put_stack(page, "born", &pair->born);
        put_stack(page, "died", &pair->died);
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

static void put_caches(struct page *page, const struct heap *heap)
{
        const struct info_view view = { 0 };
        const struct heap_cache **chosen;
        size_t count = info_choose(heap, &view, &chosen);

        if (count == SIZE_MAX) {
                page->failed = true;
                return;
        }
        json_array(&page->json, "caches");
        for (size_t i = 0; i < count; i++) {
                const struct stook_cache_stats *s = &chosen[i]->stats;

                json_object(&page->json, NULL);
                json_string(&page->json, "name", chosen[i]->name);
                json_count(&page->json, "live", s->objects_live);
                json_count(&page->json, "cached", s->objects_cached);
                json_count(&page->json, "size", s->object_size);
                json_count(&page->json, "slabs", s->slabs);
                json_count(&page->json, "space", info_space_bytes(chosen[i]));
                json_object_end(&page->json);
        }
        json_array_end(&page->json);
        free(chosen);
}

static void put_all(struct page *page, const char *name, const struct heap *heap)
{
        const struct pprof *p = page->view->names->profile;
        struct json *json = &page->json;

        json_string(json, "name", name);
        json_count(json, "period", p->period);
        json_number(json, "seconds", (double)p->duration_ns / 1e9);
        json_count(json, "time", p->time_ns / 1000000000);
        json_number(json, "peak", (double)p->session.peak_ns / 1e9);
        json_number(json, "mark", (double)p->session.mark_ns / 1e9);
        json_count(json, "lost", p->session.lost);
        json_bool(json, "lifetimes", p->session.lifetimes);
        put_types(page);
        json_array(json, "stacks");
        for (size_t i = 0; i < p->sample_count; i++)
                put_sample(page, &p->samples[i]);
        json_array_end(json);
        json_array(json, "pairs");
        for (size_t i = 0; i < p->pair_count; i++)
                put_pair(page, &p->pairs[i]);
        json_array_end(json);
        json_array(json, "life_from");
        for (unsigned i = 0; i < STOOK_PROFILE_LIVES; i++)
                json_number(json, NULL, (double)profile_life_from(i) / 1e9);
        json_array_end(json);
        if (heap)
                put_caches(page, heap);
        json_array(json, "functions");
        for (size_t i = 0; i < page->count; i++) {
                const struct profile_function *f = page->functions[i];

                json_array(json, NULL);
                json_string(json, NULL, f->name);
                if (f->file) {
                        json_string(json, NULL, name_of_program(f->file));
                        json_count(json, NULL, (uint64_t)f->line);
                }
                json_array_end(json);
        }
        json_array_end(json);
}

/* "<" is in texts alone, and line ends and what follows them are in none. */
static void write_data(const char *text, FILE *out)
{
        for (; *text; text++) {
                if (*text == '<')
                        fputs("\\u003c", out);
                else if (*text != '\n')
                        fputc(*text, out);
                else
                        text += strspn(text + 1, " ");
        }
}

int profile_page(const struct profile_view *view, const char *name, const struct heap *heap,
                 FILE *out)
{
        struct page page = { .view = view };
        const char *data = strstr(page_html, DATA);
        char *text = NULL;
        size_t bytes = 0;
        FILE *json = open_memstream(&text, &bytes);

        if (!json)
                return -ENOMEM;
        json_begin(&page.json, json);
        put_all(&page, name, heap);
        json_end(&page.json);
        page.failed |= fclose(json) != 0;
        if (!page.failed) {
                fwrite(page_html, 1, (size_t)(data - page_html), out);
                write_data(text, out);
                fputs(data + strlen(DATA), out);
        }
        free(text);
        free(page.functions);
        free(page.table);
        return page.failed ? -ENOMEM : 0;
}
