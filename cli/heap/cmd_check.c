/*
 * Purpose: `stook check`: is the heap of a process, or of a core, sound?
 *
 * A process runs on while it is looked at, so a look may find an object between two places. What is
 * wrong stays wrong; what only moved does not. So a fault counts if each of several looks finds it
 * at the same address. One thing is missed: a fault at an object that is in use all the time.
 * A core is looked at once: the calls that were under way at the crash may show as faults.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/commands.h"
#include "cli/heap/heap_check.h"
#include "cli/memory/target.h"
#include "cli/text/plain_text.h"

#define STATUS_FAULTS  1
#define LOOKS_DEFAULT  8                /* see above; arbitrary */
#define LOOKS_MAX      1000
#define PAUSE_NS       3000000          /* between looks */
#define SHOWN_MAX      20               /* faults that are told one by one */

static const char usage[] =
        "usage: stook check [--looks N] [--library NAME] [--exe FILE] PID|CORE\n";
static const char help[] =
        "\n"
        "Checks the heap of a running process of the same user, or of one that left a core: slabs\n"
        "and which of their objects are free, sheaves and the objects in them, slots, barns; of\n"
        "caches with debug modes red zones, poison and states. The process is only read, and goes\n"
        "on meanwhile.\n"
        "Exit status: 0: sound; 1: faults were found, or there is nothing to look at; 2: stook\n"
        "cannot do what was asked.\n"
        "\n"
        "options:\n"
        "  --looks N       what is wrong must be found by N looks in a row (8; a core: 1)\n"
        TARGET_HELP_TEXT;

static const struct option long_options[] = {
        { "looks", required_argument, NULL, TARGET_OPTION_FIRST },
        TARGET_OPTIONS
};

static bool take(int option, void *data)
{
        unsigned *looks = data;

        (void)option;
        if (!option_count("check", "--looks", optarg, INT_MAX, looks))
                return false;
        if (*looks > LOOKS_MAX)
                *looks = LOOKS_MAX;
        return true;
}

static const struct target_command command = { "check", usage, help, long_options, take, NULL };

/* ---- faults that stay ---- */

static int by_what(const void *a, const void *b)
{
        const struct heap_oddity *x = a, *y = b;
        int order = strcmp(x->what, y->what);

        if (order)
                return order;
        if (x->address != y->address)
                return x->address < y->address ? -1 : 1;
        return (int)x->cache - (int)y->cache;
}

/* Leaves those that @now has, too. Both are sorted. */
static size_t keep_common(struct heap_oddity *kept, size_t count, const struct heap *now)
{
        size_t n = 0;

        for (size_t i = 0; i < count; i++)
                if (now->oddity_count && bsearch(&kept[i], now->oddities, now->oddity_count,
                                                 sizeof kept[i], by_what))
                        kept[n++] = kept[i];
        return n;
}

/* One look. Return: 0, or -errno with heap->error. */
static int look(struct heap *h, struct memory *memory, const struct library *library)
{
        int error = heap_read(h, memory, library, HEAP_OBJECTS);

        if (error)
                return error;
        error = heap_check(h);
        if (error) {
                heap_free(h);
                snprintf(h->error, sizeof h->error, "no memory");
                return error;
        }
        if (h->oddity_count)
                qsort(h->oddities, h->oddity_count, sizeof *h->oddities, by_what);
        return 0;
}

/*
 * Looks again and again. *@last is the last look, with its oddities cut down to those that stayed.
 * Return: 0, or -errno with last->error.
 */
static int look_often(struct heap *last, struct memory *memory, const struct library *library,
                      unsigned looks)
{
        const struct timespec pause = { 0, PAUSE_NS };
        int error = look(last, memory, library);

        for (unsigned i = 1; i < looks && !error && last->oddity_count; i++) {
                struct heap now;

                nanosleep(&pause, NULL);
                error = look(&now, memory, library);
                if (!error) {
                        now.oddity_count = keep_common(now.oddities, now.oddity_count, last);
                        heap_free(last);
                        *last = now;
                } else {
                        memcpy(last->error, now.error, sizeof last->error);
                }
        }
        return error;
}

/* ---- what is said ---- */

static const char *place_name(const struct heap_sheaf *s)
{
        static const char *const names[] = {
                [HEAP_ELSEWHERE] = "off slots and barns", [HEAP_MAIN] = "main of slot",
                [HEAP_SPARE] = "spare of slot", [HEAP_RCU] = "rcu sheaf of slot",
                [HEAP_REMOTE] = "remote sheaf of slot", [HEAP_BARN] = "in the barn of node",
        };

        return names[s->place];
}

static void print_sheaf(const struct heap *h, const struct heap_sheaf *s)
{
        (void)h;
        say(stdout, "; sheaf %#" PRIx64 " %s", s->address, place_name(s));
        if (s->place != HEAP_ELSEWHERE)
                say(stdout, " %u", s->slot_or_node);
}

/* Where the sheaves are that have the object. */
static void print_holders(const struct heap *h, uint64_t object)
{
        for (size_t i = 0; i < h->sheaf_count; i++)
                for (unsigned k = 0; k < h->sheaves[i].size; k++)
                        if (h->objects[h->sheaves[i].first + k] == object)
                                print_sheaf(h, &h->sheaves[i]);
}

static void print_fault(const struct heap *h, const struct heap_oddity *o)
{
        const struct heap_cache *c = heap_cache_of(h, o->cache);
        const struct heap_sheaf *sheaf = heap_sheaf_at(h, o->address);
        const struct heap_slab *s = heap_slab_at(h, o->address);

        say(stdout, "%s: %#" PRIx64, o->what, o->address);
        if (c)
                say(stdout, " (cache %s", c->name);
        else
                say(stdout, " (no cache");
        if (s && c && c->cache.slabs.stride)
                say(stdout, ", slab %#" PRIx64 " object %" PRIu64, s->start,
                    (o->address - s->start) / c->cache.slabs.stride);
        putchar(')');
        if (*o->detail)
                say(stdout, ": %s", o->detail);
        if (sheaf)
                print_sheaf(h, sheaf);
        else
                print_holders(h, o->address);
        putchar('\n');
}

static int report(const struct target *t, const struct heap *h)
{
        char name[512];
        size_t shown = h->oddity_count < SHOWN_MAX ? h->oddity_count : SHOWN_MAX;

        target_name(t, h->library, name, sizeof name);
        if (!h->oddity_count) {
                say(stdout, "%s: sound: %zu caches, %zu slabs, %zu sheaves, %zu objects in them\n",
                    name, h->cache_count, h->slab_count, h->sheaf_count, h->object_count);
                return 0;
        }
        say(stdout, "%s: %zu faults\n", name, h->oddity_count);
        for (size_t i = 0; i < shown; i++)
                print_fault(h, &h->oddities[i]);
        if (shown < h->oddity_count)
                say(stdout, "(and %zu more)\n", h->oddity_count - shown);
        if (t->is_core)
                puts("(calls that were under way when the core was written may look like faults)");
        return STATUS_FAULTS;
}

/* Return: the exit status. */
static int show(struct target *t, struct library *at, struct json *or_null, void *data)
{
        const unsigned *looks = data;
        struct heap h;
        int status;

        (void)or_null;
        if (look_often(&h, &t->memory, at, t->is_core ? 1 : *looks)) {
                say(stderr, "stook check: %u: %s\n", t->memory.pid, h.error);
                return STATUS_FAULTS;
        }
        status = report(t, &h);
        heap_free(&h);
        return status;
}

int cmd_check(int argc, char **argv)
{
        struct target_request request = { 0 };
        unsigned looks = LOOKS_DEFAULT;
        int status = target_options(&command, argc, argv, &request, &looks);

        if (status >= 0)
                return status;
        request.what = option_process("check", argc, argv, usage);
        return request.what ? target_show(&command, &request, NULL, show, &looks) : STATUS_CANNOT;
}
