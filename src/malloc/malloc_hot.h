/*
 * Purpose: the hot paths of malloc and free, inlined into every entry point: one table load and a pop; one load
 * of the pagemap, one line of the cache, and a push. Whatever is not the common case is left to the calls in
 * malloc.h, which look at it from the start again.
 * Place: included by malloc_api.c, malloc_object.c and the drop-in's entry.c and new_delete.c. The drop-in's
 *  malloc and free themselves are malloc/hot_x86_64.S where there is one: the same steps in assembly.
 * Concurrency: any thread, any instruction. In a thread that has not enrolled both miss.
 */
#ifndef STOOK_MALLOC_HOT_H
#define STOOK_MALLOC_HOT_H

#include <string.h>
#include "cache/cache.h"
#include "malloc/malloc.h"
#include "pages/pagemap.h"
#include "slot/slot_fast.h"

/* NULL: a miss, or a size above the table. */
STOOK_INLINE void *stook_malloc_hot(size_t size)
{
        if (STOOK_UNLIKELY(size > STOOK_CLASS_TABLE_MAX))
                return NULL;
        return stook_section_pop(stook_class_line[(size + 15) >> 4]);
}

/* As stook_malloc_hot, zeroed. */
STOOK_INLINE void *stook_calloc_hot(size_t bytes)
{
        void *object = stook_malloc_hot(bytes);

        return STOOK_LIKELY(object != NULL) ? memset(object, 0, bytes) : NULL;
}

/* Does an object of the cache of that index start at this offset of a slab? Index 0, no cache, has magic 0: never. */
STOOK_INLINE bool stook_object_starts(unsigned index, uint32_t offset)
{
        const struct stook_shape *shape = &stook_shapes[index];

        return offset * shape->magic < shape->magic && offset <= shape->last_offset;
}

/* False: nothing done. NULL and foreign pointers are outside the range, so they need no test of their own. */
STOOK_INLINE bool stook_free_hot(void *object)
{
        uintptr_t addr = (uintptr_t)object;
        uintptr_t off = addr - stook_range.base;

        if (STOOK_UNLIKELY(off >= STOOK_RANGE_BYTES))
                return false;

        uint64_t entry = __atomic_load_n(&stook_range.entries[off >> STOOK_MAP_SHIFT], __ATOMIC_RELAXED);
        unsigned index = stook_entry_cache(entry);

        if (STOOK_UNLIKELY(!stook_object_starts(index, stook_entry_offset(entry, addr))))
                return false;
        return stook_slot_push(index << STOOK_LINE_SHIFT, object);
}

#endif
