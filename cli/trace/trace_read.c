/*
 * Purpose: see trace_read.h. The events of all streams are merged by time: a heap has the streams,
 * the one with the earliest event on top. A stream's block is loaded when its turn comes, so many
 * processes that ran after each other need the memory of few.
 * The library writes down an allocation after it and a free before it, so of two events at one
 * address the later one has the later time. Of equal times, frees come first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/trace/trace_block_stacks.h"
#include "cli/trace/trace_file.h"
#include "cli/trace/trace_objects.h"
#include "cli/trace/trace_stacks.h"

#define CACHE_INDICES 8192              /* more than any process has */

/* An event as it stands in a block. */
struct raw {
        unsigned char tag;
        uint64_t at_ns, address, from, bytes, index;    /* from: RESIZE, the old address */
        uint32_t stack;
};

struct reader {
        uint64_t *words;                /* the block; NULL: not loaded, or at the end */
        uint32_t *caches;               /* [CACHE_INDICES]: what the block has named, + 1 */
        struct trace_block_stacks *stacks;      /* the same; NULL: it has none */
        uint32_t  block;                /* loaded, or the next one; TRACE_NO_BLOCK: none */
        struct trace_cursor cursor;
        uint64_t  at_ns, address;       /* of the event before */
        uint32_t  thread, cpu;
        struct raw raw;                 /* the next event; if not loaded: the block's first time */
};

struct trace {
        struct trace_file file;
        char     message[PATH_MAX + 128];       /* empty until something fails */
        struct reader *readers;         /* of the streams */
        uint32_t *heap;                 /* streams that have events left */
        size_t    heap_count;
        struct trace_objects objects;
        struct trace_stacks stacks;
        struct trace_cache *caches;
        size_t    cache_count, cache_room;
        uint64_t  begin_ns;
        uint32_t  large;                /* the cache of large objects, + 1; 0: not met yet */
        bool      failed;
        struct trace_event after;       /* given next, if `has_after` */
        bool      has_after;
};

/* ---- the heap ---- */

static bool is_before(const struct trace *t, uint32_t a, uint32_t b)
{
        const struct raw *x = &t->readers[a].raw, *y = &t->readers[b].raw;
        bool x_frees = (x->tag & STOOK_TRACE_KIND) == STOOK_TRACE_FREE;
        bool y_frees = (y->tag & STOOK_TRACE_KIND) == STOOK_TRACE_FREE;

        if (x->at_ns != y->at_ns)
                return x->at_ns < y->at_ns;
        return x_frees != y_frees ? x_frees : a < b;
}

static void sift_down(struct trace *t, size_t i)
{
        uint32_t moved = t->heap[i];
        size_t child;

        for (; (child = 2 * i + 1) < t->heap_count; i = child) {
                if (child + 1 < t->heap_count && is_before(t, t->heap[child + 1], t->heap[child]))
                        child++;
                if (!is_before(t, t->heap[child], moved))
                        break;
                t->heap[i] = t->heap[child];
        }
        t->heap[i] = moved;
}

/* ---- caches ---- */

/* The number of a cache, which may be new. TRACE_NO_CACHE: no memory. */
static uint32_t cache_number(struct trace *t, const struct trace_cache *cache)
{
        for (size_t i = 0; i < t->cache_count; i++)
                if (t->caches[i].object_bytes == cache->object_bytes &&
                    t->caches[i].stride == cache->stride && !strcmp(t->caches[i].name, cache->name))
                        return (uint32_t)i;
        if (t->cache_count == t->cache_room) {
                size_t room = t->cache_room ? 2 * t->cache_room : 64;
                struct trace_cache *more = realloc(t->caches, room * sizeof *more);

                if (!more) {
                        trace_file_no_memory(&t->file);
                        return TRACE_NO_CACHE;
                }
                t->caches = more;
                t->cache_room = room;
        }
        t->caches[t->cache_count] = *cache;
        return (uint32_t)t->cache_count++;
}

/* False: it makes no sense, or there is no memory. */
static bool take_cache(struct trace *t, struct reader *r)
{
        struct trace_cache cache;
        uint64_t index;
        uint32_t number;

        memset(&cache, 0, sizeof cache);
        if (!trace_take_number(&r->cursor, &index) ||
            !trace_take_number(&r->cursor, &cache.object_bytes) ||
            !trace_take_number(&r->cursor, &cache.stride) ||
            !trace_take_name(&r->cursor, cache.name) || !index || index >= CACHE_INDICES)
                return false;
        number = cache_number(t, &cache);
        r->caches[index] = number + 1;
        return number != TRACE_NO_CACHE;
}

static uint32_t large_cache(struct trace *t)
{
        static const struct trace_cache large = { .name = "large" };

        if (!t->large)
                t->large = cache_number(t, &large) + 1;
        return t->large - 1;
}

/* ---- one stream ---- */

/* False: the file changed, or there is no memory. */
static bool load(struct trace *t, struct reader *r)
{
        if (!r->words) {
                r->words = malloc(STOOK_TRACE_BLOCK_BYTES);
                r->caches = malloc(CACHE_INDICES * sizeof *r->caches);
                if (!r->words || !r->caches)
                        return trace_file_no_memory(&t->file);
        }
        if (!trace_file_load(&t->file, r->block, r->words))
                return false;
        memset(r->caches, 0, CACHE_INDICES * sizeof *r->caches);
        r->cursor.at = (unsigned char *)r->words + sizeof(struct stook_trace_block);
        r->cursor.end = (unsigned char *)r->words + t->file.blocks[r->block].bytes;
        r->at_ns = t->file.blocks[r->block].at_ns;
        r->address = r->thread = r->cpu = 0;
        return true;
}

static void unload(struct reader *r)
{
        free(r->words);
        free(r->caches);
        free(r->stacks);
        r->words = NULL;
        r->caches = NULL;
        r->stacks = NULL;
}

static bool take_event(struct reader *r, unsigned char tag)
{
        struct trace_cursor *c = &r->cursor;
        struct raw *raw = &r->raw;
        uint64_t ns;

        memset(raw, 0, sizeof *raw);
        raw->tag = tag;
        raw->stack = TRACE_NO_STACK;
        if (!trace_take_number(c, &ns) || !trace_take_difference(c, &r->address))
                return false;
        raw->from = r->address;
        if ((tag & STOOK_TRACE_KIND) == STOOK_TRACE_RESIZE &&
            !trace_take_difference(c, &r->address))
                return false;
        raw->address = r->address;
        raw->at_ns = r->at_ns += ns;
        if ((tag & STOOK_TRACE_KIND) == STOOK_TRACE_FREE)
                return true;
        if ((tag & STOOK_TRACE_KIND) == STOOK_TRACE_ALLOC &&
            (!trace_take_number(c, &raw->index) || raw->index >= CACHE_INDICES ||
             (raw->index != STOOK_TRACE_LARGE && !r->caches[raw->index])))
                return false;
        return trace_take_number(c, &raw->bytes) &&
               (!(tag & STOOK_TRACE_STACKS) || trace_block_stack(r->stacks, c, &raw->stack));
}

static bool take_thread(struct reader *r)
{
        uint64_t thread, cpu;

        if (!trace_take_number(&r->cursor, &thread) || !trace_take_number(&r->cursor, &cpu))
                return false;
        r->thread = (uint32_t)thread;
        r->cpu = (uint32_t)cpu;
        return true;
}

/* False: as take_cache. */
static bool take_stack(struct trace *t, struct reader *r, unsigned char tag)
{
        int got;

        if (!r->stacks)
                r->stacks = calloc(1, sizeof *r->stacks);
        got = !r->stacks ? -1 : tag & STOOK_TRACE_CODE
              ? trace_block_take_code(r->stacks, &t->stacks, &r->cursor)
              : trace_block_take_stack(r->stacks, &t->stacks, &r->cursor);
        if (got < 0)
                trace_file_no_memory(&t->file);
        return got > 0;
}

static bool skip_process(struct reader *r)
{
        char name[STOOK_TRACE_NAME_MAX + 1];
        uint64_t n;

        return trace_take_number(&r->cursor, &n) && trace_take_number(&r->cursor, &n) &&
               trace_take_name(&r->cursor, name);
}

/*
 * The next event of the loaded block. 1; 0: it has no more; -1: failure. What follows a record that
 * makes no sense is left out.
 */
static int next_in_block(struct trace *t, struct reader *r)
{
        const unsigned char *record = r->cursor.at;
        bool good = true;

        while (good && r->cursor.at < r->cursor.end) {
                unsigned char tag = *(record = r->cursor.at++);

                switch (tag & STOOK_TRACE_KIND) {
                case STOOK_TRACE_END:
                        return 0;
                case STOOK_TRACE_ALLOC:
                case STOOK_TRACE_FREE:
                case STOOK_TRACE_RESIZE:
                        if (take_event(r, tag))
                                return 1;
                        good = false;
                        break;
                case STOOK_TRACE_THREAD:
                        good = take_thread(r);
                        break;
                case STOOK_TRACE_CACHE:
                        good = take_cache(t, r);
                        break;
                case STOOK_TRACE_PROCESS:
                        good = skip_process(r);
                        break;
                case STOOK_TRACE_STACK:
                        good = take_stack(t, r, tag);
                        break;
                default:
                        good = false;
                }
        }
        if (t->message[0])
                return -1;
        if (!good)
                trace_file_leave_out(&t->file, t->file.blocks[r->block].offset +
                                     (uint64_t)(record - (unsigned char *)r->words),
                                     (uint64_t)(r->cursor.end - record),
                                     "a record that makes no sense");
        return 0;
}

/* Makes the stream's next event the reader's. Return: as above, of the stream. */
static int advance(struct trace *t, struct reader *r)
{
        int got;

        for (;;) {
                if (!r->words && !load(t, r))
                        return -1;
                got = next_in_block(t, r);
                if (got)
                        return got;
                r->block = t->file.blocks[r->block].next;
                unload(r);
                if (r->block == TRACE_NO_BLOCK)
                        return 0;
                r->raw.at_ns = t->file.blocks[r->block].at_ns;
                r->raw.tag = STOOK_TRACE_FREE;
                return 1;
        }
}

/* The stream with the earliest event on top, loaded. 1; 0: no events are left; -1: failure. */
static int settle(struct trace *t)
{
        while (t->heap_count && !t->readers[t->heap[0]].words) {
                int got = advance(t, &t->readers[t->heap[0]]);

                if (got < 0)
                        return -1;
                if (!got)
                        t->heap[0] = t->heap[--t->heap_count];
                if (t->heap_count)
                        sift_down(t, 0);
        }
        return t->heap_count > 0;
}

static int drop_top(struct trace *t)
{
        int got = advance(t, &t->readers[t->heap[0]]);

        if (got < 0)
                return -1;
        if (!got)
                t->heap[0] = t->heap[--t->heap_count];
        if (t->heap_count)
                sift_down(t, 0);
        return 1;
}

/* ---- events ---- */

/* What is known of the object ends. */
static bool end_object(struct trace *t, struct trace_object *object, struct trace_event *event)
{
        event->object = object->number;
        event->bytes = object->bytes;
        event->cache = object->cache;
        return trace_objects_remove(&t->objects, object) || trace_file_no_memory(&t->file);
}

static bool begin_object(struct trace *t, const struct raw *raw, uint32_t cache,
                         struct trace_event *event)
{
        struct trace_object object = { .address = raw->address, .process = event->process,
                                       .cache = cache, .bytes = raw->bytes };

        if (!object.bytes && cache != TRACE_NO_CACHE)
                object.bytes = t->caches[cache].object_bytes;
        event->bytes = object.bytes;
        event->cache = cache;
        return trace_objects_add(&t->objects, &object, &event->object) ||
               trace_file_no_memory(&t->file);
}

/*
 * An object that the trace never frees lives where another one begins. The event becomes its free,
 * and what was read is given after it: *@event points there from now on.
 */
static bool end_stale(struct trace *t, uint64_t address, struct trace_event **event)
{
        struct trace_object *stale = trace_objects_find(&t->objects, (*event)->process, address);
        struct trace_event *first = *event;

        if (!stale)
                return true;
        t->after = *first;
        t->has_after = true;
        *event = &t->after;
        first->kind = TRACE_FREE;
        first->implied = true;
        return end_object(t, stale, first);
}

static bool on_alloc(struct trace *t, const struct reader *r, struct trace_event *event)
{
        const struct raw *raw = &r->raw;
        uint32_t cache = raw->index == STOOK_TRACE_LARGE ? large_cache(t)
                                                         : r->caches[raw->index] - 1;

        if (cache == TRACE_NO_CACHE || !end_stale(t, raw->address, &event))
                return false;
        event->kind = TRACE_ALLOC;
        return begin_object(t, raw, cache, event);
}

static bool on_free(struct trace *t, const struct raw *raw, struct trace_event *event)
{
        struct trace_object *object = trace_objects_find(&t->objects, event->process, raw->address);

        event->kind = TRACE_FREE;
        event->by_rcu = raw->tag & STOOK_TRACE_BY_RCU;
        event->object = TRACE_NO_OBJECT;
        event->cache = TRACE_NO_CACHE;
        return !object || end_object(t, object, event);
}

/* An object that is not known begins here. */
static bool on_resize(struct trace *t, const struct raw *raw, struct trace_event *event)
{
        uint32_t process = event->process, large = large_cache(t);
        struct trace_object *object;

        if (large == TRACE_NO_CACHE ||
            (raw->from != raw->address && !end_stale(t, raw->address, &event)))
                return false;
        object = trace_objects_find(&t->objects, process, raw->from);
        event->kind = object ? TRACE_RESIZE : TRACE_ALLOC;
        if (!object)
                return begin_object(t, raw, large, event);
        object->bytes = event->bytes = raw->bytes;
        event->object = object->number;
        event->cache = object->cache;
        if (raw->from != raw->address)
                trace_objects_move(&t->objects, object, raw->address);
        return true;
}

static bool make_event(struct trace *t, uint32_t stream, struct trace_event *event)
{
        const struct reader *r = &t->readers[stream];

        memset(event, 0, sizeof *event);
        event->at_ns = r->raw.at_ns - t->begin_ns;
        event->process = t->file.streams[stream].process;
        event->thread = r->thread;
        event->cpu = r->cpu;
        event->stack = r->raw.stack;
        switch (r->raw.tag & STOOK_TRACE_KIND) {
        case STOOK_TRACE_ALLOC:
                return on_alloc(t, r, event);
        case STOOK_TRACE_FREE:
                return on_free(t, &r->raw, event);
        default:
                return on_resize(t, &r->raw, event);
        }
}

int trace_next(struct trace *t, struct trace_event *event)
{
        int got;

        if (t->failed)
                return -1;
        if (t->has_after) {
                t->has_after = false;
                *event = t->after;
                return 1;
        }
        got = settle(t);
        if (got > 0)
                got = make_event(t, t->heap[0], event) ? drop_top(t) : -1;
        t->failed = got < 0;
        return got;
}

/* ---- open and close ---- */

static bool start(struct trace *t)
{
        size_t n = t->file.stream_count;

        t->readers = calloc(n, sizeof *t->readers);
        t->heap = calloc(n, sizeof *t->heap);
        if (!t->readers || !t->heap)
                return trace_file_no_memory(&t->file);
        t->begin_ns = UINT64_MAX;
        for (size_t i = 0; i < n; i++) {
                struct reader *r = &t->readers[i];

                r->block = t->file.streams[i].first;
                r->raw.at_ns = t->file.blocks[r->block].at_ns;
                r->raw.tag = STOOK_TRACE_FREE;          /* so that it is loaded in time */
                t->heap[t->heap_count++] = (uint32_t)i;
                if (r->raw.at_ns < t->begin_ns)
                        t->begin_ns = r->raw.at_ns;
        }
        for (size_t i = n / 2 + 1; i--;)
                if (i < n)
                        sift_down(t, i);
        return true;
}

struct trace *trace_open(const char *path, char *message, size_t bytes)
{
        struct trace *t = calloc(1, sizeof *t);

        if (!t) {
                snprintf(message, bytes, "%s: no memory to read it", path);
                return NULL;
        }
        if (trace_file_open(&t->file, path, t->message, sizeof t->message) && start(t))
                return t;
        snprintf(message, bytes, "%s", t->message);
        trace_close(t);
        return NULL;
}

void trace_close(struct trace *t)
{
        for (size_t i = 0; t->readers && i < t->file.stream_count; i++)
                unload(&t->readers[i]);
        trace_file_release(&t->file);
        trace_objects_release(&t->objects);
        trace_stacks_release(&t->stacks);
        free(t->readers);
        free(t->heap);
        free(t->caches);
        free(t);
}

const char *trace_message(const struct trace *t)
{
        return t->message;
}

const struct trace_damage *trace_damage(const struct trace *t)
{
        return &t->file.damage;
}

uint64_t trace_is_cut(const struct trace *t)
{
        return t->file.cut;
}

size_t trace_process_count(const struct trace *t)
{
        return t->file.process_count;
}

const struct trace_process *trace_process(const struct trace *t, uint32_t process)
{
        return &t->file.processes[process];
}

size_t trace_cache_count(const struct trace *t)
{
        return t->cache_count;
}

const struct trace_cache *trace_cache(const struct trace *t, uint32_t cache)
{
        return &t->caches[cache];
}

const struct trace_stacks *trace_stacks(const struct trace *t)
{
        return &t->stacks;
}
