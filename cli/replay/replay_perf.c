/*
 * Purpose: reads the kernel's slab events as `perf script` prints them, a line each:
 *
 *      gcc 29741/29741 [001]  1437.523776861: kmem:kmem_cache_alloc: call_site=vm_area_alloc+0x1a
 *      ptr=0xffff8881065c8000 name=vm_area_struct bytes_req=192 bytes_alloc=192 gfp_flags=...
 *
 * Used are the CPU, the time, ptr, name, bytes_req and bytes_alloc. Older kernels name no cache in
 * kmem_cache_alloc; its caches go by their size then. What kmalloc takes from the page allocator
 * (above 8 KiB) is replayed as a large object.
 * Other lines are left out: comments, other events, call chains. A line that names one of the
 * events and lacks what it must have is damage.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <stook/cache.h>
#include "cli/replay/replay_read.h"
#include "cli/trace/trace_objects.h"

#define LINE_MAX_BYTES   65536
#define KMALLOC_SLAB_MAX 8192           /* the kernel's, with pages of 4 KiB */
#define BYTES_MAX        ((uint64_t)1 << 40)    /* no such size is one */

enum event_kind { EVENT_OTHER, EVENT_CACHE_ALLOC, EVENT_KMALLOC, EVENT_FREE };

struct line {
        enum event_kind kind;
        uint32_t cpu;
        uint64_t at_ns, address, wanted, bytes;
        char     name[64];              /* "": none */
};

struct reader {
        struct replay_list *list;
        struct trace_objects living;
        uint64_t begun_ns;
        uint64_t line;                  /* number of the one being read, from 1 */
        const char *why;                /* damage; NULL: none */
};

/* ---- a line ---- */

static bool take_digits(const char **at, uint64_t *number)
{
        const char *c = *at;
        uint64_t n = 0;

        for (; isdigit((unsigned char)*c) && n < UINT64_MAX / 16; c++)
                n = n * 10 + (uint64_t)(*c - '0');
        if (c == *at || isdigit((unsigned char)*c))
                return false;
        *at = c;
        *number = n;
        return true;
}

/* What stands behind " NAME=", or NULL. */
static const char *field(const char *fields, const char *name)
{
        size_t n = strlen(name);

        for (const char *c = strchr(fields, ' '); c; c = strchr(c + 1, ' '))
                if (!strncmp(c + 1, name, n) && c[1 + n] == '=')
                        return c + n + 2;
        return NULL;
}

static bool number_field(const char *fields, const char *name, uint64_t *number)
{
        const char *c = field(fields, name);

        return c && take_digits(&c, number) && (isspace((unsigned char)*c) || !*c);
}

/* Null pointers are "(nil)", "(null)" or a plain zero. */
static bool pointer_field(const char *fields, uint64_t *address)
{
        const char *c = field(fields, "ptr");
        char *end;

        if (!c)
                return false;
        *address = 0;
        if (!strncmp(c, "(nil)", 5) || !strncmp(c, "(null)", 6))
                return true;
        if (!isxdigit((unsigned char)*c))
                return false;
        errno = 0;
        *address = strtoull(c, &end, 16);
        return !errno && (isspace((unsigned char)*end) || !*end);
}

static void name_field(const char *fields, char name[64])
{
        const char *c = field(fields, "name");
        size_t n = 0;

        for (; c && *c && !isspace((unsigned char)*c) && n < 63; c++)
                name[n++] = isgraph((unsigned char)*c) ? *c : '?';
        name[n] = 0;
}

/* "1437.523776861:", with 6 or 9 digits behind the point. */
static bool parse_time(const char *c, uint64_t *at_ns)
{
        uint64_t seconds, fraction;
        const char *from;

        if (!take_digits(&c, &seconds) || *c++ != '.')
                return false;
        from = c;
        if (!take_digits(&c, &fraction) || *c != ':' || c - from > 9 || seconds > UINT32_MAX)
                return false;
        for (long digits = c - from; digits < 9; digits++)
                fraction *= 10;
        *at_ns = seconds * 1000000000u + fraction;
        return true;
}

/*
 * What stands before the event, from its end: the time, then, further on the left, the CPU. The
 * program's name comes first, and may have blanks and brackets.
 */
static const char *parse_head(char *head, struct line *line)
{
        char *word = strrchr(head, '[');
        const char *digits;
        uint64_t cpu;

        digits = word ? word + 1 : "";
        if (!take_digits(&digits, &cpu) || *digits != ']' || cpu > UINT32_MAX)
                return "an event without a CPU (perf script -F comm,pid,cpu,time,event,trace)";
        line->cpu = (uint32_t)cpu;
        for (char *c = word + strlen(word); c > word && isspace((unsigned char)c[-1]); c--)
                c[-1] = 0;
        word = strrchr(word, ' ');
        if (!word || !parse_time(word + 1, &line->at_ns))
                return "an event without a time (perf script -F comm,pid,cpu,time,event,trace)";
        return NULL;
}

/* Any event of perf script: it has a time of 6 or 9 digits. Texts of other kinds have none. */
static bool is_event(const char *text)
{
        uint64_t at_ns;

        for (const char *c = text; *c && *text != '#'; c += strcspn(c, " \t")) {
                c += strspn(c, " \t");
                if (parse_time(c, &at_ns) && strcspn(strchr(c, '.'), ":") > 6)
                        return true;
        }
        return false;
}

static enum event_kind event_kind(const char *name, size_t n)
{
        static const struct {
                const char *name;
                enum event_kind kind;
        } events[] = {
                { "kmem_cache_alloc", EVENT_CACHE_ALLOC },
                { "kmem_cache_alloc_node", EVENT_CACHE_ALLOC },
                { "kmalloc", EVENT_KMALLOC },
                { "kmalloc_node", EVENT_KMALLOC },
                { "kmem_cache_free", EVENT_FREE },
                { "kfree", EVENT_FREE },
        };

        for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
                if (strlen(events[i].name) == n && !memcmp(events[i].name, name, n))
                        return events[i].kind;
        return EVENT_OTHER;
}

/* Return: NULL, or what is wrong with it. */
static const char *parse(char *text, struct line *line)
{
        char *event = strstr(text, " kmem:"), *fields;

        line->kind = EVENT_OTHER;
        if (text[0] == '#' || !event)
                return NULL;
        fields = strchr(event + 6, ':');
        if (!fields)
                return "an event that is cut off";
        line->kind = event_kind(event + 6, (size_t)(fields - event - 6));
        if (line->kind == EVENT_OTHER)
                return NULL;
        *event = 0;
        if (!pointer_field(fields, &line->address))
                return "an event without an address (ptr=)";
        name_field(fields, line->name);
        if (line->kind != EVENT_FREE &&
            (!number_field(fields, "bytes_req", &line->wanted) ||
             !number_field(fields, "bytes_alloc", &line->bytes) || line->bytes > BYTES_MAX ||
             line->wanted > line->bytes || (!line->bytes && line->address)))
                return "an allocation without its bytes (bytes_req=, bytes_alloc=)";
        return parse_head(text, line);
}

/* ---- what it means ---- */

static bool add(struct reader *r, const struct line *line, enum replay_kind kind,
                const struct trace_object *object)
{
        struct replay_event event = { .at_ns = line->at_ns - r->begun_ns, .bytes = object->bytes,
                                      .object = (uint32_t)object->number, .cache = object->cache,
                                      .kind = kind };

        if (line->at_ns < r->begun_ns)
                event.at_ns = 0;
        return replay_list_add(r->list, event, line->cpu);
}

static uint32_t cache_of(struct reader *r, const struct line *line)
{
        char name[64];

        if (line->kind == EVENT_KMALLOC)
                snprintf(name, sizeof name, "kmalloc-%llu", (unsigned long long)line->bytes);
        else if (line->name[0])
                snprintf(name, sizeof name, "%s", line->name);
        else
                snprintf(name, sizeof name, "size-%llu", (unsigned long long)line->bytes);
        return replay_list_cache(r->list, name, line->bytes);
}

static bool do_free(struct reader *r, const struct line *line)
{
        struct trace_object *object = trace_objects_find(&r->living, 0, line->address);

        if (!line->address)
                r->list->frees_of_null++;
        else if (!object)
                r->list->frees_before++;
        else
                return add(r, line, REPLAY_FREE, object) &&
                       trace_objects_remove(&r->living, object);
        return true;
}

static bool do_alloc(struct reader *r, const struct line *line)
{
        struct trace_object object = { .address = line->address, .bytes = line->wanted,
                                       .cache = REPLAY_LARGE };

        if (!line->address) {
                r->list->failed++;
                return true;
        }
        if (trace_objects_find(&r->living, 0, line->address)) {
                r->list->frees_implied++;
                if (!do_free(r, line))
                        return false;
        }
        if (line->bytes <= (line->kind == EVENT_KMALLOC ? KMALLOC_SLAB_MAX : STOOK_OBJECT_MAX)) {
                object.cache = cache_of(r, line);
                if (object.cache == REPLAY_LARGE)
                        return false;
        }
        return trace_objects_add(&r->living, &object, &object.number) &&
               add(r, line, REPLAY_ALLOC, &object);
}

/* False: no memory, or damage. */
static bool use(struct reader *r, char *text, size_t bytes)
{
        struct line line = { 0 };

        if (bytes >= LINE_MAX_BYTES)
                r->why = "no text of perf script: a line of 64 KiB";
        else if (memchr(text, 0, bytes))
                r->why = "no text of perf script: it has null bytes";
        else
                r->why = parse(text, &line);
        if (r->why)
                return false;
        if (line.kind == EVENT_OTHER) {
                r->list->other_events += is_event(text);
                return true;
        }
        if (!r->list->count && !r->begun_ns)
                r->begun_ns = line.at_ns;
        return line.kind == EVENT_FREE ? do_free(r, &line) : do_alloc(r, &line);
}

bool replay_read_perf(struct replay_list *list, FILE *in, const char *path, char *message,
                      size_t bytes)
{
        struct reader r = { .list = list };
        char *text = malloc(LINE_MAX_BYTES + 1);
        bool fine = text != NULL;

        /* fgets would not tell null bytes; getline takes lines of any length. */
        while (fine && !feof(in) && !ferror(in)) {
                size_t n = 0;
                int c;

                while (n < LINE_MAX_BYTES && (c = getc(in)) != EOF && c != '\n')
                        text[n++] = (char)c;
                text[n] = 0;
                r.line++;
                fine = use(&r, text, n);
        }
        if (r.why)
                snprintf(message, bytes, "%s: line %llu: %s", path, (unsigned long long)r.line,
                         r.why);
        else if (!fine)
                snprintf(message, bytes, "%s: line %llu: no memory, or too many caches or CPUs",
                         path, (unsigned long long)r.line);
        else if (ferror(in))
                snprintf(message, bytes, "%s: %s", path, strerror(errno));
        trace_objects_release(&r.living);
        free(text);
        return fine && !ferror(in);
}
