/*
 * Purpose: from lines of the kernel's slab events to allocations and frees; see replay_kmem.h.
 *
 * Lines are sorted by time first: bpftrace prints those of one CPU together. Equal times stay in
 * the order of the lines.
 *
 * Some kernels (6.12) name no cache in kmem_cache_alloc, but do in kmem_cache_free. So an
 * allocation without a name has that of its object's free; or, without one in the trace, the name
 * of all frees of objects of its size, if it is one; or it goes by its size.
 *
 * What kmalloc takes from the page allocator is replayed as a large object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <stook/cache.h>
#include "cli/replay/replay_kmem.h"
#include "cli/trace/trace_objects.h"

#define KMALLOC_SLAB_MAX 8192           /* the kernel's, with pages of 4 KiB */
#define SEVERAL          UINT32_MAX     /* no name */

static int by_time(const void *a, const void *b)
{
        const struct kmem_line *x = a, *y = b;

        if (x->at_ns != y->at_ns)
                return x->at_ns < y->at_ns ? -1 : 1;
        return x->number < y->number ? -1 : 1;
}

static void sort(struct kmem_lines *l)
{
        for (size_t i = 1; i < l->count; i++)
                if (l->lines[i].at_ns < l->lines[i - 1].at_ns) {
                        qsort(l->lines, l->count, sizeof *l->lines, by_time);
                        return;
                }
}

/* ---- names of allocations that have none ---- */

struct sizes {
        struct {
                uint64_t bytes;
                uint32_t name;          /* or SEVERAL */
        } *size;
        size_t count, room;
};

/* False: no memory. */
static bool note_size(struct sizes *s, uint64_t bytes, uint32_t name)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->size[i].bytes == bytes) {
                        if (s->size[i].name != name)
                                s->size[i].name = SEVERAL;
                        return true;
                }
        if (s->count == s->room) {
                size_t room = s->room ? s->room * 2 : 64;
                void *grown = reallocarray(s->size, room, sizeof *s->size);

                if (!grown)
                        return false;
                s->size = grown;
                s->room = room;
        }
        s->size[s->count].bytes = bytes;
        s->size[s->count++].name = name;
        return true;
}

static uint32_t name_of_size(const struct sizes *s, uint64_t bytes)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->size[i].bytes == bytes && s->size[i].name != SEVERAL)
                        return s->size[i].name;
        return 0;
}

static bool lacks_name(const struct kmem_line *line)
{
        return line->kind == KMEM_CACHE_ALLOC && line->address && !line->name;
}

/* One line: an allocation waits for its free, with its place among the lines. */
static bool match(struct kmem_lines *l, size_t i, struct trace_objects *living,
                  struct sizes *sizes)
{
        const struct kmem_line *line = &l->lines[i];
        struct trace_object *object = trace_objects_find(living, 0, line->address);
        struct trace_object waits = { .address = line->address, .bytes = i };

        if (object && line->kind == KMEM_FREE && line->name) {
                struct kmem_line *alloc = &l->lines[object->bytes];

                alloc->name = line->name;
                if (!note_size(sizes, alloc->bytes, line->name))
                        return false;
        }
        if (object && !trace_objects_remove(living, object))
                return false;
        return !lacks_name(line) || trace_objects_add(living, &waits, &waits.number);
}

/* False: no memory. */
static bool name_all(struct kmem_lines *l)
{
        struct trace_objects living = { 0 };
        struct sizes sizes = { 0 };
        bool fine = true;

        for (size_t i = 0; fine && i < l->count; i++)
                fine = match(l, i, &living, &sizes);
        for (size_t i = 0; fine && i < l->count; i++)
                if (lacks_name(&l->lines[i]))
                        l->lines[i].name = name_of_size(&sizes, l->lines[i].bytes);
        trace_objects_release(&living);
        free(sizes.size);
        return fine;
}

/* ---- what the lines mean ---- */

struct use {
        struct replay_list *list;
        const struct kmem_lines *lines;
        struct trace_objects living;
};

static bool add(struct use *u, const struct kmem_line *line, enum replay_kind kind,
                const struct trace_object *object)
{
        struct replay_event event = { .at_ns = line->at_ns - u->lines->lines[0].at_ns,
                                      .bytes = object->bytes, .object = (uint32_t)object->number,
                                      .cache = object->cache, .kind = kind };

        return replay_list_add(u->list, event, line->cpu);
}

static bool do_free(struct use *u, const struct kmem_line *line)
{
        struct trace_object *object = trace_objects_find(&u->living, 0, line->address);

        if (!line->address)
                u->list->frees_of_null++;
        else if (!object)
                u->list->frees_before++;
        else
                return add(u, line, REPLAY_FREE, object) &&
                       trace_objects_remove(&u->living, object);
        return true;
}

/* The kernel's names of kmalloc's caches: kmalloc-512, kmalloc-1k. */
static uint32_t cache_of(const struct use *u, const struct kmem_line *line)
{
        unsigned long long bytes = line->bytes;
        char name[KMEM_NAME_BYTES];

        if (line->kind == KMEM_KMALLOC && bytes >= 1024 && !(bytes % 1024))
                snprintf(name, sizeof name, "kmalloc-%lluk", bytes / 1024);
        else if (line->kind == KMEM_KMALLOC)
                snprintf(name, sizeof name, "kmalloc-%llu", bytes);
        else if (line->name)
                snprintf(name, sizeof name, "%s", u->lines->names[line->name - 1]);
        else
                snprintf(name, sizeof name, "size-%llu", bytes);
        return replay_list_cache(u->list, name, bytes);
}

static bool do_alloc(struct use *u, const struct kmem_line *line)
{
        struct trace_object object = { .address = line->address, .bytes = line->wanted,
                                       .cache = REPLAY_LARGE };

        if (!line->address) {
                u->list->failed++;
                return true;
        }
        if (trace_objects_find(&u->living, 0, line->address)) {
                u->list->frees_implied++;
                if (!do_free(u, line))
                        return false;
        }
        if (line->bytes <= (line->kind == KMEM_KMALLOC ? KMALLOC_SLAB_MAX : STOOK_OBJECT_MAX)) {
                object.cache = cache_of(u, line);
                if (object.cache == REPLAY_LARGE)
                        return false;
        }
        return trace_objects_add(&u->living, &object, &object.number) &&
               add(u, line, REPLAY_ALLOC, &object);
}

bool replay_use_kmem(struct replay_list *list, struct kmem_lines *lines, uint64_t *number)
{
        struct use u = { .list = list, .lines = lines };
        bool fine;

        sort(lines);
        fine = name_all(lines);
        for (size_t i = 0; fine && i < lines->count; i++) {
                *number = lines->lines[i].number;
                fine = lines->lines[i].kind == KMEM_FREE ? do_free(&u, &lines->lines[i]) :
                       do_alloc(&u, &lines->lines[i]);
        }
        trace_objects_release(&u.living);
        return fine;
}
