/*
 * Purpose: `stook profile`: a heap profile as text, as folded stacks, or as a flame graph.
 * Names come from the files that were mapped, by their debug information, if they are still there.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/profile/flame.h"
#include "cli/symbols/frames.h"
#include "cli/program/on_drop_in.h"
#include "cli/text/option_text.h"
#include "cli/profile/pprof_read.h"
#include "cli/text/plain_text.h"
#include "cli/symbols/symbols.h"
#include "cli/text/table.h"

#define TOP_DEFAULT 10
#define TOP_MOST    1000000              /* arbitrary */
#define NAMES_MAX   256                 /* functions of a stack; outer ones are left out */
#define NAME_BYTES  400

static const char usage[] =
        "usage: stook profile [--type TYPE] [--top N] [--folded | --svg] FILE\n";

static const char help[] =
        "\n"
        "Shows a heap profile: which call stacks allocated what is in use. `stook run --profile\n"
        "FILE` writes one; so does any program with STOOK_PROFILE (see stook-env(7)).\n"
        "\n"
        "options:\n"
        "  --type TYPE  inuse_space (the default), inuse_objects, alloc_space or alloc_objects:\n"
        "               bytes or objects; in use when the profile was written, or in all\n"
        "  --top N      stacks to be printed (10)\n"
        "  --folded     all stacks, one a line: functions from the outermost on, then the value\n"
        "  --svg        a flame graph, to standard output\n"
        "  --help       show this\n";

struct options {
        const char *type, *path;
        unsigned    top;
        bool        folded, svg;
};

/* The functions at one location, the innermost first. */
struct names {
        char   **lines;                 /* with file and line */
        char   **functions;
        size_t   count;
        size_t   headers;               /* so many, innermost ones, are of the library's headers */
        enum frames_owner owner;
};

struct session {
        struct options  options;
        struct pprof    profile;
        struct symbols *symbols;        /* NULL: there are none */
        struct names   *names;          /* of profile.locations; count 0: not looked up */
        int             type;
        bool            bytes;          /* the type's values are bytes */
        uint64_t        total;
        bool            no_memory;
};

/* ---- options ---- */

enum { OPTION_TYPE = OPTION_FIRST, OPTION_TOP, OPTION_FOLDED, OPTION_SVG, OPTION_HELP };

static const struct option long_options[] = {
        { "type", required_argument, NULL, OPTION_TYPE },
        { "top", required_argument, NULL, OPTION_TOP },
        { "folded", no_argument, NULL, OPTION_FOLDED },
        { "svg", no_argument, NULL, OPTION_SVG },
        { "help", no_argument, NULL, OPTION_HELP },
        { 0 }
};

/* Return: -1, go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
        int option;

        *o = (struct options){ .type = "inuse_space", .top = TOP_DEFAULT };
        opterr = 0;
        while ((option = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1) {
                switch (option) {
                case OPTION_TYPE:
                        o->type = optarg;
                        break;
                case OPTION_TOP:
                        if (!option_count("profile", "--top", optarg, TOP_MOST, &o->top))
                                return STATUS_CANNOT;
                        break;
                case OPTION_FOLDED:
                        o->folded = true;
                        break;
                case OPTION_SVG:
                        o->svg = true;
                        break;
                case OPTION_HELP:
                case 'h':
                        return option_help(usage, help);
                default:
                        return option_refuse("profile", option, argv, usage);
                }
        }
        if (optind + 1 != argc)
                return option_misused("profile", usage, "one heap profile is wanted");
        o->path = argv[optind];
        if (o->folded && o->svg)
                return option_misused("profile", usage, "--folded or --svg, not both");
        return -1;
}

/* ---- names ---- */

/* As /proc/PID/maps has them: a file's mappings have the number of its first one for an inode. */
static void open_symbols(struct session *s)
{
        const struct pprof *p = &s->profile;
        char *text = NULL;
        size_t bytes;
        FILE *maps = open_memstream(&text, &bytes);

        for (size_t i = 0; maps && i < p->mapping_count; i++) {
                const struct pprof_mapping *m = &p->mappings[i];
                const char *file = pprof_string(p, m->file);
                size_t first = 0;

                while (p->mappings[first].file != m->file &&
                       strcmp(pprof_string(p, p->mappings[first].file) ?: "", file ?: ""))
                        first++;
                if (file && *file == '/' && strlen(file) < PATH_MAX)
                        fprintf(maps, "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " 00:00 %zu %s\n",
                                m->start, m->end, m->offset, first + 1, file);
        }
        if (maps && !fclose(maps) && bytes && (maps = fmemopen(text, bytes, "r"))) {
                s->symbols = symbols_of_maps(maps);
                fclose(maps);
        }
        free(text);
}

static void add_name(struct session *s, struct names *names, const char *line, const char *function)
{
        size_t n = names->count + 1;
        char **lines = realloc(names->lines, n * sizeof *lines), **functions;
        char plain[4 * NAME_BYTES];             /* graphs go to terminals, too */

        if (lines)
                names->lines = lines;
        functions = lines ? realloc(names->functions, n * sizeof *functions) : NULL;
        if (functions) {
                names->functions = functions;
                lines[n - 1] = strdup(plain_text(line, plain, sizeof plain));
                functions[n - 1] = strdup(plain_text(function, plain, sizeof plain));
                if (lines[n - 1] && functions[n - 1])
                        names->count = n;
        }
        s->no_memory |= names->count != n;
}

struct finding {
        struct session         *session;
        struct names           *names;
        const char             *fallback;
        struct frames_judgement judgement;
};

static void found(const struct symbol *symbol, void *data)
{
        struct finding *f = data;
        const char *function = symbol->function ? symbol->function : f->fallback;
        char line[NAME_BYTES];

        if (symbol->file && symbol->line)
                snprintf(line, sizeof line, "%s %s:%d", function, name_of_program(symbol->file),
                         symbol->line);
        else
                snprintf(line, sizeof line, "%s", function);
        add_name(f->session, f->names, line, function);
        frames_judge(&f->judgement, symbol);
}

/* MODULE+0xOFFSET, as the file has it; or the address alone. */
static void name_by_mapping(const struct pprof *p, uint64_t address, char text[NAME_BYTES])
{
        for (size_t i = 0; i < p->mapping_count; i++) {
                const struct pprof_mapping *m = &p->mappings[i];
                const char *file = pprof_string(p, m->file);

                if (address - m->start < m->end - m->start && file) {
                        snprintf(text, NAME_BYTES, "%.300s+0x%" PRIx64, name_of_program(file),
                                 address - m->start + m->offset);
                        return;
                }
        }
        snprintf(text, NAME_BYTES, "0x%" PRIx64, address);
}

static void find_names(struct session *s, uint64_t address, const char *fallback,
                       struct names *names)
{
        struct finding f = { s, names, fallback, { .symbols = s->symbols, .at = address } };

        symbols_find(s->symbols, address, false, found, &f);
        names->headers = f.judgement.headers;
        names->owner = f.judgement.owner;
}

static const struct names *names_at(struct session *s, uint64_t id)
{
        const struct pprof_location *location = pprof_location(&s->profile, id);
        struct names *names = location ? &s->names[location - s->profile.locations] : NULL;
        char fallback[NAME_BYTES];
        const char *own;

        if (!names || names->count)
                return names;
        own = pprof_function_name(&s->profile, location->function);
        name_by_mapping(&s->profile, location->address, fallback);
        if (own)
                add_name(s, names, own, own);
        else if (s->symbols)
                find_names(s, location->address, fallback, names);
        if (!names->count)
                add_name(s, names, fallback, fallback);
        return names;
}

struct stack {
        struct session            *session;
        const struct pprof_sample *sample;
};

static enum frames_owner owner_of(size_t i, void *data)
{
        const struct stack *stack = data;
        const struct pprof *p = &stack->session->profile;
        const struct names *at = names_at(stack->session, p->stacks[stack->sample->first + i]);

        return at ? at->owner : FRAMES_PROGRAM;
}

/* The program's functions of a stack, or their lines, the outermost first. */
static size_t names_of(struct session *s, const struct pprof_sample *sample, bool lines,
                       const char *names[NAMES_MAX])
{
        size_t first = frames_first(owner_of, &(struct stack){ s, sample }, sample->count);
        size_t count = 0;

        for (size_t i = first; i < sample->count; i++) {
                const struct names *at = names_at(s, s->profile.stacks[sample->first + i]);
                size_t k = at && i == first ? at->headers : 0;

                for (; at && k < at->count && count < NAMES_MAX; k++)
                        names[count++] = lines ? at->lines[k] : at->functions[k];
        }
        for (size_t i = 0; i < count / 2; i++) {
                const char *other = names[i];

                names[i] = names[count - 1 - i];
                names[count - 1 - i] = other;
        }
        return count;
}

/* ---- output ---- */

static int sort_type;                   /* for the comparison */

static int larger_first(const void *a, const void *b)
{
        const struct pprof_sample *x = a, *y = b;
        uint64_t left = x->values[sort_type], right = y->values[sort_type];

        return left != right ? (left < right ? 1 : -1) : x->first < y->first ? -1 : 1;
}

static const char *amount(const struct session *s, uint64_t value, char *text, size_t bytes)
{
        if (s->bytes)
                return bytes_text(value, text, bytes);
        snprintf(text, bytes, "%" PRIu64 " objects", value);
        return text;
}

static void print_top(struct session *s)
{
        const struct pprof *p = &s->profile;
        const char *names[NAMES_MAX];
        char text[64], period[64];

        say(stdout, "%s: %s", s->options.type, amount(s, s->total, text, sizeof text));
        if (p->period)
                say(stdout, ", by samples of one in %s",
                    bytes_text(p->period, period, sizeof period));
        putchar('\n');
        for (size_t i = 0; i < p->sample_count && i < s->options.top; i++) {
                const struct pprof_sample *sample = &p->samples[i];
                uint64_t value = sample->values[s->type];
                size_t count;

                if (!value)
                        break;
                say(stdout, "\n%s, %.1f %%\n", amount(s, value, text, sizeof text),
                    100.0 * (double)value / (double)s->total);
                count = names_of(s, sample, true, names);
                while (count) {
                        fputs("        ", stdout);
                        puts(names[--count]);
                }
        }
}

static void print_folded(struct session *s)
{
        const char *names[NAMES_MAX];

        for (size_t i = 0; i < s->profile.sample_count; i++) {
                const struct pprof_sample *sample = &s->profile.samples[i];
                size_t count = names_of(s, sample, false, names);

                if (!sample->values[s->type])
                        break;
                for (size_t k = 0; k < count; k++)
                        for (const char *c = k ? ";" : "", *n = names[k]; *c || *n; )
                                putchar(*c ? *c++ : *n == ';' ? (n++, ':') : *n++);
                say(stdout, " %" PRIu64 "\n", sample->values[s->type]);
        }
}

static void draw(struct session *s)
{
        struct flame root = { .name = "all" };
        const char *names[NAMES_MAX];
        char title[300], text[64], plain[4 * sizeof title];

        for (size_t i = 0; i < s->profile.sample_count; i++) {
                const struct pprof_sample *sample = &s->profile.samples[i];
                size_t count = names_of(s, sample, false, names);

                s->no_memory |= !flame_add(&root, names, count, sample->values[s->type]);
        }
        snprintf(title, sizeof title, "%.200s: %s, %s", name_of_program(s->options.path),
                 s->options.type, amount(s, s->total, text, sizeof text));
        flame_draw(&root, plain_text(title, plain, sizeof plain), s->bytes, stdout);
        flame_release(&root);
}

/* An empty answer is right, and of no use: of what there is something. */
static void say_where_to_look(const struct session *s)
{
        say(stderr, "stook profile: %s: %s\n", s->options.path, s->profile.sample_count ?
            "nothing was in use when it was written, as at the end of most programs; "
            "--type alloc_space shows all that was allocated" :
            "no allocation was sampled: a smaller interval= samples more");
}

static int show(struct session *s)
{
        struct pprof *p = &s->profile;
        const char *unit;

        s->type = pprof_type(p, s->options.type);
        if (s->type < 0) {
                say(stderr, "stook profile: %s: no values of the type %s\n", s->options.path,
                    s->options.type);
                return STATUS_CANNOT;
        }
        unit = pprof_string(p, p->units[s->type]);
        s->bytes = unit && !strcmp(unit, "bytes");
        s->names = calloc(p->location_count + 1, sizeof *s->names);
        if (!s->names) {
                fputs("stook profile: no memory\n", stderr);
                return STATUS_CANNOT;
        }
        open_symbols(s);
        for (size_t i = 0; i < p->sample_count; i++)
                s->total += p->samples[i].values[s->type];
        sort_type = s->type;
        if (p->sample_count)
                qsort(p->samples, p->sample_count, sizeof *p->samples, larger_first);
        if (s->options.svg)
                draw(s);
        else if (s->options.folded)
                print_folded(s);
        else
                print_top(s);
        if (s->no_memory || fflush(stdout) || ferror(stdout)) {
                say(stderr, "stook profile: %s\n", s->no_memory ? "no memory" : strerror(errno));
                return STATUS_CANNOT;
        }
        if (!s->total)
                say_where_to_look(s);
        return 0;
}

static void release(struct session *s)
{
        for (size_t i = 0; s->names && i < s->profile.location_count; i++) {
                for (size_t k = 0; k < s->names[i].count; k++) {
                        free(s->names[i].lines[k]);
                        free(s->names[i].functions[k]);
                }
                free(s->names[i].lines);
                free(s->names[i].functions);
        }
        free(s->names);
        symbols_release(s->symbols);
        pprof_release(&s->profile);
}

int cmd_profile(int argc, char **argv)
{
        struct session s = { .symbols = NULL };
        char message[PATH_MAX + 100];
        int status = parse(argc, argv, &s.options);

        if (status >= 0)
                return status;
        if (pprof_read(&s.profile, s.options.path, message, sizeof message)) {
                status = show(&s);
        } else {
                say(stderr, "stook profile: %s\n", message);
                status = STATUS_CANNOT;
        }
        release(&s);
        return status;
}
