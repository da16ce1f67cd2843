/*
 * Purpose: the hot paths of malloc and free, inlined into every entry point: one table load and a
 * pop; one load of the pagemap, one line of the cache, and a push. Whatever is not the common case
 * is left to the calls in malloc.h, which look at it from the start again.
 * Place: included by malloc_api.c and the drop-in's entry.c. The drop-in's malloc and free are the
 *  same steps in assembly (dropin/hot_x86_64.S, dropin/hot_aarch64.S); malloc goes on there with
 *  sizes above the table, which are a miss here.
 * Concurrency: any thread, any instruction. In a thread that has not enrolled both miss.
 */
#ifndef STOOK_MALLOC_HOT_H
#define STOOK_MALLOC_HOT_H

#include <string.h>
#include "cache/object_id.h"
#include "malloc/malloc.h"
#include "report/report.h"
#include "slot/slot_hot.h"

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

/*
 * False: nothing done. NULL and foreign pointers are outside the range, so they need no test of
 * their own.
 */
STOOK_INLINE bool stook_free_hot(void *object)
{
        uintptr_t addr = (uintptr_t)object;
        uintptr_t off = addr - stook_range.base;

        if (STOOK_UNLIKELY(off >= STOOK_RANGE_BYTES))
                return false;

        const uint64_t *at = &stook_range.entries[off >> STOOK_MAP_SHIFT];
        uint64_t entry = __atomic_load_n(at, __ATOMIC_RELAXED);
        unsigned index = stook_entry_cache(entry);      /* 0: no room is on its line */

        if (STOOK_UNLIKELY(!stook_object_starts(index, stook_entry_offset(entry, addr))))
                return false;
        return stook_slot_push(index << STOOK_LINE_SHIFT, object);
}

/* The index of the cache of an object of malloc's classes. 0: none starts there. */
STOOK_INLINE unsigned stook_object_class(const void *object)
{
        uintptr_t addr = (uintptr_t)object;
        uintptr_t off = addr - stook_range.base;

        if (STOOK_UNLIKELY(off >= STOOK_RANGE_BYTES))
                return 0;

        const uint64_t *at = &stook_range.entries[off >> STOOK_MAP_SHIFT];
        uint64_t entry = __atomic_load_n(at, __ATOMIC_RELAXED);
        unsigned index = stook_entry_cache(entry);

        if (STOOK_UNLIKELY(index - 1 >= STOOK_CLASSES ||
                           !stook_object_starts(index, stook_entry_offset(entry, addr))))
                return 0;
        return index;
}

/*
 * realloc where reports abort. (Where they do not, more is looked at: malloc_resize.c.) Return: as
 * stook_object_class.
 */
STOOK_INLINE unsigned stook_resize_hot(const void *object)
{
        return STOOK_UNLIKELY(stook_report_goes_on()) ? 0 : stook_object_class(object);
}

/* Sizes that go up and down do not copy: malloc_resize.c I2. False for size 0. */
STOOK_INLINE bool stook_resize_stays(size_t size, size_t usable)
{
        return size - 1 < usable && (size > usable / 2 || usable <= 16);
}

/*
 * @bytes, not 0; whole pieces of 16 are copied, which objects of classes have. Guarded samples have
 * not, so stook_malloc_has_guarded is looked at after @to is allocated. Small ones by a few
 * moves from both ends: few jumps depend on the size, and memcpy is a call.
 */
STOOK_INLINE void stook_copy_object(void *to, const void *from, size_t bytes)
{
        typedef unsigned char piece __attribute__((vector_size(16)));
        size_t last = (bytes - 1) / 16;
        const piece *a = from;
        piece *b = to;

        if (last >= 8) {
                memcpy(to, from, bytes);
                return;
        }
        b[0] = a[0];
        b[last] = a[last];
        if (last < 2)
                return;
        b[1] = a[1];
        b[last - 1] = a[last - 1];
        if (last < 4)
                return;
        b[2] = a[2];
        b[3] = a[3];
        b[last - 2] = a[last - 2];
        b[last - 3] = a[last - 3];
}

#endif
