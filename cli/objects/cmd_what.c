/*
 * Purpose: `stook what`: which object of a process, or of a core, an address lies in, what is known
 * of it, and which words of the program lead to it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/heap/heap_object.h"
#include "cli/heap/heap_search.h"
#include "cli/objects/stack_text.h"
#include "cli/text/plain_text.h"

#define STATUS_NOTHING  1
#define POINTERS_SHOWN  20              /* as text */
#define POINTERS_MOST   1000

struct options {
        struct target_request request;
        uint64_t    address;
        bool        json, found;
};

static const char usage[] =
        "usage: stook what [--json] [--library NAME] [--exe FILE] PID|CORE ADDRESS\n";
static const char help[] =
        "\n"
        "Says which object ADDRESS lies in, of a running process of the same user or of one that\n"
        "left a core: its cache, its slab, whether it is in use, and which words of the program\n"
        "lead to it. Of caches with debug modes, and of samples, also how much was requested, and\n"
        "the calls that allocated and freed it. The process is only read.\n"
        "Exit status: 0: it lies in an object; 1: it does not; 2: stook cannot do what was asked.\n"
        "\n"
        "options:\n"
        "  --json          with keys that stay\n"
        TARGET_HELP_TEXT;

static const struct option long_options[] = {
        { "json", no_argument, NULL, TARGET_OPTION_FIRST },
        TARGET_OPTIONS
};

static bool take(int option, void *data)
{
        (void)option;
        ((struct options *)data)->json = true;
        return true;
}

static const struct target_command command = { "what", usage, help, long_options, take, NULL };

/* Return: -1, go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
        int status = target_options(&command, argc, argv, &o->request, o);
        char *end;

        if (status >= 0)
                return status;
        if (argc - optind != 2)
                return option_misused("what", usage, argc - optind < 2
                                      ? "a process and an address are needed" : "too much: '%s'",
                                      argv[optind + 2 < argc ? optind + 2 : argc - 1]);
        o->request.what = argv[optind];
        errno = 0;
        o->address = strtoull(argv[optind + 1], &end, 0);
        if (errno || *end || argv[optind + 1][0] < '0' || argv[optind + 1][0] > '9') {
                say(stderr, "stook what: '%s' is no address, such as 0x7f0123456780\n",
                    argv[optind + 1]);
                return STATUS_CANNOT;
        }
        return -1;
}

/* ---- what leads to it ---- */

struct pointers {
        struct heap *heap;
        const struct heap_object *object;
        struct {
                uint64_t address;       /* 0: a register */
                uint64_t into;          /* bytes into the object */
                uint32_t thread;
                uint64_t offset;        /* in the file */
                char     file[128];     /* "": none */
        } found[POINTERS_MOST];
        size_t count, all;
};

static void add_words(const struct heap_words *words, void *data)
{
        struct pointers *p = data;

        for (size_t i = 0; i < words->count; i++) {
                uint64_t into = words->word[i] - p->object->start;
                uint64_t at = words->address ? words->address + i * sizeof(uint64_t) : 0;
                const struct memory_range *range = words->range;

                if (into >= p->object->bytes || p->all++ >= POINTERS_MOST)
                        continue;
                p->found[p->count].address = at;
                p->found[p->count].into = into;
                p->found[p->count].thread = words->thread;
                p->found[p->count].offset = range ? at - range->start + range->offset : 0;
                snprintf(p->found[p->count].file, sizeof p->found->file, "%s",
                         range ? range->path : "");
                p->count++;
        }
}

/* The words of slabs and large objects, but for those that are not of an object in use. */
static void search_objects(struct pointers *p)
{
        struct heap *h = p->heap;
        struct heap_object o;
        size_t first = p->count, kept = first;

        for (size_t i = 0; i < h->slab_count; i++)
                heap_each_of(h, h->slabs[i].start, h->slabs[i].bytes, add_words, p);
        for (size_t i = 0; i < h->span_count; i++)
                if (h->spans[i].kind == STOOK_SPAN_LARGE)
                        heap_each_of(h, h->spans[i].start, h->spans[i].bytes, add_words, p);
        for (size_t i = first; i < p->count; i++)
                if (heap_object_at(h, p->found[i].address, &o) && o.state == HEAP_LIVE &&
                    p->found[i].address - o.start < o.bytes)
                        p->found[kept++] = p->found[i];
        p->all -= p->count - kept;
        p->count = kept;
}

static struct pointers *search(struct heap *h, const struct heap_object *o)
{
        struct pointers *p = calloc(1, sizeof *p);

        if (!p)
                return NULL;
        p->heap = h;
        p->object = o;
        heap_each_root(h, add_words, p);
        search_objects(p);
        return p;
}

/* ---- what is said ---- */

struct answer {
        const struct options *options;
        struct target *target;
        struct heap *heap;
        const struct heap_object *object;
        const struct pointers *pointers;
        struct stack_text stacks;
};

static const char *cache_name(const struct heap_object *o)
{
        return o->cache ? o->cache->name : "malloc-large";
}

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* By whom, and how long ago; that is not known of a core. */
static void print_track(const struct answer *a, const char *what,
                        const struct stook_report_track *track)
{
        struct frames frames;
        double ago = (double)(int64_t)(a->heap->at_ns / 1000000 - track->at_ms) / 1000;

        if (!track->thread)
                return;
        say(stdout, "  %s by thread %u", what, track->thread);
        if (!a->target->is_core)
                say(stdout, ", %.1f s ago", ago < 0 ? 0 : ago);
        putchar('\n');
        if (stack_text_frames(&a->stacks, track->stack, &frames))
                return;
        stack_text_print(&frames, stdout);
        frames_release(&frames);
}

static void print_state(const struct heap_object *o)
{
        static const char *const places[] = {
                [HEAP_ELSEWHERE] = "a sheaf off slots and barns",
                [HEAP_MAIN] = "the main sheaf of slot",
                [HEAP_SPARE] = "the spare sheaf of slot", [HEAP_RCU] = "the rcu sheaf of slot",
                [HEAP_REMOTE] = "the remote sheaf of slot",
                [HEAP_BARN] = "a sheaf in the barn of node",
        };

        if (!o->sheaf)
                say(stdout, "  %s\n", heap_object_state_text(o->state));
        else if (o->sheaf->place == HEAP_ELSEWHERE)
                say(stdout, "  free, in %s\n", places[o->sheaf->place]);
        else
                say(stdout, "  free, in %s %u\n", places[o->sheaf->place], o->sheaf->slot_or_node);
}

static void print_pointer(const struct answer *a, size_t i)
{
        uint64_t at = a->pointers->found[i].address;
        struct heap_object holder;

        if (!at) {
                say(stdout, "    a register of thread %u\n", a->pointers->found[i].thread);
                return;
        }
        say(stdout, "    %#" PRIx64, at);
        if (heap_object_at(a->heap, at, &holder))
                say(stdout, " in object %#" PRIx64 " of cache %s, byte %" PRIu64, holder.start,
                    cache_name(&holder), at - holder.start);
        else if (a->pointers->found[i].thread)
                say(stdout, " on the stack of thread %u", a->pointers->found[i].thread);
        else if (a->pointers->found[i].file[0] == '/')
                say(stdout, " in %s+%#" PRIx64, base_name(a->pointers->found[i].file),
                    a->pointers->found[i].offset);
        else
                say(stdout, " in memory of the program %s", a->pointers->found[i].file);
        if (a->pointers->found[i].into)
                say(stdout, " (%" PRIu64 " bytes into it)", a->pointers->found[i].into);
        putchar('\n');
}

static void print(const struct answer *a)
{
        const struct heap_object *o = a->object;
        uint64_t into = a->options->address - o->start;

        say(stdout, "object %#" PRIx64 " of cache %s, %" PRIu64 " bytes", o->start, cache_name(o),
            o->bytes);
        if (o->requested)
                say(stdout, ", %" PRIu64 " of them requested", o->requested);
        if (into)
                say(stdout, "; %#" PRIx64 " is %" PRIu64 " bytes into it%s", a->options->address,
                    into, into >= o->bytes ? ", behind what its user may have" : "");
        putchar('\n');
        if (o->slab)
                say(stdout, "  number %u of %u in the slab at %#" PRIx64 "\n", o->index,
                    o->slab->objects, o->slab->start);
        print_state(o);
        print_track(a, "allocated", &o->allocated);
        print_track(a, "freed", &o->freed);
        if (!a->pointers)
                return;
        if (!a->pointers->all)
                fputs("  nothing leads to it\n", stdout);
        else
                say(stdout, "  %zu word%s lead%s to it:\n", a->pointers->all,
                    plural(a->pointers->all), a->pointers->all == 1 ? "s" : "");
        for (size_t i = 0; i < a->pointers->count && i < POINTERS_SHOWN; i++)
                print_pointer(a, i);
        if (a->pointers->all > POINTERS_SHOWN)
                say(stdout, "    (and %zu more)\n", a->pointers->all - POINTERS_SHOWN);
}

static void put_address(struct json *j, const char *key, uint64_t address)
{
        char text[24];

        snprintf(text, sizeof text, "%#" PRIx64, address);
        json_string(j, key, text);
}

static void put_track(const struct answer *a, const char *key,
                      const struct stook_report_track *track, struct json *j)
{
        struct frames frames;

        if (!track->thread)
                return;
        json_object(j, key);
        json_count(j, "thread", track->thread);
        json_count(j, "at_ms", track->at_ms);
        if (!stack_text_frames(&a->stacks, track->stack, &frames)) {
                stack_text_json(&frames, "stack", j);
                frames_release(&frames);
        }
        json_object_end(j);
}

static void put_pointer(const struct answer *a, size_t i, struct json *j)
{
        uint64_t at = a->pointers->found[i].address;
        struct heap_object holder;

        json_object(j, NULL);
        if (at)
                put_address(j, "at", at);
        json_count(j, "bytes_into", a->pointers->found[i].into);
        if (at && heap_object_at(a->heap, at, &holder)) {
                put_address(j, "holder", holder.start);
                json_string(j, "cache", cache_name(&holder));
        } else if (a->pointers->found[i].thread) {
                json_count(j, "thread", a->pointers->found[i].thread);
        } else {
                json_string(j, "file", a->pointers->found[i].file);
                json_count(j, "file_offset", a->pointers->found[i].offset);
        }
        json_object_end(j);
}

static void write_json(const struct answer *a, struct json *j)
{
        const struct heap_object *o = a->object;

        json_object(j, NULL);
        json_string(j, "library", a->heap->library->image->path);
        put_address(j, "address", o->start);
        json_string(j, "cache", cache_name(o));
        json_string(j, "state", heap_object_state_text(o->state));
        json_count(j, "user_bytes", o->bytes);
        json_count(j, "bytes_into", a->options->address - o->start);
        if (o->requested)
                json_count(j, "requested_bytes", o->requested);
        if (o->slab)
                put_address(j, "slab", o->slab->start);
        put_track(a, "allocated", &o->allocated, j);
        put_track(a, "freed", &o->freed, j);
        if (a->pointers) {
                json_count(j, "pointer_count", a->pointers->all);
                json_array(j, "pointers");
                for (size_t i = 0; i < a->pointers->count; i++)
                        put_pointer(a, i, j);
                json_array_end(j);
        }
        json_object_end(j);
}

/* What the address is, if it lies in no object. */
static void print_other(const struct options *o, const struct heap *h)
{
        const struct heap_span *span = heap_span_at(h, o->address);

        if (!span)
                say(stdout, "%#" PRIx64 " is no address of the heap\n", o->address);
        else if (span->kind == STOOK_SPAN_SLAB)
                say(stdout, "%#" PRIx64 " lies behind the last object of the slab at %#" PRIx64
                    "\n", o->address, span->start);
        else
                say(stdout, "%#" PRIx64 " lies in free pages, %" PRIu64 " bytes from %#" PRIx64
                    " on\n", o->address, span->bytes, span->start);
}

/* Return: 0; STATUS_NOTHING, and said: the heap cannot be read. */
static int show(struct target *t, struct library *at, struct json *or_null, void *data)
{
        struct options *o = data;
        struct heap h;
        struct heap_object object;
        struct answer a = { .options = o, .target = t, .heap = &h, .object = &object };
        struct pointers *pointers;

        if (heap_read(&h, &t->memory, at, HEAP_SPANS)) {
                say(stderr, "stook what: %u: %s\n", t->memory.pid, h.error);
                return STATUS_NOTHING;
        }
        if (!heap_object_at(&h, o->address, &object)) {
                if (!or_null)
                        print_other(o, &h);
                heap_free(&h);
                return 0;
        }
        o->found = true;
        a.pointers = pointers = search(&h, &object);
        stack_text_open(&a.stacks, &t->memory, at);
        if (or_null)
                write_json(&a, or_null);
        else
                print(&a);
        stack_text_close(&a.stacks);
        free(pointers);
        heap_free(&h);
        return 0;
}

int cmd_what(int argc, char **argv)
{
        struct options o = { 0 };
        int status = parse(argc, argv, &o);

        if (status >= 0)
                return status;
        status = target_show(&command, &o.request, o.json ? "libraries" : NULL, show, &o);
        return status >= STATUS_CANNOT ? status : o.found ? 0 : STATUS_NOTHING;
}
