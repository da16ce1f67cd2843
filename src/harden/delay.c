/*
 * Purpose: freed objects of malloc's classes wait for a random time before they are free: for
 * STOOK_HARDEN's `random` a few of each class, for quarantine=BYTES as many as that. So an object
 * is not handed out again by the next allocation, and nobody can tell by which.
 *
 * Each slot has a block, which it may share, with some places for each class: smaller objects
 * have more. A freed object takes a random place, and what was there goes on.
 * Invariant: I1 a place changes by a compare-and-swap or an exchange, so what leaves it is one
 *  thread's.
 * Place: called by watch. Concurrency: any thread, any instruction. M1: the release of a block's
 *  address pairs with the acquire of the thread that uses it: its memory reads as zeros.
 * Failure: without memory for a block nothing waits.
 */
#include "harden/seal.h"

#include "os/os.h"
#include "pages/meta.h"

#define PLACES_MOST 1024                /* of a class */
#define SHARE       16                  /* of the bytes, for one class: programs use few at once */

struct stook_delay_block *stook_delay_blocks[STOOK_DELAY_BLOCKS] STOOK_MOSTLY_UNUSED;
static uint32_t all;

struct stook_delay_class stook_delay_add(size_t bytes, size_t object_bytes)
{
        size_t wanted = bytes / SHARE / object_bytes, n = 1;
        uint32_t first = all;

        while (n * 2 <= wanted && n < PLACES_MOST)
                n *= 2;
        all += (uint32_t)n;
        return (struct stook_delay_class){ .first = first, .mask = (uint32_t)n - 1 };
}

struct stook_delay_block *stook_delay_make(struct stook_delay_block **at)
{
        struct stook_delay_block *none = NULL, *made;

        made = stook_meta_bump(sizeof(*made) + all * sizeof(made->place[0]), 0);
        if (!made)
                return NULL;
        made->state = stook_os_random();
        return __atomic_compare_exchange_n(at, &none, made, false, __ATOMIC_ACQ_REL,    /* M1 */
                                           __ATOMIC_ACQUIRE) ? made : none;
}

void stook_delay_flush(void (*leave)(void *object))
{
        for (unsigned b = 0; b < STOOK_DELAY_BLOCKS; b++) {
                struct stook_delay_block *block = __atomic_load_n(&stook_delay_blocks[b],
                                                                  __ATOMIC_ACQUIRE);

                for (uint32_t i = 0; block && i < all; i++) {
                        void *object = (void *)__atomic_exchange_n(&block->place[i], 0,
                                                                   __ATOMIC_ACQ_REL);

                        if (object)
                                leave(object);
                }
        }
}
