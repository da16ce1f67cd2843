/*
 * Purpose: `stook leaks`: objects of a process, or of a core, that nothing leads to.
 * A process runs on while it is looked at, and a word may move from where it was not yet read to
 * where it was. What is lost stays lost, so an object counts if each of several looks finds it
 * lost. A core is looked at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/commands.h"
#include "cli/heap/heap_search.h"
#include "cli/objects/stack_text.h"
#include "cli/symbols/leaks.h"
#include "cli/text/plain_text.h"

#define STATUS_LEAKS   1
#define LOOKS_DEFAULT  3                /* arbitrary, as PAUSE_NS */
#define PAUSE_NS       20000000
#define SHOWN_MOST     100              /* groups that are told, as text */

struct options {
        struct target_request request;
        const char *suppress;
        unsigned    looks;
        bool        json;
};

static const char usage[] =
        "usage: stook leaks [--json] [--looks N] [--suppress FUNCTION[,...]] [--library NAME]\n"
        "                   [--exe FILE] PID|CORE\n";
static const char help[] =
        "\n"
        "Searches the memory of a running process of the same user, or of one that left a core,\n"
        "for objects in use that no word leads to any more. The process is only read, and goes on\n"
        "meanwhile. Calls that allocated them are known of caches with debug mode U, and of\n"
        "objects that are samples of a heap profile.\n"
        "Exit status: 0: none; 1: there are some, or there is nothing to look at; 2: stook cannot\n"
        "do what was asked.\n"
        "\n"
        "options:\n"
        "  --json          every group, with keys that stay\n"
        "  --looks N       what is lost must be found so by N looks in a row (3; a core: 1)\n"
        "  --suppress FUNCTION[,...]\n"
        "                  leave out what was allocated below these functions; each may end\n"
        "                  with *\n"
        TARGET_HELP_TEXT;

enum { OPTION_JSON = TARGET_OPTION_FIRST, OPTION_LOOKS, OPTION_SUPPRESS };

static const struct option long_options[] = {
        { "json", no_argument, NULL, OPTION_JSON },
        { "looks", required_argument, NULL, OPTION_LOOKS },
        { "suppress", required_argument, NULL, OPTION_SUPPRESS },
        TARGET_OPTIONS
};

static bool take(int option, void *data)
{
        struct options *o = data;

        switch (option) {
        case OPTION_JSON:
                o->json = true;
                return true;
        case OPTION_LOOKS:
                return option_count("leaks", "--looks", optarg, 1000, &o->looks);
        default:
                o->suppress = optarg;
                return true;
        }
}

static const struct target_command command = { "leaks", usage, help, long_options, take, NULL };

/* ---- objects that stay lost ---- */

static int by_object(const void *a, const void *b)
{
        const struct heap_lost *x = a, *y = b;

        if (x->start != y->start)
                return x->start < y->start ? -1 : 1;
        return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

/* One look. *@heap is to be freed where it succeeds, as is leaks->lost. Said where it does not. */
static bool look(struct heap *h, struct memory *memory, const struct library *library,
                 struct heap_leaks *leaks)
{
        int error = heap_read(h, memory, library, HEAP_SPANS);

        if (!error) {
                error = heap_find_leaks(h, leaks);
                if (!error)
                        return true;
                free(leaks->lost);
                heap_free(h);
                snprintf(h->error, sizeof h->error, "%s", strerror(-error));
        }
        say(stderr, "stook leaks: %u: %s\n", memory->pid, h->error);
        return false;
}

static void keep_common(struct heap_leaks *now, const struct heap_leaks *before)
{
        size_t n = 0;

        for (size_t i = 0; i < now->count; i++)
                if (before->count && bsearch(&now->lost[i], before->lost, before->count,
                                             sizeof *before->lost, by_object))
                        now->lost[n++] = now->lost[i];
        now->count = n;
}

/* As look(), of all looks. */
static bool look_often(struct heap *h, struct memory *memory, const struct library *library,
                       unsigned looks, struct heap_leaks *leaks)
{
        const struct timespec pause = { 0, PAUSE_NS };
        bool good = look(h, memory, library, leaks);

        for (unsigned i = 1; i < looks && good && leaks->count; i++) {
                struct heap_leaks before = *leaks;

                heap_free(h);
                nanosleep(&pause, NULL);
                good = look(h, memory, library, leaks);
                if (good)
                        keep_common(leaks, &before);
                free(before.lost);
        }
        return good;
}

/* ---- groups: of one stack and cache ---- */

struct group {
        const struct heap_lost *first;
        uint64_t objects, bytes;
        struct frames frames;
};

struct report {
        const struct heap *heap;
        const struct heap_leaks *leaks;
        struct group *groups;           /* most bytes first */
        size_t   count;
        uint64_t objects, bytes, suppressed;
};

static int by_cause(const void *a, const void *b)
{
        const struct heap_lost *x = a, *y = b;

        if (x->stack != y->stack)
                return x->stack < y->stack ? -1 : 1;
        if (x->cache != y->cache)
                return x->cache < y->cache ? -1 : 1;
        return x->start < y->start ? -1 : x->start > y->start;
}

static int by_bytes(const void *a, const void *b)
{
        const struct group *x = a, *y = b;

        if (x->bytes != y->bytes)
                return x->bytes < y->bytes ? 1 : -1;
        return x->first->start < y->first->start ? -1 : 1;
}

/* Names the frames of a group that is whole, or leaves it out. False: no memory. */
static bool end_group(struct report *r, const struct stack_text *text, const char *suppress)
{
        struct group *g = &r->groups[r->count];

        if (stack_text_frames(text, g->first->stack, &g->frames))
                return false;
        if (leaks_are_suppressed(&g->frames, suppress)) {
                r->suppressed += g->objects;
                frames_release(&g->frames);
                return true;
        }
        r->objects += g->objects;
        r->bytes += g->bytes;
        r->count++;
        return true;
}

/* Sorts leaks->lost. */
static bool group(struct report *r, struct heap_leaks *leaks, const struct stack_text *text,
                  const char *suppress)
{
        bool good = true;

        r->leaks = leaks;
        r->groups = calloc(leaks->count + 1, sizeof *r->groups);
        if (!r->groups)
                return false;
        if (leaks->count)
                qsort(leaks->lost, leaks->count, sizeof *leaks->lost, by_cause);
        for (size_t i = 0; i < leaks->count && good; i++) {
                struct group *g = &r->groups[r->count];
                const struct heap_lost *lost = &leaks->lost[i];

                if (!g->objects)
                        *g = (struct group){ .first = lost };
                g->objects++;
                g->bytes += lost->bytes;
                if (i + 1 == leaks->count || lost[1].stack != lost->stack ||
                    lost[1].cache != lost->cache) {
                        good = end_group(r, text, suppress);
                        r->groups[r->count].objects = 0;
                }
        }
        if (r->count)
                qsort(r->groups, r->count, sizeof *r->groups, by_bytes);
        return good;
}

static void release(struct report *r)
{
        for (size_t i = 0; i < r->count; i++)
                frames_release(&r->groups[i].frames);
        free(r->groups);
}

/* ---- what is said ---- */

static const char *cache_name(const struct heap *h, const struct heap_lost *lost)
{
        const struct heap_cache *c = heap_cache_of(h, lost->cache);

        return c ? c->name : "malloc-large";
}

static void print_group(const struct report *r, const struct group *g)
{
        say(stdout, "  %" PRIu64 " object%s, %" PRIu64 " bytes of %s", g->objects,
            plural(g->objects), g->bytes, cache_name(r->heap, g->first));
        if (!g->first->stack) {
                say(stdout, ", such as %#" PRIx64 "\n", g->first->start);
                return;
        }
        say(stdout, ", such as %#" PRIx64 ", allocated by\n", g->first->start);
        stack_text_print(&g->frames, stdout);
}

static void print(const struct target *t, const struct report *r)
{
        char name[512];

        target_name(t, r->heap->library, name, sizeof name);
        if (!r->objects)
                say(stdout, "%s: no leak among %" PRIu64 " live objects\n", name, r->leaks->live);
        else
                say(stdout, "%s: leak: %" PRIu64 " object%s, %" PRIu64 " bytes that nothing leads "
                    "to, of %" PRIu64 " live objects\n", name, r->objects, plural(r->objects),
                    r->bytes, r->leaks->live);
        for (size_t i = 0; i < r->count && i < SHOWN_MOST; i++)
                print_group(r, &r->groups[i]);
        if (r->count > SHOWN_MOST)
                say(stdout, "  (and %zu more groups)\n", r->count - SHOWN_MOST);
        if (r->suppressed)
                say(stdout, "  suppressed: %" PRIu64 " objects\n", r->suppressed);
}

static void write_json(const struct report *r, struct json *j)
{
        char address[24];

        json_object(j, NULL);
        json_string(j, "library", r->heap->library->image->path);
        json_count(j, "objects_live", r->leaks->live);
        json_count(j, "objects_lost", r->objects);
        json_count(j, "bytes_lost", r->bytes);
        json_count(j, "objects_suppressed", r->suppressed);
        json_array(j, "leaks");
        for (size_t i = 0; i < r->count; i++) {
                const struct group *g = &r->groups[i];

                json_object(j, NULL);
                json_string(j, "cache", cache_name(r->heap, g->first));
                json_count(j, "objects_lost", g->objects);
                json_count(j, "bytes_lost", g->bytes);
                snprintf(address, sizeof address, "%#" PRIx64, g->first->start);
                json_string(j, "first", address);
                stack_text_json(&g->frames, "allocated_by", j);
                json_object_end(j);
        }
        json_array_end(j);
        json_object_end(j);
}

/* Return: the exit status. */
static int show(struct target *t, struct library *at, struct json *or_null, void *data)
{
        const struct options *o = data;
        struct heap_leaks leaks = { 0 };
        struct report r = { 0 };
        struct stack_text text;
        struct heap h;
        bool good;

        if (!look_often(&h, &t->memory, at, t->is_core ? 1 : o->looks, &leaks))
                return STATUS_LEAKS;
        stack_text_open(&text, &t->memory, at);
        r.heap = &h;
        good = group(&r, &leaks, &text, o->suppress);
        if (!good)
                fputs("stook leaks: no memory\n", stderr);
        else if (or_null)
                write_json(&r, or_null);
        else
                print(t, &r);
        release(&r);
        stack_text_close(&text);
        free(leaks.lost);
        heap_free(&h);
        return !good ? STATUS_CANNOT : r.objects ? STATUS_LEAKS : 0;
}

int cmd_leaks(int argc, char **argv)
{
        struct options o = { .looks = LOOKS_DEFAULT };
        int status = target_options(&command, argc, argv, &o.request, &o);

        if (status >= 0)
                return status;
        o.request.what = option_process("leaks", argc, argv, usage);
        if (!o.request.what)
                return STATUS_CANNOT;
        return target_show(&command, &o.request, o.json ? "libraries" : NULL, show, &o);
}
