/*
 * Purpose: see heap_object.h. What debug modes know of an object lies beside it; what is known of
 * one that is a sample, where its span leads to.
 */
#include "cli/heap/heap_object.h"

#include "cli/heap/heap_inside.h"
#include "debug/debug_inside.h"
#include "profile/profile.h"

const char *heap_object_state_text(enum heap_object_state state)
{
        static const char *const texts[] = {
                [HEAP_LIVE] = "in use",
                [HEAP_CACHED] = "free, in a sheaf",
                [HEAP_FREE] = "free, in its slab",
                [HEAP_WAITING] = "freed by RCU, waits for readers",
                [HEAP_QUARANTINED] = "freed, in the quarantine",
                [HEAP_ISOLATED] = "isolated by a report, or in the hands of a call",
                [HEAP_DAMAGED] = "damaged: what says its state was overwritten",
                [HEAP_NEVER] = "never handed out: it has the state of the next object",
        };

        return texts[state];
}

unsigned heap_stack(struct memory *memory, const struct stook_root *root, uint32_t number,
                    uint64_t frames[STOOK_STACK_FRAMES_MOST], uint32_t *modules)
{
        size_t offset = number % STOOK_STACK_UNITS * STOOK_STACK_UNIT;
        uint32_t i = number / STOOK_STACK_UNITS;
        struct stook_stack head;
        uint64_t block;

        *modules = 0;
        if (!number || i >= STOOK_STACK_BLOCKS ||
            memory_read(memory, (uint64_t)(uintptr_t)&root->stack_blocks[i], &block,
                        sizeof block) || !block ||
            memory_read(memory, block + offset, &head, sizeof head) ||
            head.count > STOOK_STACK_FRAMES_MOST ||
            memory_read(memory, block + offset + sizeof head, frames,
                        head.count * sizeof *frames))
                return 0;
        *modules = head.modules;
        return head.count;
}

/* ---- what debug modes and samples know ---- */

static enum heap_object_state state_of(uint32_t state)
{
        switch (state) {
        case STOOK_STATE_FREE:
                return HEAP_FREE;
        case STOOK_STATE_LIVE:
                return HEAP_LIVE;
        case STOOK_STATE_WAITING:
                return HEAP_WAITING;
        case STOOK_STATE_QUARANTINED:
                return HEAP_QUARANTINED;
        case STOOK_STATE_ISOLATED:
                return HEAP_ISOLATED;
        default:
                return HEAP_DAMAGED;
        }
}

/* The object is out of its slab, and has a tail, of a debugged cache. */
static void read_tail(struct heap *h, struct heap_object *o, uint64_t flags, uint64_t at)
{
        struct stook_debug_tail tail = { 0 };

        if (memory_read(h->memory, at, &tail, stook_tail_bytes(flags)))
                return;
        o->state = state_of(tail.state);
        if (o->state == HEAP_DAMAGED)
                return;
        o->requested = o->cache ? tail.requested : tail.word;
        o->allocated = tail.tracks[0];
        /* A free by RCU that was undone has left its track. */
        if (o->state != HEAP_LIVE)
                o->freed = tail.tracks[1];
}

static void read_debug(struct heap *h, struct heap_object *o)
{
        struct stook_debug debug;

        if (!o->cache->cache.debug_modes || o->state == HEAP_FREE ||
            heap_copy(h, o->cache->seldom.debug, &debug, sizeof debug))
                return;
        if (!o->index)
                o->state = HEAP_NEVER;
        else
                read_tail(h, o, debug.flags, o->start + debug.tail);
}

/* Of a large object, or of one of malloc's classes that is a sample. */
static void read_sample(struct heap *h, struct heap_object *o, const struct stook_span *span)
{
        struct stook_profile_life life;

        if (!span->use.sample || heap_copy(h, span->use.sample, &life, sizeof life))
                return;
        o->requested = life.bytes;
        o->allocated = (struct stook_report_track){ life.thread, life.stack,
                                                    life.born / 1000000 };
}

/* ---- which object ---- */

static bool find_large(struct heap *h, const struct heap_span *at, struct heap_object *o)
{
        struct stook_span span;
        uint64_t flags;

        if (at->kind != STOOK_SPAN_LARGE ||
            memory_read(h->memory, at->descriptor, &span, sizeof span) ||
            stook_span_kind_of(&span) != STOOK_SPAN_LARGE || span.start != at->start)
                return false;
        o->start = span.start + span.use.lead;
        o->bytes = span.bytes - span.use.lead;
        o->of_heap = span.use.heap;
        read_sample(h, o, &span);
        if (!heap_copy(h, h->library->root.large_debug, &flags, sizeof flags) && flags) {
                if (!span.use.lead)
                        o->bytes -= stook_tail_bytes(flags);
                read_tail(h, o, flags, span.use.lead ? span.start : o->start + o->bytes);
        } else if (span.use.slack < span.bytes) {
                o->bytes -= span.use.slack;
        }
        return true;
}

static void find_sheaf(const struct heap *h, struct heap_object *o)
{
        for (size_t i = 0; i < h->sheaf_count && o->state == HEAP_LIVE; i++)
                for (unsigned k = 0; k < h->sheaves[i].size; k++)
                        if (h->objects[h->sheaves[i].first + k] == o->start) {
                                o->sheaf = &h->sheaves[i];
                                o->state = HEAP_CACHED;
                        }
}

static bool find_in_slab(struct heap *h, const struct heap_slab *s, uint64_t address,
                         struct heap_object *o)
{
        const struct heap_part *part;

        o->cache = heap_cache_of(h, s->cache);
        if (!o->cache)
                return false;
        o->slab = s;
        o->index = (uint32_t)((address - s->start) / o->cache->cache.slabs.stride);
        if (o->index >= s->objects)
                return false;
        part = &h->parts[s->first + o->index / STOOK_PART_OBJECTS];
        o->start = s->start + (uint64_t)o->index * o->cache->cache.slabs.stride;
        o->bytes = o->cache->cache.object_size;
        o->of_heap = o->cache->cache.slabs.of_heap;
        if (part->bits >> o->index % STOOK_PART_OBJECTS & 1)
                o->state = HEAP_FREE;
        find_sheaf(h, o);
        read_debug(h, o);
        return true;
}

bool heap_object_at(struct heap *h, uint64_t address, struct heap_object *o)
{
        const struct heap_slab *slab = heap_slab_at(h, address);
        const struct heap_span *span = heap_span_at(h, address);

        *o = (struct heap_object){ .state = HEAP_LIVE };
        if (slab)
                return find_in_slab(h, slab, address, o);
        return span && find_large(h, span, o) && address >= o->start;
}
