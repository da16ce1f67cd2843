/*
 * Purpose: count how often much memory is taken from the pages. That is when memory goes from one
 * use to another, and when what the layers above keep idle is missed. Each take that is counted
 * lets them look for it (slot/slot_idle.c, barn/barn_idle.c).
 * Place: called by span.c for each span that is handed out.
 * How: clean memory is taken when no dirty span fits. Each such take is counted: a look costs some
 *  microseconds, the pages hundreds. Dirty memory costs nothing, so a take of it is counted once in
 *  a DIRTY_PART of the decay time, and only barns are looked at. A program whose objects stay in
 *  its sheaves takes hardly any, and then only time lets them go.
 * Concurrency: relaxed words. Two threads may count one take together, or lose some bytes.
 */
#include "os/os.h"
#include "pages/pages_node.h"

/*
 * A take is this part of what is in use, or LEAST. Measured on values whose sizes drift, peak MiB
 * beyond 64 in use, by share: 1/8: 301, 1/32: 248, 1/128: 223, 1/256: 208, 1/512: 206.
 */
#define SHARE 256
#define LEAST ((size_t)256 << 10)
/*
 * Peak of python in `make run`, of glibc's: 1.14 without takes of dirty memory; with one in a 256th
 * of the decay time at most 1.09, in a 512th 1.08, in a 1,024th 1.07. Page faults: 7,300; 8,500,
 * 10,900, 14,400. The patterns take the same time with all of them.
 */
#define DIRTY_PART 512
#define MS_NS      UINT64_C(1000000)

struct stook_pages_takes stook_pages_takes;

/* True: with @bytes more, *@word is a take, and begins anew. */
static bool is_take(struct stook_pages_node *node, size_t *word, size_t bytes)
{
        size_t part = __atomic_load_n(&node->taken_bytes, __ATOMIC_RELAXED) / SHARE;
        size_t least = part > LEAST ? part : LEAST;

        if (__atomic_add_fetch(word, bytes, __ATOMIC_RELAXED) < least)
                return false;
        __atomic_store_n(word, 0, __ATOMIC_RELAXED);
        return true;
}

void stook_pages_count_clean(struct stook_pages_node *node, size_t bytes)
{
        if (is_take(node, &node->clean_taken, bytes))
                __atomic_fetch_add(&stook_pages_takes.clean, 1, __ATOMIC_RELAXED);
}

/* By the fine clock: ticks of the coarse one may be 10 ms apart. */
static bool is_too_soon(struct stook_pages_node *node)
{
        uint64_t now = stook_os_clock_ns(), apart = stook_pages_decay_ms() * MS_NS / DIRTY_PART;

        if (now - __atomic_load_n(&node->dirty_take_ns, __ATOMIC_RELAXED) < apart)
                return true;
        __atomic_store_n(&node->dirty_take_ns, now, __ATOMIC_RELAXED);
        return false;
}

void stook_pages_count_dirty(struct stook_pages_node *node, size_t bytes)
{
        if (STOOK_UNLIKELY(is_take(node, &node->dirty_taken, bytes)) && !is_too_soon(node))
                __atomic_fetch_add(&stook_pages_takes.dirty, 1, __ATOMIC_RELAXED);
}
