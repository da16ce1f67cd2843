/*
 * Purpose: see profile_live.h. The process runs on meanwhile: buckets, pairs, stacks and modules
 * are never removed, so each read finds what it is for. Of a damaged process each walk has a bound.
 */
#include "cli/profile/profile_live.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/heap/heap_object.h"
#include "cli/program/on_drop_in.h"

#define ITEMS_MOST 1000000              /* buckets, or pairs */
#define UNKNOWN    1                    /* locations that are no addresses */
#define OUTER      2

struct reading {
        struct pprof  *p;
        struct memory *memory;
        const struct stook_root *root;
        struct stook_profile_state state;
        struct stook_stack_module *modules;   /* [STOOK_STACK_MODULES] */
        uint32_t       module_count;
        size_t         own_mappings;    /* that are there now */
        uint64_t       closed[STOOK_STACK_MODULES];   /* mappings; 0: none yet */
        uint64_t      *known;           /* ids of locations that are made, a hash table */
        size_t         room, count;
};

static int copy(struct reading *r, const void *at, void *out, size_t bytes)
{
        return memory_read(r->memory, (uint64_t)(uintptr_t)at, out, bytes);
}

/* ---- mappings ---- */

static bool add_mapping(struct pprof *p, uint64_t start, uint64_t end, uint64_t offset,
                        const char *file, const uint8_t *build, uint32_t build_bytes)
{
        struct pprof_mapping *m = pprof_add_mapping(p);
        char text[2 * STOOK_STACK_BUILD_BYTES + 1] = "";

        for (uint32_t i = 0; i < build_bytes && i < STOOK_STACK_BUILD_BYTES; i++)
                sprintf(text + 2 * i, "%02x", build[i]);
        if (!m)
                return false;
        *m = (struct pprof_mapping){ p->mapping_count, start, end, offset,
                                     pprof_add_string(p, file), pprof_add_string(p, text) };
        return true;
}

/* As profile_write.c has them. Of a core: where its images begin. */
static void read_mappings(struct reading *r)
{
        char path[64], *line = NULL;
        size_t room = 0;
        FILE *maps;

        snprintf(path, sizeof path, "/proc/%u/maps", r->memory->pid);
        maps = r->memory->write && r->memory->pid ? fopen(path, "re") : NULL;
        while (maps && getline(&line, &room, maps) >= 0) {
                uint64_t start, end, offset;
                char permissions[5];
                int at = 0;

                line[strcspn(line, "\n")] = '\0';
                if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &start,
                           &end, permissions, &offset, &at) < 4 || !at || !line[at])
                        continue;
                if (permissions[2] == 'x' || (!offset && line[at] == '/'))
                        add_mapping(r->p, start, end, offset, line + at, NULL, 0);
        }
        free(line);
        if (maps)
                fclose(maps);
        for (size_t i = 0; !maps && i < r->memory->image_count; i++) {
                uint64_t start = r->memory->images[i].start;
                uint64_t end = i + 1 < r->memory->image_count ? r->memory->images[i + 1].start
                                                              : start + (UINT64_C(1) << 30);

                add_mapping(r->p, start, end, 0, r->memory->images[i].path, NULL, 0);
        }
        r->own_mappings = r->p->mapping_count;
}

/* Has the mapping the module's file? A link to it may lie in another folder. */
static bool is_named(const struct reading *r, size_t mapping, const struct stook_stack_module *m)
{
        const char *file = pprof_string(r->p, r->p->mappings[mapping].file);
        char path[sizeof m->file + 1];

        snprintf(path, sizeof path, "%.*s", (int)sizeof m->file, m->file);
        return file && !strcmp(name_of_program(file), name_of_program(path));
}

/* Was another file there, when @modules were known? Its number; -1: no. */
static int closed_module(struct reading *r, uint64_t address, uint32_t modules)
{
        uint32_t i = modules < r->module_count ? modules : r->module_count;

        while (i-- > 0) {
                const struct stook_stack_module *m = &r->modules[i];

                if (!m->start || m->is_program || address - m->start >= m->end - m->start)
                        continue;
                for (size_t k = 0; k < r->own_mappings; k++)
                        if (r->p->mappings[k].start == m->start && is_named(r, k, m))
                                return -1;      /* it is there still */
                return (int)i;
        }
        return -1;
}

static uint64_t closed_mapping(struct reading *r, int module)
{
        const struct stook_stack_module *m = &r->modules[module];
        char file[sizeof m->file + 1];

        snprintf(file, sizeof file, "%.*s", (int)sizeof m->file, m->file);
        if (!r->closed[module] &&
            add_mapping(r->p, m->start, m->end, 0, file, m->build, m->build_bytes))
                r->closed[module] = r->p->mapping_count;
        return r->closed[module];
}

/* ---- locations ---- */

/* Was it there already? It is now. */
static bool is_known(struct reading *r, uint64_t id)
{
        size_t i;

        if (2 * r->count >= r->room) {
                size_t room = r->room ? 2 * r->room : 4096;
                uint64_t *known = calloc(room, sizeof *known);

                for (size_t k = 0; known && k < r->room; k++) {
                        if (!r->known[k])
                                continue;
                        for (i = r->known[k] * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (room - 1);
                             known[i]; i = (i + 1) & (room - 1))
                                ;
                        known[i] = r->known[k];
                }
                if (!known)
                        return false;
                free(r->known);
                r->known = known;
                r->room = room;
        }
        for (i = id * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (r->room - 1); r->known[i];
             i = (i + 1) & (r->room - 1))
                if (r->known[i] == id)
                        return true;
        r->known[i] = id;
        r->count++;
        return false;
}

static bool add_named(struct reading *r, uint64_t id, const char *name)
{
        struct pprof_function *function = pprof_add_function(r->p);
        struct pprof_location *location = pprof_add_location(r->p);
        struct pprof_line *line = pprof_add_line(r->p);

        if (!function || !location || !line)
                return false;
        *function = (struct pprof_function){ id, pprof_add_string(r->p, name), 0 };
        *line = (struct pprof_line){ id, 0 };
        *location = (struct pprof_location){ .id = id, .first = r->p->line_count - 1, .count = 1 };
        return true;
}

/* Return: 0; -ENOMEM. */
static int add_frame(struct reading *r, uint64_t address, uint32_t modules,
                     struct pprof_stack *stack)
{
        int module = closed_module(r, address, modules);
        uint64_t id = module < 0 ? address : address ^ (uint64_t)(module + 1) << 48;

        if (!is_known(r, id)) {
                struct pprof_location *at = pprof_add_location(r->p);

                if (!at)
                        return -ENOMEM;
                *at = (struct pprof_location){ .id = id, .address = address };
                if (module >= 0)
                        at->mapping = closed_mapping(r, module);
                for (size_t i = 0; module < 0 && i < r->own_mappings; i++) {
                        const struct pprof_mapping *m = &r->p->mappings[i];

                        if (address - m->start < m->end - m->start)
                                at->mapping = m->id;
                }
        }
        return pprof_add_to_stack(r->p, stack, id) ? 0 : -ENOMEM;
}

/* Return: 0; -ENOMEM. */
static int add_stack(struct reading *r, uint32_t number, struct pprof_stack *stack)
{
        uint64_t frames[STOOK_STACK_FRAMES_MOST];
        uint32_t modules, count = heap_stack(r->memory, r->root, number, frames, &modules);
        int error = 0;

        for (uint32_t i = 0; !error && i < count; i++)
                error = add_frame(r, frames[i] - 1, modules, stack);
        if (!error && count == STOOK_STACK_FRAMES_MOST)
                error = pprof_add_to_stack(r->p, stack, OUTER) ? 0 : -ENOMEM;
        if (!error && !count)
                error = pprof_add_to_stack(r->p, stack, UNKNOWN) ? 0 : -ENOMEM;
        return error;
}

/* ---- buckets and pairs ---- */

static int add_bucket(struct reading *r, const void *copied)
{
        const struct stook_profile_bucket *bucket = copied;
        struct stook_profile_value v[STOOK_PROFILE_KINDS];
        struct pprof_stack stack = { 0 };
        struct pprof_sample *s;
        int error;

        stook_profile_values(&r->state, bucket, v);
        if (!v[STOOK_PROFILE_ALLOC].objects)
                return 0;
        error = add_stack(r, bucket->stack, &stack);
        s = error ? NULL : pprof_add_sample(r->p);
        if (!s)
                return -ENOMEM;
        s->stack = stack;
        s->has_more = true;
        for (unsigned i = 0; i < STOOK_PROFILE_KINDS; i++) {
                s->values[2 * i] = v[i].objects;
                s->values[2 * i + 1] = v[i].bytes;
                s->more.values[i].samples = v[i].samples;
                s->more.values[i].objects_variance = v[i].objects_variance;
                s->more.values[i].bytes_variance = v[i].bytes_variance;
        }
        s->more.windows = bucket->windows;
        return 0;
}

static int add_pair(struct reading *r, const void *copied)
{
        const struct stook_profile_pair *from = copied;
        struct pprof_stack born = { 0 }, died = { 0 };
        struct pprof_pair *pair;
        int error = add_stack(r, from->born, &born);

        if (!error)
                error = add_stack(r, from->died, &died);
        pair = error ? NULL : pprof_add_pair(r->p);
        if (!pair)
                return -ENOMEM;
        pair->born = born;
        pair->died = died;
        pair->values = (struct stook_profile_file_pair){
                .samples = from->samples, .objects = from->objects, .bytes = from->bytes,
                .elsewhere = from->elsewhere,
        };
        memcpy(pair->values.lives, from->lives, sizeof from->lives);
        return 0;
}

/*
 * @table: [STOOK_PROFILE_CHAINS] of the process. Calls @add with a copy of each element, of @bytes
 * bytes, of which the pointer to the next one is at @next.
 */
static int read_table(struct reading *r, const void *table, size_t bytes, size_t next,
                      int (*add)(struct reading *r, const void *copied))
{
        const char *at, *heads[STOOK_PROFILE_CHAINS];
        char *element = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
        size_t count = 0;
        int error = element ? copy(r, table, heads, sizeof heads) : -ENOMEM;

        for (size_t i = 0; !error && i < STOOK_PROFILE_CHAINS; i++)
                for (at = heads[i]; !error && at; memcpy(&at, element + next, sizeof at)) {
                        error = count++ > ITEMS_MOST ? -EBADMSG : copy(r, at, element, bytes);
                        if (!error)
                                error = add(r, element);
                }
        free(element);
        return error;
}

static void tell_session(struct reading *r)
{
        const struct stook_profile_state *s = &r->state;
        struct timespec now;
        uint64_t ns;

        clock_gettime(CLOCK_MONOTONIC, &now);
        ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
        if (ns < s->started || !r->memory->write)       /* a core may be of another boot */
                ns = s->peak_at;
        r->p->has_session = true;
        r->p->period = s->interval;
        r->p->duration_ns = ns - s->started;
        clock_gettime(CLOCK_REALTIME, &now);
        r->p->time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
        r->p->session = (struct stook_profile_file_session){
                .version = STOOK_PROFILE_FILE_VERSION, .process = r->memory->pid,
                .ns = ns - s->started,
                .peak_ns = s->peak_number ? s->peak_at - s->started : 0,
                .mark_ns = s->mark_number ? s->mark_at - s->started : 0,
                .lost = s->lost, .pairs_lost = s->pairs_lost, .lifetimes = s->lifetimes,
        };
}

static int read_all(struct reading *r)
{
        int error = copy(r, r->root->profile, &r->state, sizeof r->state);

        if (!error && !r->state.interval)
                error = -ENOTSUP;
        if (!error)
                error = copy(r, r->root->stack_modules, r->modules,
                             STOOK_STACK_MODULES * sizeof *r->modules);
        if (!error)
                error = copy(r, r->root->stack_modules_made, &r->module_count,
                             sizeof r->module_count);
        if (error)
                return error;
        if (r->module_count > STOOK_STACK_MODULES)
                r->module_count = STOOK_STACK_MODULES;
        pprof_add_string(r->p, "");
        if (!pprof_add_types(r->p) || !add_named(r, UNKNOWN, "[no stack]") ||
            !add_named(r, OUTER, "[outer calls]"))
                return -ENOMEM;
        tell_session(r);
        read_mappings(r);
        error = read_table(r, r->root->profile_buckets, sizeof(struct stook_profile_bucket),
                           offsetof(struct stook_profile_bucket, next), add_bucket);
        if (!error)
                error = read_table(r, r->root->profile_pairs, sizeof(struct stook_profile_pair),
                                   offsetof(struct stook_profile_pair, next), add_pair);
        pprof_sort(r->p);
        return error;
}

int profile_live(struct pprof *p, struct memory *memory, const struct library *library)
{
        struct reading *r = calloc(1, sizeof *r);
        int error = -ENOMEM;

        memset(p, 0, sizeof *p);
        if (r)
                r->modules = calloc(STOOK_STACK_MODULES, sizeof *r->modules);
        if (r && r->modules) {
                r->p = p;
                r->memory = memory;
                r->root = &library->root;
                error = read_all(r);
                free(r->known);
        }
        if (r)
                free(r->modules);
        free(r);
        return error;
}
