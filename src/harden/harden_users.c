/*
 * Purpose: the bits that say which objects have users: harden.h. A tree of three steps leads to
 * them, because ranges of address space may lie anywhere.
 *
 *      address bits    47..37          36..24          23..3
 *                      top             middle          leaf: 256 KiB for 16 MiB of heap
 *
 * Both lower steps are made when an object first lies there, of metadata, and stay for ever. A page
 * of a leaf is touched when one of 256 KiB of heap is used.
 * Concurrency: M1: the release of a pointer in a step pairs with the acquire of the next walk: the
 *  memory behind it reads as zeros. A thread that loses the race for a pointer leaves its memory
 *  unused.
 *  A bit is changed by one atomic instruction, so of two frees of one object at once one finds it.
 *  The release of a free pairs with the acquire of the next allocation of the object, and that of
 *  an allocation with the next free's.
 * Failure: without memory a pointer becomes NONE for ever (I2).
 */
#include <stddef.h>

#include "harden/harden.h"
#include "pages/meta.h"

#define GRANULE_LOG 3                   /* an object begins in 8 bytes of its own */
#define LEAF_LOG    24                  /* bytes of heap that a leaf stands for */
#define MIDDLE_LOG  37
#define TOP_LOG     48                  /* where the addresses of programs end */

#define LEAF_BYTES   ((size_t)1 << (LEAF_LOG - GRANULE_LOG) >> 3)
#define MIDDLE_BYTES (((size_t)1 << (MIDDLE_LOG - LEAF_LOG)) * sizeof(void *))

static char no_bits;
#define NONE ((void *)&no_bits)

static void *top[(size_t)1 << (TOP_LOG - MIDDLE_LOG)] STOOK_MOSTLY_UNUSED;     /* atomic: M1 */

/* What the pointer at @step leads to, which is made if there is nothing and @make. */
static void *follow(void **step, size_t bytes, bool make)
{
        void *next = __atomic_load_n(step, __ATOMIC_ACQUIRE), *made;           /* M1 */

        if (next || !make)
                return next;
        made = stook_meta_bump(bytes, 0);
        if (!made)
                made = NONE;
        return __atomic_compare_exchange_n(step, &next, made, false, __ATOMIC_ACQ_REL,
                                           __ATOMIC_ACQUIRE) ? made : next;
}

/* The leaf for an address. NULL: no object ever lay there. NONE: I2. */
static void *leaf_of(uintptr_t addr, bool make)
{
        void **middle;

        if (addr >> TOP_LOG)
                return NONE;
        middle = follow(&top[addr >> MIDDLE_LOG], MIDDLE_BYTES, make);
        if (!middle || middle == NONE)
                return middle;
        addr &= ((uintptr_t)1 << MIDDLE_LOG) - 1;
        return follow(&middle[addr >> LEAF_LOG], LEAF_BYTES, make);
}

/* The word with the bit of @object. NULL: there is none, and *@believed says what the bit is. */
static uint64_t *word_of(const void *object, bool make, uint64_t *bit, bool *believed)
{
        uintptr_t addr = (uintptr_t)object;
        uint64_t *leaf = leaf_of(addr, make);
        size_t at = (addr & (((uintptr_t)1 << LEAF_LOG) - 1)) >> GRANULE_LOG;

        *believed = leaf == NONE;
        *bit = UINT64_C(1) << at % 64;
        return leaf && leaf != NONE ? leaf + at / 64 : NULL;
}

bool stook_harden_user_begins(const void *object)
{
        uint64_t bit, *word;
        bool believed;

        word = word_of(object, true, &bit, &believed);
        return !word || !(__atomic_fetch_or(word, bit, __ATOMIC_ACQ_REL) & bit);
}

bool stook_harden_user_ends(const void *object)
{
        uint64_t bit, *word;
        bool believed;

        word = word_of(object, false, &bit, &believed);
        return word ? __atomic_fetch_and(word, ~bit, __ATOMIC_ACQ_REL) & bit : believed;
}

bool stook_harden_has_user(const void *object)
{
        uint64_t bit, *word;
        bool believed;

        word = word_of(object, false, &bit, &believed);
        return word ? __atomic_load_n(word, __ATOMIC_ACQUIRE) & bit : believed;
}
