/*
 * Purpose: reads the kernel's slab events as text, a line each, from `perf script`, from `trace-cmd
 * report` or tracefs, and from a bpftrace program that prints lines of that form
 * (tools/trace/kmem.bt):
 *
 *      gcc 29741/29741 [001]  1437.523776861: kmem:kmem_cache_alloc: call_site=vm_area_alloc+0x1a
 *      ptr=0xffff8881065c8000 name=vm_area_struct bytes_req=192 bytes_alloc=192 gfp_flags=...
 *
 *      gcc-29741 [001] d..2.  1437.523776: kmem_cache_alloc: (f+0x1) call_site=...
 *
 * Used are the CPU, the time, ptr, name, bytes_req and bytes_alloc. replay_kmem_use.c says what
 * they mean.
 * Other lines are left out: comments, other events, call chains. A line that names one of the
 * events and lacks what it must have is damage. Lines that count lost events are added up.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "cli/replay/replay_kmem.h"
#include "cli/replay/replay_read.h"

#define LINE_MAX_BYTES 65536
#define BYTES_MAX      ((uint64_t)1 << 40)    /* no such size is one */

struct reader {
        struct replay_list *list;
        struct kmem_lines lines;
        uint64_t line;                  /* number of the one being read, from 1 */
        const char *why;                /* damage; NULL: none */
};

static const struct {
        const char *name;
        enum kmem_kind kind;
} events[] = {
        { "kmem_cache_alloc", KMEM_CACHE_ALLOC },
        { "kmem_cache_alloc_node", KMEM_CACHE_ALLOC },
        { "kmalloc", KMEM_KMALLOC },
        { "kmalloc_node", KMEM_KMALLOC },
        { "kmem_cache_free", KMEM_FREE },
        { "kfree", KMEM_FREE },
};
#define EVENTS (sizeof events / sizeof events[0])

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

static void name_field(const char *fields, char name[KMEM_NAME_BYTES])
{
        const char *c = field(fields, "name");
        size_t n = 0;

        for (; c && *c && !isspace((unsigned char)*c) && n < KMEM_NAME_BYTES - 1; c++)
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
static const char *parse_head(char *head, struct kmem_line *line)
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

/*
 * Where "kmem:NAME:" or "NAME:" of one of the events begins, and its kind. *@fields: the colon
 * behind it; NULL: the line is cut off.
 */
static char *find_event(char *text, enum kmem_kind *kind, char **fields)
{
        char *kmem = strstr(text, " kmem:"), *name = NULL;

        *kind = KMEM_OTHER;
        *fields = NULL;
        if (kmem) {
                *fields = strchr(kmem + 6, ':');
                if (!*fields)
                        return kmem;
        }
        for (size_t i = 0; i < EVENTS; i++) {
                size_t n = strlen(events[i].name);

                if (kmem) {
                        if ((size_t)(*fields - kmem - 6) == n &&
                            !memcmp(events[i].name, kmem + 6, n))
                                *kind = events[i].kind;
                        continue;
                }
                for (char *c = strstr(text, events[i].name); c; c = strstr(c + 1, events[i].name))
                        if (c > text && isspace((unsigned char)c[-1]) && c[n] == ':' &&
                            (!name || c < name)) {
                                name = c;
                                *kind = events[i].kind;
                                *fields = c + n;
                        }
        }
        return kmem ? kmem : name ? name - 1 : NULL;
}

/* "[LOST 9 EVENTS]", "[9 EVENTS DROPPED]", "PERF_RECORD_LOST lost 9", "Lost 9 events": tracefs,
 * trace-cmd, perf, bpftrace. */
static uint64_t lost_events(const char *text)
{
        static const char *const before[] = { "[LOST ", "PERF_RECORD_LOST lost ", "Lost " };
        const char *dropped = strstr(text, " EVENTS DROPPED]"), *c;
        uint64_t n;

        for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
                c = strstr(text, before[i]);
                if (c && (c += strlen(before[i])) && take_digits(&c, &n))
                        return n;
        }
        for (c = dropped; c && c > text && isdigit((unsigned char)c[-1]);)
                c--;
        return c && take_digits(&c, &n) ? n : 0;
}

/* Return: NULL, or what is wrong with it. *@fields: its fields. */
static const char *parse(char *text, struct kmem_line *line, char **fields)
{
        char *event = text[0] == '#' ? NULL : find_event(text, &line->kind, fields);

        if (!event)
                return NULL;
        if (!*fields)
                return "an event that is cut off";
        if (line->kind == KMEM_OTHER)
                return NULL;
        *event = 0;
        if (strstr(*fields, " ptr=(____ptrval____)"))
                return "an address that is hidden (0 in tracefs' options/hash-ptr shows it)";
        if (!pointer_field(*fields, &line->address))
                return "an event without an address (ptr=)";
        if (line->kind != KMEM_FREE &&
            (!number_field(*fields, "bytes_req", &line->wanted) ||
             !number_field(*fields, "bytes_alloc", &line->bytes) || line->bytes > BYTES_MAX ||
             line->wanted > line->bytes || (!line->bytes && line->address)))
                return "an allocation without its bytes (bytes_req=, bytes_alloc=)";
        return parse_head(text, line);
}

/* ---- all lines ---- */

static bool keep(struct kmem_lines *l, const struct kmem_line *line)
{
        if (l->count == l->room) {
                size_t room = l->room ? l->room * 2 : 1024;
                struct kmem_line *grown = reallocarray(l->lines, room, sizeof *grown);

                if (!grown)
                        return false;
                l->lines = grown;
                l->room = room;
        }
        l->lines[l->count++] = *line;
        return true;
}

/* The number of a name, from 1; 0: "". False: no memory. */
static bool intern(struct kmem_lines *l, const char *name, uint32_t *number)
{
        *number = 0;
        if (!name[0])
                return true;
        for (*number = 1; *number <= l->name_count; ++*number)
                if (!strcmp(l->names[*number - 1], name))
                        return true;
        if (l->name_count == l->name_room) {
                size_t room = l->name_room ? l->name_room * 2 : 64;
                void *grown = reallocarray(l->names, room, sizeof *l->names);

                if (!grown)
                        return false;
                l->names = grown;
                l->name_room = room;
        }
        snprintf(l->names[l->name_count++], sizeof *l->names, "%s", name);
        return true;
}

/* False: no memory, or damage. */
static bool read_line(struct reader *r, char *text, size_t bytes)
{
        struct kmem_line line = { .number = r->line };
        char *fields = NULL, name[KMEM_NAME_BYTES];

        if (bytes >= LINE_MAX_BYTES)
                r->why = "no text of events: a line of 64 KiB";
        else if (memchr(text, 0, bytes))
                r->why = "no text of events: it has null bytes";
        else
                r->why = parse(text, &line, &fields);
        if (r->why)
                return false;
        if (line.kind == KMEM_OTHER) {
                r->list->other_events += is_event(text);
                r->list->lost += lost_events(text);
                return true;
        }
        name_field(fields, name);
        return intern(&r->lines, name, &line.name) && keep(&r->lines, &line);
}

bool replay_read_kmem(struct replay_list *list, FILE *in, const char *path, char *message,
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
                fine = read_line(&r, text, n);
        }
        fine = fine && replay_use_kmem(list, &r.lines, &r.line);
        if (r.why)
                snprintf(message, bytes, "%s: line %llu: %s", path, (unsigned long long)r.line,
                         r.why);
        else if (!fine)
                snprintf(message, bytes, "%s: line %llu: no memory, or too many caches or CPUs",
                         path, (unsigned long long)r.line);
        else if (ferror(in))
                snprintf(message, bytes, "%s: %s", path, strerror(errno));
        free(r.lines.lines);
        free(r.lines.names);
        free(text);
        return fine && !ferror(in);
}
