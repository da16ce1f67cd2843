/*
 * Purpose: count how often much memory is taken from the pages. That is when memory goes from one
 * use to another, and when what the layers above keep idle is missed. Each take that is counted
 * lets them look for it (slot/slot_idle.c, barn/barn_idle.c).
 * Place: called by span.c for each span that is handed out.
 * How: clean memory is taken when no dirty span fits. Each such take is counted: a look costs some
 *  microseconds, the pages hundreds. Dirty memory costs nothing, so a take of it is counted once in
 *  a REUSED_PART of the decay time. A program whose objects stay in its sheaves takes hardly any,
 *  and then only time lets them go.
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
 * Peak of python in `make run`, of glibc's: 1.14 without takes of dirty memory, 1.10 with one in a
 * 64th of the decay time at most, 1.09 with one in a 256th. Without a bound by time, and with four
 * times as much for a take, it is 1.08, but the pattern mstress takes 1.2 to 1.4 times as long.
 */
#define REUSED_PART 256

static uint32_t takes;                  /* atomic, relaxed */

uint32_t stook_pages_takes(void)
{
        return __atomic_load_n(&takes, __ATOMIC_RELAXED);
}

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

void stook_pages_count_fresh(struct stook_pages_node *node, size_t bytes)
{
        if (is_take(node, &node->fresh_bytes, bytes))
                __atomic_fetch_add(&takes, 1, __ATOMIC_RELAXED);
}

void stook_pages_count_reused(struct stook_pages_node *node, size_t bytes)
{
        uint32_t now;

        if (STOOK_LIKELY(!is_take(node, &node->reused_bytes, bytes)))
                return;
        now = (uint32_t)stook_os_clock_ms();
        if (now - __atomic_load_n(&node->reused_ms, __ATOMIC_RELAXED) <=
            stook_pages_decay_ms() / REUSED_PART)
                return;
        __atomic_store_n(&node->reused_ms, now, __ATOMIC_RELAXED);
        __atomic_fetch_add(&takes, 1, __ATOMIC_RELAXED);
}
