/*
 * Purpose: objects in use that nothing leads to; see heap_search.h. As src/inspect/leak_mark.c, but
 * from outside: a bit for each object that is in use, another for each that was reached.
 * What is a debugged object's state is read from behind it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/heap/heap_inside.h"
#include "cli/heap/heap_object.h"
#include "cli/heap/heap_search.h"
#include "debug/debug_inside.h"

struct work {
        uint64_t start, bytes;
};

struct marking {
        struct heap *h;
        uint64_t *live, *reached;       /* [part_count]: of slabs */
        uint8_t  *large;                /* [span_count]: LARGE_* */
        struct work *work;              /* reached, and not yet searched */
        size_t    work_count;
        uint64_t  low, high;            /* of all spans */
        bool      no_memory;
};

enum { LARGE_LIVE = 1, LARGE_REACHED = 2 };

/* ---- marks ---- */

static void push(struct marking *m, uint64_t start, uint64_t bytes)
{
        if (!heap_more((void **)&m->work, m->work_count, sizeof *m->work))
                m->no_memory = true;
        else
                m->work[m->work_count++] = (struct work){ start, bytes };
}

static void follow_large(struct marking *m, uint64_t address)
{
        const struct heap_span *span = heap_span_at(m->h, address);
        size_t i = span ? (size_t)(span - m->h->spans) : 0;

        if (!span || m->large[i] != LARGE_LIVE)
                return;
        m->large[i] |= LARGE_REACHED;
        push(m, span->start, span->bytes);
}

/* The bit of the object that @address lies in: of word *@part. 0: it lies in none. */
static uint64_t bit_of(const struct marking *m, uint64_t address, size_t *part, uint64_t *start)
{
        const struct heap_slab *s = heap_slab_at(m->h, address);
        const struct heap_cache *c = s ? heap_cache_of(m->h, s->cache) : NULL;
        uint64_t index = c ? (address - s->start) / c->cache.slabs.stride : 0;

        if (!c || index >= s->objects)
                return 0;
        *part = s->first + index / STOOK_PART_OBJECTS;
        *start = s->start + index * c->cache.slabs.stride;
        return UINT64_C(1) << index % STOOK_PART_OBJECTS;
}

static void follow(struct marking *m, uint64_t address)
{
        uint64_t start, bit;
        size_t part;

        bit = bit_of(m, address, &part, &start);
        if (!bit) {
                follow_large(m, address);
        } else if (m->live[part] & ~m->reached[part] & bit) {
                m->reached[part] |= bit;
                push(m, start, heap_cache_of(m->h, heap_slab_at(m->h, start)->cache)
                                       ->cache.object_size);
        }
}

static void follow_all(const struct heap_words *words, void *data)
{
        struct marking *m = data;

        for (size_t i = 0; i < words->count; i++)
                if (words->word[i] - m->low < m->high - m->low)
                        follow(m, words->word[i]);
}

static void follow_work(struct marking *m)
{
        while (m->work_count && !m->no_memory) {
                struct work work = m->work[--m->work_count];

                heap_each_of(m->h, work.start, work.bytes, follow_all, m);
        }
}

/* ---- what is in use ---- */

static void take_out_cached(struct marking *m)
{
        uint64_t start, bit;
        size_t part;

        for (size_t i = 0; i < m->h->object_count; i++)
                if ((bit = bit_of(m, m->h->objects[i], &part, &start)))
                        m->live[part] &= ~bit;
}

/* What waits for readers, or is of a heap of the program, is a root. */
static void look_at_slab(struct marking *m, const struct heap_slab *s, const struct heap_cache *c)
{
        bool debugged = c->cache.debug_modes;
        struct stook_debug debug = { 0 };
        uint32_t state = STOOK_STATE_LIVE;

        if (debugged && heap_copy(m->h, c->seldom.debug, &debug, sizeof debug))
                debugged = false;
        for (unsigned i = 0; i < s->objects && (debugged || c->cache.slabs.of_heap); i++) {
                uint64_t *live = &m->live[s->first + i / STOOK_PART_OBJECTS];
                uint64_t bit = UINT64_C(1) << i % STOOK_PART_OBJECTS;
                uint64_t at = s->start + (uint64_t)i * c->cache.slabs.stride;

                if (!(*live & bit))
                        continue;
                if (debugged && memory_read(m->h->memory, at + (uint64_t)debug.tail, &state,
                                            sizeof state))
                        state = 0;
                if (state == STOOK_STATE_WAITING ||
                    (state == STOOK_STATE_LIVE && c->cache.slabs.of_heap))
                        follow(m, at);
                if (state != STOOK_STATE_LIVE || (debugged && !i))
                        *live &= ~bit;
        }
}

static void look_at_large(struct marking *m, size_t i)
{
        const struct heap_span *span = &m->h->spans[i];
        uint64_t last = span->start + span->bytes - 1;
        struct heap_object o;

        if (span->kind != STOOK_SPAN_LARGE || !heap_object_at(m->h, last, &o) ||
            o.state != HEAP_LIVE)
                return;
        m->large[i] = LARGE_LIVE;
        if (o.of_heap)
                follow_large(m, span->start);
}

static void find_live(struct marking *m)
{
        const struct heap *h = m->h;

        for (size_t i = 0; i < h->part_count; i++)
                m->live[i] = ~h->parts[i].bits & h->parts[i].objects;
        take_out_cached(m);
        for (size_t i = 0; i < h->slab_count; i++)
                if (heap_cache_of(h, h->slabs[i].cache))
                        look_at_slab(m, &h->slabs[i], heap_cache_of(h, h->slabs[i].cache));
        for (size_t i = 0; i < h->span_count; i++)
                look_at_large(m, i);
}

/* ---- what was lost ---- */

static int add(struct marking *m, struct heap_leaks *leaks, uint64_t at)
{
        struct heap_object o;

        if (!heap_object_at(m->h, at, &o) || o.state != HEAP_LIVE)
                return 0;
        if (!heap_more((void **)&leaks->lost, leaks->count, sizeof *leaks->lost))
                return -ENOMEM;
        leaks->lost[leaks->count++] = (struct heap_lost){
                .start = o.start, .bytes = o.requested ? o.requested : o.bytes,
                .at_ms = o.allocated.at_ms, .stack = o.allocated.stack,
                .cache = (uint16_t)(o.cache ? o.cache->cache.index : 0),
        };
        return 0;
}

static int by_start(const void *a, const void *b)
{
        const struct heap_lost *x = a, *y = b;

        return x->start < y->start ? -1 : x->start > y->start;
}

static int collect(struct marking *m, struct heap_leaks *leaks)
{
        const struct heap *h = m->h;
        int error = 0;

        for (size_t i = 0; i < h->slab_count; i++) {
                const struct heap_slab *s = &h->slabs[i];
                const struct heap_cache *c = heap_cache_of(h, s->cache);
                uint64_t stride = c ? c->cache.slabs.stride : 0;

                for (unsigned p = 0; c && p < s->parts; p++) {
                        uint64_t lost = m->live[s->first + p] & ~m->reached[s->first + p];

                        leaks->live += (unsigned)__builtin_popcountll(m->live[s->first + p]);
                        for (; lost && !error; lost &= lost - 1)
                                error = add(m, leaks, s->start + stride * (p * STOOK_PART_OBJECTS +
                                                (unsigned)__builtin_ctzll(lost)));
                }
        }
        for (size_t i = 0; i < h->span_count && !error; i++) {
                leaks->live += m->large[i] & LARGE_LIVE;
                if (m->large[i] == LARGE_LIVE)
                        error = add(m, leaks, h->spans[i].start + h->spans[i].bytes - 1);
        }
        if (leaks->count)
                qsort(leaks->lost, leaks->count, sizeof *leaks->lost, by_start);
        return error;
}

int heap_find_leaks(struct heap *h, struct heap_leaks *leaks)
{
        struct marking m = {
                .h = h,
                .live = calloc(h->part_count + 1, sizeof *m.live),
                .reached = calloc(h->part_count + 1, sizeof *m.reached),
                .large = calloc(h->span_count + 1, 1),
        };
        int error = m.live && m.reached && m.large ? 0 : -ENOMEM;

        *leaks = (struct heap_leaks){ 0 };
        if (!error && h->span_count) {
                m.low = h->spans[0].start;
                m.high = h->spans[h->span_count - 1].start + h->spans[h->span_count - 1].bytes;
                find_live(&m);
                error = heap_each_root(h, follow_all, &m);
                follow_work(&m);
                if (m.no_memory)
                        error = -ENOMEM;
                if (!error)
                        error = collect(&m, leaks);
        }
        free(m.live);
        free(m.reached);
        free(m.large);
        free(m.work);
        return error;
}
