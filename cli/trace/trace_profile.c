/*
 * Purpose: see trace_profile.h. The trace is read once. What a stack has at the peak is found as
 * src/profile/profile_life.c finds it: whoever changes a stack's sums for the first time after a
 * peak saves them.
 */
#include "cli/trace/trace_profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/trace/trace_objects.h"
#include "cli/trace/trace_read.h"
#include "cli/trace/trace_stacks.h"

#define UNKNOWN 1                       /* a location that is no address */

enum { ALLOCATED, TEMPORARY, PEAK, IN_USE, KINDS };

struct sums {
        int64_t objects, bytes;
};

struct caller {
        struct sums kinds[KINDS];
        uint64_t    peak;               /* the number that kinds[PEAK] was saved under */
};

struct object {
        uint64_t bytes;
        uint32_t caller;
};

struct reading {
        struct trace  *trace;
        struct caller *callers;         /* by stack + 1; 0: not known */
        size_t         caller_room;
        struct object *objects;         /* by the trace's number */
        size_t         object_room;
        struct trace_objects threads;   /* by process and thread: the object that it made last */
        int64_t        in_use, most;
        uint64_t       peak;            /* number of the last one */
        uint64_t       end_ns;
};

/* Zeroed items up to @index. False: no memory. */
static bool reach(void *array, size_t index, size_t *room, size_t bytes)
{
        size_t wanted = *room ? *room : 1024;
        char *grown;

        if (index < *room)
                return true;
        while (wanted <= index)
                wanted *= 2;
        grown = realloc(*(void **)array, wanted * bytes);
        if (!grown)
                return false;
        memset(grown + *room * bytes, 0, (wanted - *room) * bytes);
        *(void **)array = grown;
        *room = wanted;
        return true;
}

/* ---- events ---- */

static void add(struct caller *caller, unsigned kind, int64_t objects, int64_t bytes)
{
        caller->kinds[kind].objects += objects;
        caller->kinds[kind].bytes += bytes;
}

static void change(struct reading *r, struct caller *caller, int64_t objects, int64_t bytes)
{
        if (caller->peak != r->peak) {
                caller->peak = r->peak;
                caller->kinds[PEAK] = caller->kinds[IN_USE];
        }
        add(caller, IN_USE, objects, bytes);
        r->in_use += bytes;
        if (r->in_use > r->most) {
                r->most = r->in_use;
                r->peak++;
        }
}

static struct trace_object *thread_of(struct reading *r, const struct trace_event *event)
{
        return trace_objects_find(&r->threads, event->process, event->thread);
}

/* False: no memory. */
static bool made_last(struct reading *r, const struct trace_event *event)
{
        struct trace_object *thread = thread_of(r, event);
        struct trace_object new = { .process = event->process, .address = event->thread,
                                    .bytes = event->object };
        uint64_t number;

        if (!thread)
                return trace_objects_add(&r->threads, &new, &number);
        thread->bytes = event->object;
        return true;
}

static bool begin(struct reading *r, const struct trace_event *event)
{
        uint32_t caller = event->stack + 1;     /* TRACE_NO_STACK: 0 */

        if (!reach(&r->callers, caller, &r->caller_room, sizeof *r->callers) ||
            !reach(&r->objects, event->object, &r->object_room, sizeof *r->objects))
                return false;
        r->objects[event->object] = (struct object){ event->bytes, caller };
        add(&r->callers[caller], ALLOCATED, 1, (int64_t)event->bytes);
        change(r, &r->callers[caller], 1, (int64_t)event->bytes);
        return made_last(r, event);
}

static void end(struct reading *r, const struct trace_event *event)
{
        const struct object *object = &r->objects[event->object];
        struct caller *caller = &r->callers[object->caller];
        struct trace_object *thread = thread_of(r, event);

        if (thread && thread->bytes == event->object) {
                thread->bytes = TRACE_NO_OBJECT;        /* its number serves again */
                if (event->kind == TRACE_FREE && !event->implied)
                        add(caller, TEMPORARY, 1, (int64_t)object->bytes);
        }
        change(r, caller, -1, -(int64_t)object->bytes);
}

/* 1: go on; 0: the end; -1: failure. */
static int take_event(struct reading *r)
{
        struct trace_event event;
        int got = trace_next(r->trace, &event);

        if (got <= 0)
                return got;
        r->end_ns = event.at_ns;
        if (event.object == TRACE_NO_OBJECT)
                return 1;
        if (event.kind != TRACE_ALLOC)
                end(r, &event);
        return event.kind == TRACE_FREE || begin(r, &event) ? 1 : -1;
}

/* ---- the profile ---- */

static bool add_types(struct pprof *p)
{
        static const char *const names[] = { "alloc", "temporary", "peak", "inuse" };
        char name[32];

        pprof_add_string(p, "");
        for (p->type_count = 0; p->type_count < 2 * KINDS; p->type_count++) {
                size_t i = p->type_count;

                snprintf(name, sizeof name, "%s_%s", names[i / 2], i % 2 ? "space" : "objects");
                p->types[i] = pprof_add_string(p, name);
                p->units[i] = pprof_add_string(p, i % 2 ? "bytes" : "count");
                if (!p->types[i] || !p->units[i])
                        return false;
        }
        return true;
}

/* A mapping has the number of its file, + 1. */
static bool add_codes(struct pprof *p, const struct trace_stacks *s)
{
        for (size_t i = 0; i < s->code_count; i++) {
                struct pprof_mapping *m = pprof_add_mapping(p);
                uint64_t start = (i + 1) << TRACE_CODE_SHIFT;

                if (!m)
                        return false;
                *m = (struct pprof_mapping){ i + 1, start, start + s->codes[i].bytes, 0,
                                             pprof_add_string(p, s->codes[i].path),
                                             pprof_add_string(p, s->codes[i].build) };
        }
        return true;
}

static int by_number(const void *a, const void *b)
{
        const uint64_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

/* A location's number is its address, that of the call. */
static bool add_locations(struct pprof *p, const struct trace_stacks *s)
{
        struct pprof_function *function = pprof_add_function(p);
        struct pprof_location *unknown = pprof_add_location(p);
        struct pprof_line *line = pprof_add_line(p);
        uint64_t *frames = malloc((s->frame_count + 1) * sizeof *frames), last = UNKNOWN;
        bool fine = frames && function && unknown && line;

        if (fine) {
                *function = (struct pprof_function){ UNKNOWN, pprof_add_string(p, "[no stack]"),
                                                     0 };
                *line = (struct pprof_line){ UNKNOWN, 0 };
                *unknown = (struct pprof_location){ .id = UNKNOWN, .count = 1 };
                if (s->frame_count)
                        memcpy(frames, s->frames, s->frame_count * sizeof *frames);
                qsort(frames, s->frame_count, sizeof *frames, by_number);
        }
        for (size_t i = 0; fine && i < s->frame_count; i++) {
                uint64_t address = frames[i] - 1;
                struct pprof_location *at = address == last ? NULL : pprof_add_location(p);

                fine = at || address == last;
                last = address;
                if (at)
                        *at = (struct pprof_location){ .id = address, .address = address,
                                                       .mapping = address >> TRACE_CODE_SHIFT };
        }
        free(frames);
        return fine;
}

static bool add_caller(struct pprof *p, const struct reading *r, size_t number)
{
        const struct trace_stacks *s = trace_stacks(r->trace);
        struct caller *caller = &r->callers[number];
        struct pprof_sample *sample = pprof_add_sample(p);
        bool fine = sample;

        if (caller->peak != r->peak)
                caller->kinds[PEAK] = caller->kinds[IN_USE];
        for (unsigned i = 0; fine && i < KINDS; i++) {
                sample->values[2 * i] = caller->kinds[i].objects;
                sample->values[2 * i + 1] = caller->kinds[i].bytes;
        }
        if (fine && !number)
                return pprof_add_to_stack(p, &sample->stack, UNKNOWN);
        for (uint32_t i = 0; fine && i < s->stacks[number - 1].count; i++)
                fine = pprof_add_to_stack(p, &sample->stack,
                                          s->frames[s->stacks[number - 1].first + i] - 1);
        return fine;
}

/* False: no memory. */
static bool make(struct pprof *p, const struct reading *r)
{
        const struct trace_stacks *s = trace_stacks(r->trace);

        p->duration_ns = r->end_ns;
        p->time_ns = trace_process(r->trace, 0)->began_ns;
        if (!add_types(p) || !add_codes(p, s) || !add_locations(p, s))
                return false;
        for (size_t i = 0; i < r->caller_room && i <= s->stack_count; i++)
                if (r->callers[i].kinds[ALLOCATED].objects && !add_caller(p, r, i))
                        return false;
        pprof_sort(p);
        return true;
}

bool trace_profile(struct pprof *p, const char *path, char *message, size_t bytes)
{
        struct reading r = { .trace = trace_open(path, message, bytes) };
        const struct trace_damage *damage;
        int got = -1;

        memset(p, 0, sizeof *p);
        if (!r.trace)
                return false;
        while ((got = take_event(&r)) > 0)
                ;
        if (got < 0 && trace_message(r.trace)[0])
                snprintf(message, bytes, "%s", trace_message(r.trace));
        else if (got < 0 || !make(p, &r))
                snprintf(message, bytes, "%s: no memory to read it", path);
        else if (!trace_stacks(r.trace)->stack_count)
                snprintf(message, bytes, "%s: a trace without stacks: `stook record --stacks` "
                         "writes one with them", path);
        else
                got = 1;
        damage = trace_damage(r.trace);
        if (got == 1)
                message[0] = '\0';
        if (got == 1 && damage->bytes)
                snprintf(message, bytes, "%s: damaged at byte %" PRIu64 ": %s; in all, %" PRIu64
                         " bytes were left out", path, damage->at, damage->what, damage->bytes);
        trace_close(r.trace);
        trace_objects_release(&r.threads);
        free(r.callers);
        free(r.objects);
        return got == 1;
}
