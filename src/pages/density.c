/*
 * Purpose: was memory written? See density.h.
 */
#include "os/checker.h"
#include "os/os.h"
#include "pages/density.h"

#define LOOKS      16                   /* pages looked at */
#define LOOKS_USED 14                   /* so many were written where memory is dense */
#define PAGES_BITS 28                   /* of stook_density.last: pages; above: page number */

void stook_density_tell(struct stook_density *density, uintptr_t start, size_t bytes)
{
        size_t page = stook_os_page_bytes();

        if (bytes / page >> PAGES_BITS == 0)
                __atomic_store_n(&density->last,
                                 (uint64_t)(start / page) << PAGES_BITS | bytes / page,
                                 __ATOMIC_RELAXED);
}

/*
 * Some pages that were written are all zero: then less is found dense. (mincore would tell which
 * are resident, but filters of system calls may kill for it.)
 */
static bool is_written(uintptr_t page)
{
        static const uint16_t at[] = { 0, 2532, 972, 3504 };

        for (unsigned i = 0; i < sizeof(at) / sizeof(*at); i++)
                if (stook_os_word_is_set((uint32_t *)(page + at[i])))
                        return true;
        return false;
}

/*
 * The looks lie irregularly, or objects of one size would all be looked at in one place. Under a
 * memory checker they would be at closed bytes (checker.h I1): nothing is dense there.
 */
bool stook_density_is_dense(uintptr_t start, size_t bytes)
{
        size_t page = stook_os_page_bytes(), pages = bytes / page;
        unsigned used = 0;

        if (stook_checker_is_on())
                return false;
        for (uint32_t i = 1; i <= LOOKS; i++) {
                uint64_t at = (uint64_t)(uint32_t)(i * 2654435769u) * pages >> 32;

                used += is_written(start + at * page);
                if (used + LOOKS - i < LOOKS_USED)
                        return false;
        }
        return true;
}

void stook_density_look_at(struct stook_density *density, uintptr_t start, size_t bytes)
{
        uint32_t found = stook_density_is_dense(start, bytes) ? STOOK_DENSE : STOOK_SPARSE;

        __atomic_store_n(&density->found, found, __ATOMIC_RELAXED);
}

void stook_density_look(struct stook_density *density)
{
        uint64_t last = __atomic_exchange_n(&density->last, 0, __ATOMIC_RELAXED);
        size_t page = stook_os_page_bytes();

        if (last)
                stook_density_look_at(density, (last >> PAGES_BITS) * page,
                                      (last & ((UINT64_C(1) << PAGES_BITS) - 1)) * page);
}
