/*
 * The calls of address_space.h. Each write is prepared by stook_maple_cursor_preallocate() where it
 * can fail, and done by stook_maple_cursor_store_prealloc() where it must not: as mmap does in the
 * kernel.
 */
#include "address_space.h"

#include <errno.h>
#include <string.h>

#define UNMAPPED (UINT32_C(1) << 31)

int address_space_init(struct address_space *space, unsigned flags)
{
        space->low = 16 * PAGE;
        space->high = (UINT64_C(1) << 47) - 1;
        space->brk_first = space->brk_last = 0;
        return stook_maple_init(&space->areas, flags | STOOK_MAPLE_GAPS);
}

/* No fault finds it any more, and none is inside. */
static void retire(struct area *area)
{
        uint32_t inside = __atomic_or_fetch(&area->faulting, UNMAPPED, __ATOMIC_ACQ_REL);

        while (inside != UNMAPPED)
                inside = __atomic_load_n(&area->faulting, __ATOMIC_ACQUIRE);
        vma_delete(area);
}

static struct area *make(uint64_t first, uint64_t last, uint64_t offset, unsigned char *pages)
{
        struct area *area = vma_new();

        if (!area)
                return NULL;
        area->first = first;
        area->last = last;
        area->offset = offset;
        area->pages = pages;
        area->flags = 0;
        __atomic_store_n(&area->faulting, 0, __ATOMIC_RELEASE);
        return area;
}

/* @entry (NULL: nothing) at the range. Lock held. */
static int put(struct address_space *space, uint64_t first, uint64_t last, void *entry)
{
        STOOK_MAPLE_CURSOR(cursor, &space->areas, first, last);
        int error = stook_maple_cursor_preallocate(&cursor, entry);

        if (!error)
                error = stook_maple_cursor_store_prealloc(&cursor, entry);
        stook_maple_cursor_finish(&cursor);
        return error;
}

/*
 * An area that holds `at` in its middle is cut in two there. The upper half is new; it is stored
 * first, so that a fault finds one of the two at every moment. Lock held.
 */
static int cut(struct address_space *space, uint64_t at)
{
        struct area *area = stook_maple_load(&space->areas, at), *upper;
        int error;

        if (!area || area->first == at)
                return 0;
        upper = make(at, area->last, area->offset + (at - area->first), area->pages);
        if (!upper)
                return -ENOMEM;
        error = put(space, at, area->last, upper);
        if (error)
                vma_delete(upper);
        else
                area->last = at - 1;
        return error;
}

static int unmap(struct address_space *space, uint64_t first, uint64_t last)
{
        struct area *area;
        uint64_t key = first;
        int error = cut(space, first);

        if (!error && last != UINT64_MAX)
                error = cut(space, last + 1);
        while (!error && (area = stook_maple_find(&space->areas, &key, last))) {
                error = put(space, area->first, area->last, NULL);
                if (!error)
                        retire(area);
        }
        return error;
}

static int map_at(struct address_space *space, uint64_t first, uint64_t last, unsigned char *pages)
{
        struct area *area = make(first, last, 0, pages);
        int error;

        if (!area)
                return -ENOMEM;
        error = put(space, first, last, area);
        if (error)
                vma_delete(area);
        return error;
}

static bool good(uint64_t at, uint64_t bytes)
{
        return bytes && !(at % PAGE) && bytes <= UINT64_MAX - at &&
               (at + bytes - 1) < UINT64_C(1) << 63;
}

static uint64_t whole_pages(uint64_t bytes)
{
        return (bytes + PAGE - 1) / PAGE * PAGE;
}

int address_space_map(struct address_space *space, uint64_t bytes, unsigned char *pages,
                      uint64_t *at)
{
        STOOK_MAPLE_CURSOR(cursor, &space->areas, 0, 0);
        uint64_t first;
        int error;

        if (!good(0, bytes))
                return -EINVAL;
        bytes = whole_pages(bytes);
        stook_maple_lock(&space->areas);
        error = stook_maple_cursor_empty_area_rev(&cursor, bytes, space->low, space->high);
        if (error) {
                error = -ENOMEM;
        } else {
                first = cursor.last + 1 - bytes;
                error = map_at(space, first, first + bytes - 1, pages);
                if (!error)
                        *at = first;
        }
        stook_maple_unlock(&space->areas);
        return error;
}

int address_space_map_fixed(struct address_space *space, uint64_t at, uint64_t bytes,
                            unsigned char *pages)
{
        int error;

        if (!good(at, bytes))
                return -EINVAL;
        bytes = whole_pages(bytes);
        stook_maple_lock(&space->areas);
        error = unmap(space, at, at + bytes - 1);
        if (!error)
                error = map_at(space, at, at + bytes - 1, pages);
        stook_maple_unlock(&space->areas);
        return error;
}

int address_space_unmap(struct address_space *space, uint64_t at, uint64_t bytes)
{
        int error;

        if (!good(at, bytes))
                return -EINVAL;
        bytes = whole_pages(bytes);
        stook_maple_lock(&space->areas);
        error = unmap(space, at, at + bytes - 1);
        stook_maple_unlock(&space->areas);
        return error;
}

int address_space_brk(struct address_space *space, uint64_t end)
{
        int error = 0;

        if (!space->brk_first)
                space->brk_first = end = whole_pages(end);
        end = whole_pages(end);
        if (end < space->brk_first)
                return -EINVAL;
        stook_maple_lock(&space->areas);
        if (space->brk_last)
                error = unmap(space, space->brk_first, space->brk_last);
        if (!error && end > space->brk_first)
                error = map_at(space, space->brk_first, end - 1, NULL);
        if (!error)
                space->brk_last = end > space->brk_first ? end - 1 : 0;
        stook_maple_unlock(&space->areas);
        return error;
}

bool address_space_fault(struct address_space *space, uint64_t at)
{
        struct area *area = stook_maple_load(&space->areas, at);
        bool mapped = false;

        if (!area)
                return false;
        /* It may have been unmapped or cut since: only what is seen with the count raised holds. */
        if (!(__atomic_fetch_add(&area->faulting, 1, __ATOMIC_ACQUIRE) & UNMAPPED) &&
            at >= area->first && at <= area->last) {
                mapped = true;
                if (area->pages)
                        __atomic_store_n(&area->pages[(at - area->first + area->offset) / PAGE], 1,
                                         __ATOMIC_RELAXED);
        }
        __atomic_fetch_sub(&area->faulting, 1, __ATOMIC_RELEASE);
        return mapped;
}

long address_space_check(struct address_space *space)
{
        struct area *area;
        uint64_t key = 0, after = 0;
        long n = 0;

        if (stook_maple_validate(&space->areas))
                return -1;
        stook_maple_for_each(&space->areas, area, key, UINT64_MAX) {
                if (area->first < after || area->last < area->first || key != area->last + 1)
                        return -1;
                after = area->last + 1;
                n++;
        }
        return n;
}

void address_space_end(struct address_space *space)
{
        struct area *area;
        uint64_t key = 0;

        stook_maple_for_each(&space->areas, area, key, UINT64_MAX)
                vma_delete(area);
        stook_maple_destroy(&space->areas);
}
