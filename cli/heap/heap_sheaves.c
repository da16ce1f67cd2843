/*
 * Purpose: all sheaves of a heap, run by run, and what their words say of each cache.
 * A sheaf's word is read once: it says how many objects the sheaf has, and how many were popped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/heap/heap_inside.h"

#define RUN_BYTES_MAX ((size_t)1 << 20) /* twice what the largest sheaf takes */

static bool add_objects(struct heap *h, struct heap_sheaf *s, const struct stook_sheaf *from)
{
        s->first = (uint32_t)h->object_count;
        for (unsigned i = 0; i < s->size; i++) {
                if (!heap_more((void **)&h->objects, h->object_count, sizeof *h->objects))
                        return false;
                h->objects[h->object_count++] = (uint64_t)(uintptr_t)from->objects[i];
        }
        return true;
}

static void count(struct heap *h, const struct heap_sheaf *s)
{
        struct heap_cache *c = heap_cache_of(h, s->cache);
        uint64_t pops = stook_word_pops(s->word);

        if (!c)
                return;
        if (s->rcu) {
                c->stats.free_rcu_sheaf += s->size;
        } else {
                c->stats.alloc_fastpath += pops;
                c->stats.free_fastpath += s->size + pops - (uint64_t)s->moved;
        }
        c->stats.objects_cached += s->size;
        c->stats.sheaves++;
}

static int add_sheaf(struct heap *h, uint64_t address, const struct stook_sheaf *from, size_t room)
{
        struct heap_sheaf *s;

        if (!from->cache_index)
                return 0;
        if (!heap_more((void **)&h->sheaves, h->sheaf_count, sizeof *h->sheaves))
                return -ENOMEM;
        s = &h->sheaves[h->sheaf_count++];
        memset(s, 0, sizeof *s);
        s->address = address;
        s->word = from->word;
        s->cache = from->cache_index;
        s->capacity = from->capacity;
        s->rcu = from->rcu_node & STOOK_SHEAF_RCU;
        s->moved = from->owned.moved_node >> STOOK_SHEAF_NODE_BITS;
        s->size = (uint16_t)from->word;
        if (s->size > s->capacity)
                s->size = s->capacity;
        if (s->size > room)
                s->size = (uint16_t)room;
        count(h, s);
        return h->detail < HEAP_OBJECTS || add_objects(h, s, from) ? 0 : -ENOMEM;
}

static int read_run(struct heap *h, const struct stook_sheaf_run *run, unsigned char *bytes)
{
        size_t all = (size_t)run->stride * run->sheaves;
        size_t room = (run->stride - sizeof(struct stook_sheaf)) / sizeof(void *);
        int error = 0;

        if (run->stride < sizeof(struct stook_sheaf) || run->stride % sizeof(void *) ||
            all > RUN_BYTES_MAX)
                return -EBADMSG;
        /* The last one ends before the line that keeps sheaves apart does. */
        all -= all >= STOOK_CACHELINE ? sizeof(struct stook_sheaf) / 2 : 0;
        error = heap_copy(h, run->memory, bytes, all);
        for (uint32_t i = 0; i < run->sheaves && !error; i++) {
                size_t at = (size_t)i * run->stride;

                error = add_sheaf(h, (uint64_t)(uintptr_t)run->memory + at,
                                  (const struct stook_sheaf *)(bytes + at), room);
        }
        return error;
}

static int by_address(const void *a, const void *b)
{
        const struct heap_sheaf *x = a, *y = b;

        return x->address < y->address ? -1 : x->address > y->address;
}

int heap_read_sheaves(struct heap *h)
{
        struct heap_circle circle = { 0 };
        struct stook_sheaf_run *at, run;
        unsigned char *bytes = malloc(RUN_BYTES_MAX);
        int error = bytes ? heap_copy(h, h->library->root.sheaf_runs, &at, sizeof at) : -ENOMEM;

        while (!error && at) {
                error = heap_copy(h, at, &run, sizeof run);
                if (!error)
                        error = read_run(h, &run, bytes);
                if (heap_in_circle(&circle, (uint64_t)(uintptr_t)at))
                        error = -EBADMSG;
                at = run.next;
        }
        free(bytes);
        if (h->sheaf_count)
                qsort(h->sheaves, h->sheaf_count, sizeof *h->sheaves, by_address);
        return error;
}

struct heap_sheaf *heap_sheaf_at(const struct heap *h, uint64_t address)
{
        struct heap_sheaf key = { .address = address };

        return h->sheaf_count ? bsearch(&key, h->sheaves, h->sheaf_count, sizeof key, by_address)
                              : NULL;
}
