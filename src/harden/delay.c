/*
 * Purpose: freed objects of malloc's classes wait for a random time before they are free: for
 * STOOK_HARDEN's `random` a few of each class, for quarantine=BYTES as many as that. So an object
 * is not handed out again by the next allocation, and nobody can tell by which.
 *
 * Each thread has a block, which it may share, with some places for each class: smaller objects
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
struct stook_delay_class stook_delay_classes[STOOK_DELAY_CLASSES] STOOK_MOSTLY_UNUSED;
static uint32_t all;

void stook_delay_start(size_t bytes, unsigned classes, const uint32_t *bytes_of)
{
        for (unsigned c = 0; c < classes && c < STOOK_DELAY_CLASSES; c++) {
                size_t wanted = bytes / SHARE / bytes_of[c], n = 1;

                while (n * 2 <= wanted && n < PLACES_MOST)
                        n *= 2;
                stook_delay_classes[c].first = all;
                stook_delay_classes[c].mask = (uint32_t)n - 1;
                all += (uint32_t)n;
        }
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
