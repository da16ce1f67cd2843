/*
 * Purpose: see profile_names.h.
 */
#include "cli/profile/profile_names.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/profile/perf_map.h"
#include "cli/program/on_drop_in.h"
#include "cli/symbols/demangle.h"
#include "cli/text/plain_text.h"

#define NAME_BYTES 1000

/* ---- files ---- */

static bool overlaps(const struct pprof *p, size_t i)
{
        const struct pprof_mapping *m = &p->mappings[i];

        for (size_t k = 0; k < i; k++)
                if (m->start < p->mappings[k].end && p->mappings[k].start < m->end)
                        return true;
        return false;
}

/*
 * As /proc/PID/maps has them: a file's mappings have the number of its first one for an inode.
 * @closed: those that lay where others do now.
 */
static struct symbols *open_symbols(const struct pprof *p, bool closed)
{
        struct symbols *symbols = NULL;
        char *text = NULL;
        size_t bytes = 0;
        FILE *maps = open_memstream(&text, &bytes);

        for (size_t i = 0; maps && i < p->mapping_count; i++) {
                const struct pprof_mapping *m = &p->mappings[i];
                const char *file = pprof_string(p, m->file);
                size_t first = 0;

                while (p->mappings[first].file != m->file &&
                       strcmp(pprof_string(p, p->mappings[first].file) ?: "", file ?: ""))
                        first++;
                if (file && *file == '/' && strlen(file) < PATH_MAX && overlaps(p, i) == closed)
                        fprintf(maps, "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " 00:00 %zu %s\n",
                                m->start, m->end, m->offset, first + 1, file);
        }
        if (maps && !fclose(maps) && bytes && (maps = fmemopen(text, bytes, "r"))) {
                symbols = symbols_of_maps(maps);
                fclose(maps);
        }
        free(text);
        return symbols;
}

static struct symbols *symbols_at(struct profile_names *names, const struct pprof_location *at,
                                  const struct pprof_mapping *mapping)
{
        const char *build = mapping ? pprof_string(names->profile, mapping->build) : NULL;
        struct symbols *symbols = names->symbols[0];
        char now[129];

        if (mapping && overlaps(names->profile, (size_t)(mapping - names->profile->mappings)))
                symbols = names->symbols[1];
        if (!symbols || !build || !*build)
                return symbols;
        symbols_build_id(symbols, at->address, now);
        if (!*now || !strcmp(now, build))
                return symbols;
        names->changed = pprof_string(names->profile, mapping->file);
        return NULL;
}

/* ---- names ---- */

static void add(struct profile_names *names, struct profile_place *place, const char *name,
                const char *file, int line)
{
        size_t n = place->count + 1;
        struct profile_function *more = realloc(place->functions, n * sizeof *more);
        char plain[4 * NAME_BYTES];             /* graphs go to terminals, too */

        if (more) {
                place->functions = more;
                more[n - 1] = (struct profile_function){
                        .name = strdup(plain_text(name, plain, sizeof plain)),
                        .file = file ? strdup(file) : NULL, .line = line,
                };
                if (more[n - 1].name && (more[n - 1].file || !file))
                        place->count = n;
        }
        names->no_memory |= place->count != n;
}

static void forget(struct profile_place *place)
{
        for (size_t i = 0; i < place->count; i++) {
                free(place->functions[i].name);
                free(place->functions[i].file);
        }
        place->count = 0;
}

struct finding {
        struct profile_names   *names;
        struct profile_place   *place;
        const char             *fallback;
        struct frames_judgement judgement;
};

static void found(const struct symbol *symbol, void *data)
{
        struct finding *f = data;
        const char *name = symbol->function ? symbol->function : f->fallback;
        char text[NAME_BYTES];

        if (symbol->linkage && demangle(symbol->linkage, text, sizeof text))
                name = text;
        add(f->names, f->place, name, symbol->line ? symbol->file : NULL, symbol->line);
        f->place->is_named |= symbol->function != NULL;
        frames_judge(&f->judgement, symbol);
}

static void find(struct profile_names *names, struct symbols *symbols, uint64_t address,
                 const char *fallback, struct profile_place *place)
{
        struct finding f = { names, place, fallback, { .symbols = symbols, .at = address } };

        symbols_find(symbols, address, false, found, &f);
        place->headers = f.judgement.headers;
        place->owner = f.judgement.owner;
}

/* What the profile itself names. */
static void take_names(struct profile_names *names, const struct pprof_location *at,
                       const struct pprof_mapping *mapping, struct profile_place *place)
{
        const struct pprof *p = names->profile;
        const char *module = mapping ? pprof_string(p, mapping->file) : NULL;

        for (size_t i = at->first; i < at->first + at->count; i++) {
                const struct pprof_function *f = pprof_function(p, p->lines[i].function);
                const char *name = f ? pprof_string(p, f->name) : NULL;
                const char *file = f && p->lines[i].line ? pprof_string(p, f->file) : NULL;

                if (name && *name)
                        add(names, place, name, file && *file ? file : NULL,
                            (int)p->lines[i].line);
        }
        place->is_named = place->count;
        place->headers = at->headers;
        if (at->owner <= FRAMES_LIBRARY)
                place->owner = (enum frames_owner)at->owner;
        if (module && !strncmp(name_of_program(module), "libstook", 8))
                place->owner = FRAMES_LIBRARY;
}

/* MODULE+0xOFFSET, as the file has it; or the address alone. */
static void name_by_mapping(const struct pprof *p, const struct pprof_mapping *m, uint64_t address,
                            char text[NAME_BYTES])
{
        const char *file = m ? pprof_string(p, m->file) : NULL;

        if (file && *file)
                snprintf(text, NAME_BYTES, "%.300s+0x%" PRIx64, name_of_program(file),
                         address - m->start + m->offset);
        else
                snprintf(text, NAME_BYTES, "0x%" PRIx64, address);
}

const struct profile_place *profile_names_at(struct profile_names *names, uint64_t id)
{
        const struct pprof *p = names->profile;
        const struct pprof_location *at = pprof_location(p, id);
        struct profile_place *place = at ? &names->places[at - p->locations] : NULL;
        const struct pprof_mapping *mapping;
        struct symbols *symbols;
        char fallback[NAME_BYTES];
        const char *jit;

        if (!place || place->count)
                return place;
        mapping = pprof_mapping(p, at);
        name_by_mapping(p, mapping, at->address, fallback);
        take_names(names, at, mapping, place);
        if (!place->count && (symbols = symbols_at(names, at, mapping)))
                find(names, symbols, at->address, fallback, place);
        if (!place->is_named && p->has_session) {
                if (!names->perf)
                        names->perf = perf_map_open(p->session.process);
                jit = perf_map_find(names->perf, at->address);
                if (jit) {
                        forget(place);
                        add(names, place, jit, NULL, 0);
                        place->is_named = true;
                }
        }
        if (!place->count)
                add(names, place, fallback, NULL, 0);
        return place;
}

struct stack {
        struct profile_names     *names;
        const struct pprof_stack *stack;
};

static enum frames_owner owner_of(size_t i, void *data)
{
        const struct stack *s = data;
        const struct profile_place *at =
                profile_names_at(s->names, s->names->profile->stacks[s->stack->first + i]);

        return at ? at->owner : FRAMES_PROGRAM;
}

size_t profile_names_of(struct profile_names *names, const struct pprof_stack *stack,
                        const struct profile_function *functions[PROFILE_FRAMES_MOST])
{
        size_t first = frames_first(owner_of, &(struct stack){ names, stack }, stack->count);
        size_t count = 0;

        for (size_t i = first; i < stack->count; i++) {
                const struct profile_place *at =
                        profile_names_at(names, names->profile->stacks[stack->first + i]);
                size_t k = at && i == first && at->headers < at->count ? at->headers : 0;

                for (; at && k < at->count && count < PROFILE_FRAMES_MOST; k++)
                        functions[count++] = &at->functions[k];
        }
        for (size_t i = 0; i < count / 2; i++) {
                const struct profile_function *other = functions[i];

                functions[i] = functions[count - 1 - i];
                functions[count - 1 - i] = other;
        }
        return count;
}

/* ---- begin and end ---- */

bool profile_names_open(struct profile_names *names, const struct pprof *p)
{
        *names = (struct profile_names){ .profile = p };
        names->places = calloc(p->location_count + 1, sizeof *names->places);
        if (!names->places)
                return false;
        for (int closed = 0; closed < 2; closed++)
                names->symbols[closed] = open_symbols(p, closed);
        return true;
}

void profile_names_close(struct profile_names *names)
{
        for (size_t i = 0; names->places && i < names->profile->location_count; i++) {
                forget(&names->places[i]);
                free(names->places[i].functions);
        }
        free(names->places);
        symbols_release(names->symbols[0]);
        symbols_release(names->symbols[1]);
        perf_map_close(names->perf);
}
