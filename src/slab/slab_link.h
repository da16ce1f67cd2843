/*
 * Purpose: the link that a freed object holds to the next one of its slab's list.
 * Places in a slab are counted in 8-byte units from its start, so that 16 bits name every object of a slab and
 * an address needs no multiplication. The stored word is
 *      place of the next object, or NONE  ^  key of the slab  ^  byte-swapped address of the word
 * so that 48 of its bits are known beforehand: what a user's write left there is noticed when the list is
 * walked, and a word that still decodes when its object is freed tells of a second free.
 * Invariants:
 *  L1 the key is drawn anew for each life of a slab: words left by an earlier life do not decode.
 *  L2 the word is cleared when its object leaves the list: of objects in users' hands none decodes, but for
 *     one in 2^48 of what users write. (Who acts on a word that decodes looks into the list itself first.)
 * Concurrency: written by who owns the object (a drain, before its push; a taker, after its compare-and-swap),
 *  read by takers. Atomic because a reader who only looks (a drain that suspects a second free) may be late.
 */
#ifndef STOOK_SLAB_LINK_H
#define STOOK_SLAB_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/compiler.h"

#define STOOK_PLACE_SHIFT 3
#define STOOK_PLACE_NONE  0xffffu       /* no object: a slab of 8-byte objects is at most 256 KiB */

STOOK_INLINE uint64_t stook_link_mask(const void *word, uint64_t key)
{
        return key ^ __builtin_bswap64((uintptr_t)word);
}

STOOK_INLINE void stook_link_write(void *object, uint32_t link_offset, uint64_t key, uint32_t place)
{
        uint64_t *word = (uint64_t *)((char *)object + link_offset);

        __atomic_store_n(word, place ^ stook_link_mask(word, key), __ATOMIC_RELAXED);
}

/* The place, or more than STOOK_PLACE_NONE: no link. */
STOOK_INLINE uint64_t stook_link_read(const void *object, uint32_t link_offset, uint64_t key)
{
        const uint64_t *word = (const uint64_t *)((const char *)object + link_offset);

        return __atomic_load_n(word, __ATOMIC_RELAXED) ^ stook_link_mask(word, key);
}

STOOK_INLINE void stook_link_clear(void *object, uint32_t link_offset)
{
        __atomic_store_n((uint64_t *)((char *)object + link_offset), 0, __ATOMIC_RELAXED);
}

#endif
