/*
 * Purpose: all spans of a heap, descriptor by descriptor: slabs and which of their objects are out,
 * large objects, free pages; see heap.h.
 * A descriptor may serve another span from one read to the next. One that makes no sense is noted,
 * and passed over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/heap/heap_inside.h"

/* ---- one slab ---- */

/* Index of the cache whose slabs are at @slabs in the process; 0: none. */
static unsigned cache_of_slabs(const struct heap *h, const struct stook_slabs *slabs)
{
        uint64_t at = (uint64_t)(uintptr_t)slabs - offsetof(struct stook_cache, slabs);
        uint64_t base = h->caches[0].address -
                        (uint64_t)h->caches[0].cache.index * sizeof(struct stook_cache);

        if (at - base >= STOOK_CACHES_MAX * sizeof(struct stook_cache) ||
            (at - base) % sizeof(struct stook_cache))
                return 0;
        return (unsigned)((at - base) / sizeof(struct stook_cache));
}

static bool is_sound(const struct heap_cache *c, const struct stook_slab *slab,
                     const struct stook_span *span)
{
        return slab->objects && slab->objects <= STOOK_SLAB_OBJECTS_MAX &&
               slab->part_count == (slab->objects + STOOK_PART_OBJECTS - 1) / STOOK_PART_OBJECTS &&
               span->bytes <= UINT32_MAX &&
               (uint64_t)slab->objects * c->cache.slabs.stride <= span->bytes;
}

/* The parts of a slab: in its descriptor, or elsewhere. */
static int copy_parts(struct heap *h, const struct stook_span *span, const struct stook_slab *slab,
                      uint64_t descriptor, struct stook_pair *parts)
{
        const struct stook_pair *at = stook_slab_parts(slab);

        if ((uint64_t)(uintptr_t)at == descriptor + offsetof(struct stook_span, pair) &&
            slab->part_count <= STOOK_SPAN_PAIRS) {
                memcpy(parts, span->pair, slab->part_count * sizeof *parts);
                return 0;
        }
        return heap_copy(h, at, parts, slab->part_count * sizeof *parts);
}

static bool is_free(const struct heap *h, const struct heap_slab *s, size_t object)
{
        return h->parts[s->first + object / STOOK_PART_OBJECTS].bits >>
               object % STOOK_PART_OBJECTS & 1;
}

/* Pages of a slab on which objects lie, but none that is out. */
static uint64_t free_pages(const struct heap *h, const struct heap_slab *s, size_t stride)
{
        size_t page = h->library->root.page_bytes, i, last;
        uint64_t n = 0;

        if (s->out == s->objects)
                return 0;
        for (size_t at = 0; at < s->bytes && at / stride < s->objects; at += page) {
                last = (at + page - 1) / stride;
                if (last >= s->objects)
                        last = s->objects - 1;
                for (i = at / stride; i <= last && is_free(h, s, i); i++)
                        ;
                n += i > last;
        }
        return n;
}

static void count_slab(struct heap *h, struct heap_cache *c, const struct heap_slab *s)
{
        unsigned share = !s->out ? 0 : s->out == s->objects ? HEAP_SHARES - 1 :
                         1 + (s->out * 4u - 1) / s->objects;

        c->slabs_seen++;
        c->objects_out += s->out;
        c->shares[share]++;
        c->free_pages += free_pages(h, s, c->cache.slabs.stride);
        h->pages.space_bytes += s->bytes;
}

static int add_slab(struct heap *h, const struct stook_span *span, uint64_t descriptor)
{
        const struct stook_slab *slab = (const struct stook_slab *)(const void *)span->slab;
        unsigned index = cache_of_slabs(h, slab->slabs);
        struct heap_cache *c = index ? heap_cache_of(h, index) : NULL;
        struct stook_pair parts[STOOK_SLAB_PARTS];
        struct heap_slab *s;

        if (!c || !is_sound(c, slab, span) || copy_parts(h, span, slab, descriptor, parts))
                return heap_note(h, "a slab's descriptor makes no sense", span->start, index)
                        ? 0 : -ENOMEM;
        if (!heap_more((void **)&h->slabs, h->slab_count, sizeof *h->slabs))
                return -ENOMEM;
        s = &h->slabs[h->slab_count];
        *s = (struct heap_slab){
                .start = span->start, .descriptor = descriptor, .bytes = (uint32_t)span->bytes,
                .cache = (uint16_t)index, .objects = slab->objects, .node = slab->node,
                .parts = slab->part_count, .first = (uint32_t)h->part_count,
        };
        for (unsigned p = 0; p < slab->part_count; p++) {
                if (!heap_more((void **)&h->parts, h->part_count, sizeof *h->parts))
                        return -ENOMEM;
                h->parts[h->part_count++] = (struct heap_part){
                        parts[p].lo & STOOK_PART_FLAGS, parts[p].hi, stook_part_objects(slab, p) };
                s->out += (uint16_t)__builtin_popcountll(~parts[p].hi &
                                                         stook_part_objects(slab, p));
        }
        h->slab_count++;
        count_slab(h, c, s);
        return 0;
}

/* ---- all spans ---- */

static uint64_t resident(struct heap *h, const struct stook_span *span)
{
        return h->present ? memory_pages_resident(h->present, span->start, span->bytes) : 0;
}

static void add_free(struct heap *h, const struct stook_span *span)
{
        if (span->state == STOOK_SPAN_RESERVED)
                return;
        if (span->state == STOOK_SPAN_DIRTY) {
                h->pages.free_dirty_bytes += span->bytes;
                h->resident.dirty += resident(h, span);
        } else {
                h->pages.free_clean_bytes += span->bytes;
                h->resident.padding += resident(h, span);
        }
        h->pages.free_spans++;
        if (span->bytes > h->pages.largest_free_bytes)
                h->pages.largest_free_bytes = span->bytes;
}

static int note_span(struct heap *h, const struct stook_span *span, uint64_t descriptor)
{
        uint8_t kind = (uint8_t)stook_span_kind_of(span);
        uint64_t bytes = span->bytes;

        if (kind == STOOK_SPAN_UNUSED || h->detail < HEAP_SPANS)
                return 0;
        if (span->own_mapping && span->reserved > bytes)
                bytes = span->reserved;
        if (!heap_more((void **)&h->spans, h->span_count, sizeof *h->spans))
                return -ENOMEM;
        h->spans[h->span_count++] = (struct heap_span){ span->start, bytes, descriptor, kind };
        return 0;
}

static int add_span(struct heap *h, const struct stook_span *span, uint64_t descriptor)
{
        if (note_span(h, span, descriptor))
                return -ENOMEM;
        switch (stook_span_kind_of(span)) {
        case STOOK_SPAN_SLAB:
                h->resident.slabs += resident(h, span);
                return add_slab(h, span, descriptor);
        case STOOK_SPAN_LARGE:
                h->resident.large += resident(h, span);
                h->pages.large_bytes += span->bytes;
                h->pages.large_objects++;
                return 0;
        case STOOK_SPAN_FREE:
        case STOOK_SPAN_MOVING:
        case STOOK_SPAN_LOOSE:
                add_free(h, span);
                return 0;
        default:
                return 0;
        }
}

static int by_start(const void *a, const void *b)
{
        const struct heap_slab *x = a, *y = b;

        return x->start < y->start ? -1 : x->start > y->start;
}

struct heap_slab *heap_slab_at(const struct heap *h, uint64_t address)
{
        size_t low = 0, high = h->slab_count;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (h->slabs[middle].start <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (!low || address - h->slabs[low - 1].start >= h->slabs[low - 1].bytes)
                return NULL;
        return &h->slabs[low - 1];
}

static int span_by_start(const void *a, const void *b)
{
        const struct heap_span *x = a, *y = b;

        return x->start < y->start ? -1 : x->start > y->start;
}

struct heap_span *heap_span_at(const struct heap *h, uint64_t address)
{
        size_t low = 0, high = h->span_count;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (h->spans[middle].start <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (!low || address - h->spans[low - 1].start >= h->spans[low - 1].bytes)
                return NULL;
        return &h->spans[low - 1];
}

/* Slabs that only sheaves keep. */
static void find_pinned(struct heap *h)
{
        for (size_t i = 0; i < h->object_count; i++) {
                struct heap_slab *s = heap_slab_at(h, h->objects[i]);

                if (s)
                        s->cached++;
        }
        for (size_t i = 0; i < h->slab_count; i++) {
                const struct heap_slab *s = &h->slabs[i];
                struct heap_cache *c = heap_cache_of(h, s->cache);

                if (s->out && s->cached >= s->out) {
                        c->pinned_slabs++;
                        c->pinned_bytes += s->bytes;
                }
        }
}

int heap_read_slabs(struct heap *h)
{
        struct heap_circle circle = { 0 };
        struct stook_span_block block;
        struct stook_link *at;
        int error = heap_copy(h, h->library->root.span_blocks, &at, sizeof at);

        while (!error && at && h->cache_count) {
                uint64_t spans = (uint64_t)(uintptr_t)at + offsetof(struct stook_span_block, span);

                error = heap_copy(h, at, &block, sizeof block);
                for (unsigned i = 0; i < STOOK_SPAN_BLOCK && !error; i++)
                        error = add_span(h, &block.span[i], spans + i * sizeof block.span[0]);
                if (heap_in_circle(&circle, (uint64_t)(uintptr_t)at))
                        error = -EBADMSG;
                at = block.link.next;
        }
        if (h->slab_count)
                qsort(h->slabs, h->slab_count, sizeof *h->slabs, by_start);
        if (h->span_count)
                qsort(h->spans, h->span_count, sizeof *h->spans, span_by_start);
        if (!error && h->detail >= HEAP_OBJECTS)
                find_pinned(h);
        return error;
}
