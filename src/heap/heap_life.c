/*
 * Purpose: the list of heaps, what each is and counts.
 * Place: API; calls cache for the registry, group, pages for memory.
 * Failure: as <stook/heap.h> says; a refusal changes nothing.
 */
#include <errno.h>
#include <string.h>

#include "gate/gate.h"
#include "group/group.h"
#include "heap/heaps.h"
#include "pages/meta.h"
#include "report/report.h"
#include "slab/slab_inside.h"

struct stook_heap *stook_heaps;
/* Registry mutex: those that are FREE. The next heap is the one that has been so longest. */
static struct stook_list idle_heaps = { &idle_heaps, &idle_heaps };

/* ---- bytes ---- */

static void note_peak(struct stook_heap *heap, uint64_t bytes)
{
        uint64_t peak = __atomic_load_n(&heap->peak, __ATOMIC_RELAXED);

        while (peak < bytes &&
               !__atomic_compare_exchange_n(&heap->peak, &peak, bytes, true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED))
                ;
}

bool stook_heap_take_bytes(struct stook_heap *heap, size_t bytes)
{
        uint64_t limit = __atomic_load_n(&heap->limit, __ATOMIC_RELAXED);
        uint64_t had = __atomic_load_n(&heap->bytes, __ATOMIC_RELAXED);

        do {
                if (STOOK_UNLIKELY(had > limit || bytes > limit - had))
                        return false;
        } while (!__atomic_compare_exchange_n(&heap->bytes, &had, had + bytes, true,
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        note_peak(heap, had + bytes);
        return true;
}

void stook_heap_give_bytes(struct stook_heap *heap, size_t bytes)
{
        __atomic_fetch_sub(&heap->bytes, bytes, __ATOMIC_RELAXED);
}

bool stook_heap_take_large(struct stook_heap *heap, size_t bytes)
{
        if (!stook_heap_take_bytes(heap, bytes))
                return false;
        __atomic_fetch_add(&heap->large_bytes, bytes, __ATOMIC_RELAXED);
        return true;
}

void stook_heap_give_large(struct stook_heap *heap, size_t bytes)
{
        __atomic_fetch_sub(&heap->large_bytes, bytes, __ATOMIC_RELAXED);
        stook_heap_give_bytes(heap, bytes);
}

static struct stook_heap *heap_of_slabs(struct stook_slabs *slabs)
{
        return stook_cache_heaps[slabs->cache_index];
}

/* The group's callback runs later, where the allocation has failed: heap_objects.c. */
static bool take_slab(struct stook_slabs *slabs, struct stook_span *span)
{
        struct stook_heap *heap = heap_of_slabs(slabs);

        if (!stook_heap_take_bytes(heap, span->bytes))
                return false;
        if (!heap->group || stook_group_charge(heap->group, span->bytes, STOOK_CHARGE_QUIET)) {
                if (STOOK_LIKELY(stook_heap_note_span(heap, span)))
                        return true;
                if (heap->group)
                        stook_group_uncharge(heap->group, span->bytes);
        }
        stook_heap_give_bytes(heap, span->bytes);
        return false;
}

static void slab_left(struct stook_slabs *slabs, struct stook_span *span)
{
        struct stook_heap *heap = heap_of_slabs(slabs);

        stook_heap_forget_span(heap, span);
        if (STOOK_UNLIKELY(heap->group != 0))
                stook_group_give_back(heap->group, span->bytes); /* few frames on the stack */
        stook_heap_give_bytes(heap, span->bytes);
}


static struct stook_slab *make_slab(struct stook_slabs *slabs, struct stook_span *span)
{
        struct stook_slab *slab;

        if (!take_slab(slabs, span))
                return NULL;
        slab = stook_slab_make(slabs, span);
        if (!slab)
                slab_left(slabs, span);
        return slab;
}

const struct stook_heap_duties stook_heap_duties = {
        .make_slab = make_slab,
        .slab_left = slab_left,
        .resize = stook_heap_resize_large,
        .left = stook_heap_large_left,
        .beside = stook_heap_beside,
};

/* ---- life ---- */

STOOK_COLD void stook_heap_report_destroyed(const struct stook_heap *heap)
{
        stook_report_about(&(struct stook_report_about){
                .fault = STOOK_FAULT_NOT_LIVE, .object = heap, .heap_name = heap->name,
                .detail = "a heap that was destroyed before" });
}

int stook_heap_lock(struct stook_heap *heap, const char *refusal)
{
        if (!stook_registry_lock(refusal))
                return -EDEADLK;
        if (stook_heap_is_live(heap))
                return 0;
        stook_registry_unlock();
        stook_heap_report_destroyed(heap);
        return -EINVAL;
}

void stook_heap_set_class(struct stook_heap *heap, unsigned class, struct stook_cache *cache)
{
        uintptr_t line = cache ? cache->front.line : stook_slots_first_line(STOOK_PRECHARGE_LINE);

        __atomic_store_n(&heap->index[class], cache ? (uint16_t)cache->index : 0,
                         __ATOMIC_RELEASE);                                             /* M2 */
        __atomic_store_n(&heap->line[class], line, __ATOMIC_RELEASE);                   /* M1 */
}

/* NULL: no memory. A heap of a new piece of memory is not listed yet. */
static struct stook_heap *take_heap(bool *new)
{
        struct stook_heap *heap;

        *new = stook_list_empty(&idle_heaps);
        if (*new)
                return stook_meta_bump(sizeof(struct stook_heap), STOOK_CACHELINE);
        heap = stook_container_of(idle_heaps.next, struct stook_heap, idle);
        stook_list_remove(&heap->idle);
        return heap;
}

/* The group's id is kept by the bytes of the heap itself. */
static bool charge_heap(uint16_t group)
{
        return !group || stook_group_charge(group, sizeof(struct stook_heap), 0);
}

static void uncharge_heap(uint16_t group)
{
        if (group)
                stook_group_uncharge(group, sizeof(struct stook_heap));
}

/* Registry mutex held. NULL: no memory. */
static struct stook_heap *make_heap(const char *name, uint64_t limit, uint16_t group)
{
        bool new;
        struct stook_heap *heap = take_heap(&new);

        if (!heap)
                return NULL;
        for (unsigned class = 0; class < STOOK_CLASSES; class++)
                stook_heap_set_class(heap, class, NULL);
        memset(heap->name, 0, sizeof(heap->name));
        strcpy(heap->name, name);
        heap->group = group;
        heap->bytes = heap->peak = heap->large_bytes = heap->refusals = heap->spilled = 0;
        heap->limit = limit ? limit : UINT64_MAX;
        if (new) {
                heap->next = stook_heaps;
                __atomic_store_n(&stook_heaps, heap, __ATOMIC_RELEASE);
        }
        __atomic_store_n(&heap->state, STOOK_HEAP_LIVE, __ATOMIC_RELEASE);
        return heap;
}

void stook_heap_give(struct stook_heap *heap)
{
        uncharge_heap(heap->group);
        __atomic_store_n(&heap->state, STOOK_HEAP_FREE, __ATOMIC_RELAXED);
        stook_list_add_tail(&idle_heaps, &heap->idle);
}

STOOK_API struct stook_heap *stook_heap_create(const char *name,
                                               const struct stook_heap_args *or_null)
{
        const struct stook_heap_args none = { .args_size = sizeof(none) };
        const struct stook_heap_args *args = or_null ? or_null : &none;
        struct stook_heap *heap;
        uint16_t group;

        if (!stook_report_size_is(args->args_size, sizeof(none), "args_size") || !name || !*name ||
            strnlen(name, STOOK_HEAP_NAME_BYTES) == STOOK_HEAP_NAME_BYTES)
                return (errno = EINVAL, NULL);
        group = args->group ? args->group->id : 0;
        if (!stook_gate_start() || !charge_heap(group))
                return (errno = ENOMEM, NULL);
        if (!stook_registry_lock(STOOK_REFUSED("stook_heap_create"))) {
                uncharge_heap(group);
                return (errno = EDEADLK, NULL);
        }
        heap = make_heap(name, args->limit_bytes, group);
        stook_registry_unlock();
        if (heap)
                return heap;
        uncharge_heap(group);
        errno = ENOMEM;
        return NULL;
}

STOOK_API int stook_heap_set_limit(struct stook_heap *heap, uint64_t bytes)
{
        if (!heap)
                return -EINVAL;
        __atomic_store_n(&heap->limit, bytes ? bytes : UINT64_MAX, __ATOMIC_RELAXED);
        return 0;
}

STOOK_API int stook_heap_for_each(int (*each)(struct stook_heap *heap, void *data), void *data)
{
        int answer = 0;

        if (!each)
                return -EINVAL;
        if (!stook_registry_lock(STOOK_REFUSED("stook_heap_for_each")))
                return -EDEADLK;
        for (struct stook_heap *heap = stook_heaps; heap && !answer; heap = heap->next)
                if (stook_heap_is_live(heap))
                        answer = each(heap, data);
        stook_registry_unlock();
        return answer;
}
