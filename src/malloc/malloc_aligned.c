/*
 * Purpose: aligned objects, without classes of their own.
 * A slab starts at a page, so the objects of a class are aligned to every power of two, up to the page size,
 * that its bytes are a multiple of. The size is rounded up to a multiple of the alignment; the class of such a
 * size is one again (size_class.c I1). Alignments above the page size get a span.
 */
#include "cache/cache_account.h"
#include "malloc/large.h"
#include "malloc/malloc.h"
#include "os/os.h"

void *stook_malloc_aligned(size_t align, size_t size)
{
        if (align <= 16)
                return stook_malloc_object(size);
        if (STOOK_UNLIKELY(size > PTRDIFF_MAX))
                return NULL;
        if (align > stook_os_page_bytes())
                return stook_large_alloc(align, size ? size : 1, false);

        /* The slot of a charged object is larger by the word behind it, and it is the slot that is aligned. */
        if (STOOK_UNLIKELY(__atomic_load_n(&stook_groups_exist, __ATOMIC_RELAXED)) && stook_group_current()) {
                size_t slot = (size + STOOK_ACCOUNT_BYTES + align - 1) & -align;

                if (slot <= STOOK_CLASS_MAX)
                        return stook_malloc_object(slot - STOOK_ACCOUNT_BYTES);
                return stook_large_alloc(1, size, false);
        }

        size_t rounded = size ? (size + align - 1) & -align : align;

        /* Large objects start at pages. */
        return stook_malloc_object(rounded <= STOOK_CLASS_MAX ? rounded : size);
}
