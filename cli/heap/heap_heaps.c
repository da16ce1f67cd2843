/*
 * Purpose: the heaps that the program made; see heap.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/heap/heap_inside.h"
#include "heap/heaps.h"

static void add_caches(const struct heap *h, const struct stook_heap *from, struct heap_heap *to)
{
        for (unsigned class = 0; class < STOOK_CLASSES; class++) {
                const struct heap_cache *c = from->index[class]
                                                     ? heap_cache_of(h, from->index[class]) : NULL;

                if (!c)
                        continue;
                to->caches++;
                to->objects_live += c->stats.objects_live;
        }
}

static int add_heap(struct heap *h, const struct stook_heap *from, uint64_t address)
{
        struct heap_heap *p;

        if (!heap_more((void **)&h->heaps, h->heap_count, sizeof *h->heaps))
                return -ENOMEM;
        p = &h->heaps[h->heap_count++];
        *p = (struct heap_heap){
                .address = address, .bytes = from->bytes, .peak_bytes = from->peak,
                .limit_bytes = from->limit, .large_bytes = from->large_bytes,
                .refusals = from->refusals, .spilled = from->spilled, .group = from->group,
                .ending = from->state == STOOK_HEAP_ENDING,
        };
        memcpy(p->name, from->name, sizeof p->name);
        p->name[sizeof p->name - 1] = 0;
        add_caches(h, from, p);
        return 0;
}

int heap_read_heaps(struct heap *h)
{
        struct heap_circle circle = { 0 };
        struct stook_heap *at, *heap = aligned_alloc(STOOK_CACHELINE, sizeof *heap);
        int error = heap ? heap_copy(h, h->library->root.heaps, &at, sizeof at) : -ENOMEM;

        while (!error && at) {
                if (heap_in_circle(&circle, (uint64_t)(uintptr_t)at))
                        error = -EBADMSG;
                else
                        error = heap_copy(h, at, heap, sizeof *heap);
                if (!error && heap->state != STOOK_HEAP_FREE)
                        error = add_heap(h, heap, (uint64_t)(uintptr_t)at);
                if (!error)
                        at = heap->next;
        }
        free(heap);
        return error;
}
