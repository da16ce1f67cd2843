/*
 * Purpose: `stook tune`: change a cache of a running process. The process does it itself, by its
 * maintenance thread; src/life/root.h has the protocol.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/heap/heap.h"
#include "cli/heap/request.h"
#include "cli/memory/target.h"
#include "cli/text/option_text.h"
#include "cli/text/plain_text.h"

#define WAIT_S 30                       /* the thread looks twice a second */

struct options {
        struct target_request request;
        const char *cache;
        int         sheaf_capacity, barn_full, barn_empty;      /* -1: as it is */
};

static const char usage[] =
        "usage: stook tune [--library NAME] PID CACHE KEY=VALUE...\n";
static const char help[] =
        "\n"
        "Changes a cache of a running process of the same user, as stook_cache_tune() does. The\n"
        "process must have a maintenance thread: STOOK_MAINTENANCE=1, or a call of\n"
        "stook_maintenance_thread(1). CACHE is a name, or NAME@BORN where several caches have it\n"
        "(`stook info --json` has \"born\").\n"
        "\n"
        "keys:\n"
        "  sheaf_capacity  objects of a sheaf, 0 to 65534; 0: no sheaves\n"
        "  barn_full       full sheaves that the barn of a node keeps, 0 to 4096\n"
        "  barn_empty      empty ones\n"
        "\n"
        "options:\n"
        "  --library NAME  the copy of the library in a file with NAME in its path\n"
        "  --help          show this\n";

enum { OPTION_LIBRARY = OPTION_FIRST, OPTION_HELP };

static const struct option long_options[] = {
        { "library", required_argument, NULL, OPTION_LIBRARY },
        { "help", no_argument, NULL, OPTION_HELP },
        { 0 }
};

/* ---- arguments ---- */

static bool parse_setting(struct options *o, const char *text)
{
        const struct { const char *key; int *value; long most; } keys[] = {
                { "sheaf_capacity", &o->sheaf_capacity, STOOK_SHEAF_CAPACITY_MAX },
                { "barn_full", &o->barn_full, STOOK_BARN_LIMIT_MAX },
                { "barn_empty", &o->barn_empty, STOOK_BARN_LIMIT_MAX },
        };
        const char *equals = strchr(text, '=');

        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
                size_t n = strlen(keys[i].key);
                char *end;
                long value;

                if (!equals && !strcmp(text, keys[i].key)) {
                        say(stderr, "stook tune: %s has no value: %s=N\n", text, text);
                        return false;
                }
                if (!equals || (size_t)(equals - text) != n || strncmp(text, keys[i].key, n))
                        continue;
                value = strtol(equals + 1, &end, 10);
                if (end == equals + 1 || *end || value < 0 || value > keys[i].most) {
                        say(stderr, "stook tune: %s takes 0 to %ld, not '%s'\n", keys[i].key,
                            keys[i].most, equals + 1);
                        return false;
                }
                *keys[i].value = (int)value;
                return true;
        }
        say(stderr, "stook tune: no setting '%s'; there is: sheaf_capacity=N barn_full=N "
            "barn_empty=N\n", text);
        return false;
}

static int parse(int argc, char **argv, struct options *o)
{
        int c;

        opterr = 0;
        while ((c = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1)
                switch (c) {
                case OPTION_LIBRARY:
                        o->request.library = optarg;
                        break;
                case OPTION_HELP:
                case 'h':
                        return option_help(usage, help);
                default:
                        return option_refuse("tune", c, argv, usage);
                }
        if (argc - optind < 3)
                return option_misused("tune", usage, "a process, a cache and a setting are needed");
        o->request.what = argv[optind];
        o->cache = argv[optind + 1];
        for (int i = optind + 2; i < argc; i++)
                if (!parse_setting(o, argv[i]))
                        return STATUS_CANNOT;
        return -1;
}

/* ---- which cache ---- */

static bool is_named(const struct heap_cache *c, const char *name)
{
        const char *at = strrchr(name, '@');
        char born[32];
        bool named = !strcmp(c->name, name);

        for (unsigned i = 0; i < c->alias_count && !named; i++)
                named = !strcmp(c->aliases[i], name);
        if (named || !at)
                return named;
        snprintf(born, sizeof born, "%" PRIu64, c->cache.born);
        return strlen(c->name) == (size_t)(at - name) && !strcmp(at + 1, born) &&
               !strncmp(c->name, name, (size_t)(at - name));
}

/* NULL: there is none, or several, and that is said. */
static const struct heap_cache *find(const struct heap *h, const char *name)
{
        const struct heap_cache *found = NULL;

        for (size_t i = 0; i < h->cache_count; i++) {
                if (!is_named(&h->caches[i], name))
                        continue;
                if (found) {
                        say(stderr, "stook tune: several caches are named '%s': say "
                            "NAME@BORN, such as '%s@%" PRIu64 "'\n", name, name,
                            found->cache.born);
                        return NULL;
                }
                found = &h->caches[i];
        }
        if (!found)
                say(stderr, "stook tune: process %u has no cache '%s'\n", h->memory->pid, name);
        return found;
}

/* ---- the request ---- */

static int say_answer(const struct options *o, uint32_t pid, int answer)
{
        const char *name = o->cache;

        if (!answer)
                return 0;
        if (answer == -ENOTSUP)
                say(stderr, "stook tune: cache '%s' was made without sheaves\n", name);
        else if (answer == -ENOENT)
                say(stderr, "stook tune: cache '%s' was destroyed meanwhile\n", name);
        else if (answer == -EBUSY)
                say(stderr, "stook tune: cache '%s' has the new settings; sheaves with the old "
                    "ones could not all be emptied\n", name);
        else
                say(stderr, "stook tune: process %u refused: %s\n", pid, strerror(-answer));
        return STATUS_CANNOT;
}

static int tune(const struct options *o, struct target *t, const struct library *l,
                const struct heap *h)
{
        const struct heap_cache *c = find(h, o->cache);
        char state = memory_process_state(t->memory.pid);
        struct stook_request request;
        int answer = 0, error, status;

        if (!c)
                return STATUS_CANNOT;
        if (state == 'T' || state == 't') {
                say(stderr, "stook tune: process %u is stopped, and would not answer\n",
                    t->memory.pid);
                return STATUS_CANNOT;
        }
        if (h->maintainer != t->memory.pid) {
                say(stderr, "stook tune: process %u has no maintenance thread that could do "
                    "it: start it with STOOK_MAINTENANCE=1\n", t->memory.pid);
                return STATUS_CANNOT;
        }
        request = (struct stook_request){
                .action = STOOK_REQUEST_TUNE, .born = c->cache.born,
                .cache_index = c->cache.index, .sheaf_capacity = o->sheaf_capacity,
                .barn_full = o->barn_full, .barn_empty = o->barn_empty,
        };
        error = request_ask(&t->memory, l, &request, WAIT_S, &answer);
        status = request_failed("tune", t->memory.pid, error, answer);
        return status >= 0 ? status : say_answer(o, t->memory.pid, answer);
}

/* What the cache has now, or will have: the same look again. */
static int show(const struct options *o, struct target *t, const struct library *l)
{
        const struct heap_cache *c;
        struct heap h;

        if (heap_read(&h, &t->memory, l, HEAP_COUNTS))
                return 0;
        c = find(&h, o->cache);
        if (c)
                say(stdout, "%s: sheaf_capacity=%u barn_full=%u barn_empty=%u\n", c->name,
                    c->cache.barns.capacity, c->cache.barns.full_wanted,
                    c->cache.barns.empty_limit);
        heap_free(&h);
        return 0;
}

int cmd_tune(int argc, char **argv)
{
        struct options o = { .sheaf_capacity = -1, .barn_full = -1, .barn_empty = -1 };
        struct library *l;
        struct target t;
        struct heap h;
        int status = parse(argc, argv, &o);

        if (status >= 0)
                return status;
        status = target_open(&t, "tune", &o.request);
        if (status)
                return status;
        l = request_library(&t, "tune", o.request.what);
        if (!l) {
                status = STATUS_CANNOT;
        } else if (heap_read(&h, &t.memory, l, HEAP_COUNTS)) {
                say(stderr, "stook tune: %u: %s\n", t.memory.pid, h.error);
                status = 1;
        } else {
                status = tune(&o, &t, l, &h);
                heap_free(&h);
        }
        if (!status)
                status = show(&o, &t, l);
        target_close(&t);
        return status ? status : option_printed("tune", 0);
}
