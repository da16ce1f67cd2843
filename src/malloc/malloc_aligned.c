/*
 * Purpose: aligned objects, without classes of their own.
 * A slab starts at a page, so the objects of a class are aligned to every power of two, up to the
 * page size, that the bytes of the class are a multiple of. The size is rounded up to a multiple of
 * the alignment; the class of such a size is one again (size_class.c I1), or the next one is.
 * Alignments above the page size get a span.
 */
#include "group/group.h"
#include "malloc/large.h"
#include "malloc/malloc.h"
#include "os/os.h"

#define ALIGN_MORE ((size_t)(STOOK_CLASS_PAGE_AND_MORE & -STOOK_CLASS_PAGE_AND_MORE))

/*
 * A multiple of @align whose class is one, too. The next one above a class that is no multiple is
 * of the next class, 4,608 bytes: it is one of every alignment that has a multiple in the former.
 */
static size_t round_up(size_t size, size_t align)
{
        size_t rounded = (size + align - 1) & -align;

        if (STOOK_UNLIKELY(align > ALIGN_MORE) && rounded > STOOK_CLASS_ALIGNED_MAX &&
            rounded <= STOOK_CLASS_PAGE_AND_MORE)
                return (STOOK_CLASS_PAGE_AND_MORE + align) & -align;
        return rounded;
}

/* It is the stride that is aligned. That of a charged object has a word more. */
static void *aligned_charged(size_t align, size_t size, uint64_t how)
{
        size_t stride = round_up(size + STOOK_ACCOUNT_BYTES, align);

        if (stride <= STOOK_CLASS_MAX)
                return stook_malloc_slow(stride - STOOK_ACCOUNT_BYTES, how);
        return stook_large_alloc(1, size, how);
}

void *stook_malloc_aligned(size_t align, size_t size, uint64_t how)
{
        size_t rounded;

        if (STOOK_UNLIKELY(stook_malloc_is_watched) && size <= STOOK_CLASS_MAX)
                how = stook_how_with_size(how, size);
        if (align <= 16)
                return stook_malloc_slow(size, how);
        if (STOOK_UNLIKELY(size > PTRDIFF_MAX))
                return stook_slow_answer(how, NULL, 0);
        if (align > stook_os_page_bytes())
                return stook_large_alloc(align, size ? size : 1, how);
        if (STOOK_UNLIKELY(__atomic_load_n(&stook_groups_exist, __ATOMIC_RELAXED)) &&
            stook_group_current())
                return aligned_charged(align, size, how);
        rounded = size ? round_up(size, align) : align;
        /* Large objects start at pages. */
        return stook_malloc_slow(rounded <= STOOK_CLASS_MAX ? rounded : size, how);
}
