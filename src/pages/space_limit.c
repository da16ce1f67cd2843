/*
 * Purpose: a limit of address space (RLIMIT_AS) that a program sets after the start. The system
 * counts what was reserved ahead of use as it counts any mapping. So
 *   a limit above all that is mapped would never stop an allocation: what is left of the
 *     reservation is set aside, and what the heap grows by comes in pieces, which are counted;
 *   a limit below it would stop every mapping of the process, stacks of threads among them: what is
 *     left of the reservation is given back, and then the heap grows in pieces.
 * Place: called by the drop-in, whose setrlimit and prlimit tell (dropin/resource_limit.c). Growth
 *  itself asks the system nothing: a sandbox may not allow that by now.
 * Concurrency: any thread. One looks at a time; what comes meanwhile has it look once more.
 *  M1: give_back takes all of the frontier, and then looks whether a thread is between
 *  stook_space_begin and stook_space_end; such a thread counts itself, and then reads the frontier.
 *  Both orders are sequentially consistent, so the thread finds no room or is seen. A smaller
 *  `size` is stored before the frontier is put back (release), and read after it (acquire).
 * Failure: where nothing can be given back (several nodes, a thread that vanished inside a growth),
 *  mappings fail for as long as the limit is below what is mapped.
 */
#include "os/os.h"
#include "pages/meta.h"
#include "pages/source.h"
#include "pages/span.h"
#include "process/checker.h"

#define SHARE 8                         /* of what is left: as at start (range.c) */

/* Atomic: changes that the thread which looks has not seen; 0: no thread looks. */
static uint32_t changes;
static bool given_back;                 /* of the thread that looks */

/* The address space beyond the first range's map goes. False: it stays. */
static bool give_back(void)
{
        if (!stook_ranges_beside() || stook_node_ranges.shift != STOOK_NODES_UNCUT ||
            stook_checker_is_on())
                return false;

        struct stook_range_record *r = stook_range_of(stook_range.base);
        uintptr_t at = __atomic_load_n(&r->frontier, __ATOMIC_RELAXED), size = r->size, keep, from;

        while (!__atomic_compare_exchange_n(&r->frontier, &at, size, true, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED))
                ;
        keep = __atomic_load_n(&stook_space_reaching, __ATOMIC_SEQ_CST)         /* M1 */
                       ? size : __atomic_load_n(&r->bytes, __ATOMIC_ACQUIRE);
        if (keep < size) {
                __atomic_store_n(&r->size, keep, __ATOMIC_RELAXED);
                stook_os_unreserve((char *)r->base + keep, size - keep);
                from = (stook_map_bytes(keep) + stook_os_page_bytes() - 1) & -stook_os_page_bytes();
                stook_os_unreserve((char *)r->entries + from, stook_map_bytes(size) - from);
        }
        __atomic_store_n(&r->frontier, at, __ATOMIC_RELEASE);
        return keep < size;
}

static void look(void)
{
        uint64_t limit = stook_os_space_limit(), mapped;
        size_t first = stook_ranges_beside() && !given_back ? 0 : SIZE_MAX / 2;

        if (limit == UINT64_MAX) {
                stook_ranges_limit(first, false);
                return;
        }
        mapped = stook_os_mapped_bytes() ?: stook_ranges_reserved();
        if (limit < mapped && give_back()) {
                stook_meta_give_back();
                given_back = true;
                mapped = stook_os_mapped_bytes();
        }
        stook_ranges_limit(limit > mapped ? (limit - mapped) / SHARE + 1 : 1, !given_back);
}

void stook_space_limit_changed(void)
{
        uint32_t seen = __atomic_add_fetch(&changes, 1, __ATOMIC_ACQ_REL);

        if (seen > 1 || !stook_ranges_count())
                return;
        do {
                seen = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
                look();
        } while (!__atomic_compare_exchange_n(&changes, &seen, 0, false, __ATOMIC_ACQ_REL,
                                              __ATOMIC_RELAXED));
}

void stook_space_forked(void)
{
        __atomic_store_n(&changes, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&stook_space_reaching, 0, __ATOMIC_RELAXED);
}
