/*
 * Purpose: all slabs and large objects of a heap go back to the pages, whatever is alive.
 * Place: called by heap_end.c; calls slab for the states of parts, pages for the descriptors.
 * Invariants (S1 to S9 are those of slab/slab_state.h):
 *  I1 a part becomes released, with all bits set, by one compare-and-swap under its list's lock,
 *     and only from a state without a claim. So what frees an object beside it either has freed it
 *     before, or finds its bit set (S6), or the part released (S7).
 *  I2 a slab of which a part was released here is this call's: no other thread finds it empty, for
 *     that wants all parts listed or claimed. One whose parts were all found released is another
 *     thread's, which has it in hands.
 *  I3 a claim is owned by a thread that lists the part once it has the lock (S2). Then the part is
 *     released here.
 * Concurrency: the registry mutex is held, so no cache begins or ends, and the heap's caches are
 *  closed, so no slab of them is made. Frees beside the call are misuse; they find what I1 says.
 *  M1: the acquire of a span's kind, as of slab_objects.c.
 */
#include "cache/cache_watch.h"
#include "heap/heaps.h"
#include "os/os.h"
#include "pages/purge.h"
#include "slab/slab_inside.h"

/* Looks at a claim that its owner does not settle, with a pause after each. */
#define TRIES    100
#define PAUSE_NS 1000000

struct drop {
        struct stook_heap *heap;
        bool left;                      /* some slab could not be had */
};

enum dropped {
        DROPPED,                        /* by this call */
        DROPPED_BEFORE,
        DROP_CLAIMED,                   /* a thread has a claim on the part: nothing changed */
};

/* The list's lock is held. @objects: raised by those that were out. */
static enum dropped drop_part(struct stook_slab *slab, unsigned p, size_t *objects)
{
        struct stook_pair *part = stook_slab_part(slab, p);
        struct stook_pair old = stook_pair_read(part), new;

        do {
                if (old.lo & STOOK_PART_RELEASED)
                        return DROPPED_BEFORE;
                if (old.lo & STOOK_PART_CLAIM)
                        return DROP_CLAIMED;
                new.hi = ~UINT64_C(0);
                new.lo = (old.lo & ~STOOK_PART_FLAGS) | STOOK_PART_RELEASED;
        } while (!stook_part_cas(slab->slabs, part, &old, new));                        /* I1 */
        *objects += stook_popcount(stook_part_objects(slab, p) & ~old.hi);
        return DROPPED;
}

/* Held: false: parts with claims are left. *@mine: I2. */
static bool drop_parts(struct stook_slab *slab, bool *mine, size_t *objects)
{
        bool all = true;

        for (unsigned p = 0; p < slab->part_count; p++) {
                enum dropped dropped = drop_part(slab, p, objects);

                *mine |= dropped == DROPPED;
                all &= dropped != DROP_CLAIMED;
        }
        return all;
}

static bool is_slab_of(struct stook_span *span, const struct stook_slabs *slabs)
{
        return __atomic_load_n(&span->kind, __ATOMIC_ACQUIRE) == STOOK_SPAN_SLAB &&     /* M1 */
               __atomic_load_n(&stook_slab_of(span)->slabs, __ATOMIC_RELAXED) == slabs;
}

/* False: a claim is not settled, or the lock is not to be had. */
static bool drop_slab(struct stook_slabs *slabs, struct stook_span *span)
{
        struct stook_slab *slab = stook_slab_of(span);
        struct stook_slabs_node *node = stook_slab_node(slab);
        struct stook_slab_hold hold;
        bool mine = false, all = false;
        size_t objects = 0;

        for (unsigned tries = 0; !all && tries < TRIES; tries++) {
                if (tries)
                        stook_os_pause(PAUSE_NS);
                if (!stook_slab_hold_long(&hold, slabs, node))
                        break;
                all = !is_slab_of(span, slabs) || drop_parts(slab, &mine, &objects);
                if (all && mine)
                        stook_slab_bury(&hold, slab);
                stook_slab_unhold(&hold);
        }
        stook_count(slabs->counters, STOOK_STAT_free_slowpath, objects);
        return all;
}

static bool is_large_of(const struct stook_span *span, const struct stook_heap *heap)
{
        return __atomic_load_n(&span->use.heap, __ATOMIC_RELAXED) == heap;
}

/*
 * The descriptor may serve another object by now. Then it is that one's which was ended for a
 * moment, and it lives again.
 */
static void drop_large(struct stook_heap *heap, struct stook_span *span)
{
        if (!is_large_of(span, heap) || !stook_large_end(span))
                return;
        if (STOOK_LIKELY(is_large_of(span, heap))) {
                stook_large_give(span, 0);
                return;
        }
        __atomic_store_n(&span->kind, STOOK_SPAN_LARGE, __ATOMIC_RELEASE);
        __atomic_fetch_add(&stook_large_count, 1, __ATOMIC_RELAXED);
}

static void visit(struct stook_span *span, void *data)
{
        struct drop *drop = data;
        uint8_t kind = __atomic_load_n(&span->kind, __ATOMIC_ACQUIRE);                  /* M1 */
        struct stook_slabs *slabs;

        if (kind == STOOK_SPAN_SLAB) {
                slabs = __atomic_load_n(&stook_slab_of(span)->slabs, __ATOMIC_RELAXED);
                if (slabs->of_heap && stook_cache_heaps[slabs->cache_index] == drop->heap)
                        drop->left |= !drop_slab(slabs, span);
        } else if (kind == STOOK_SPAN_LARGE) {
                if (STOOK_UNLIKELY(stook_large_options.watched) && is_large_of(span, drop->heap))
                        stook_watch_duties.large_free(span, 0);
                drop_large(drop->heap, span);   /* also what the watch would keep, at fault */
        }
}

bool stook_heap_drop(struct stook_heap *heap)
{
        struct drop drop = { .heap = heap };

        stook_heap_for_each_span(heap, visit, &drop);
        stook_pages_purge_excess();
        if (drop.left)
                return false;
        stook_heap_forget_all(heap);
        return true;
}
