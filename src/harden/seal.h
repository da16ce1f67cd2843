/*
 * Purpose: the seal: a word behind each object of malloc's classes, for STOOK_HARDEN's canary,
 * double and pairs.
 *
 *      what was asked for | canary, to the seal | seal: the last 8 bytes of the stride
 *
 * The seal says whether the object has a user, the bytes asked for, and which entry point made it.
 * A hash with the process's secrets ties that to the address: a seal is the object's key, and what
 * it says times a secret odd number. One of which a byte was overwritten says more than there are
 * bits for. So does a copy of another object's seal. The canary is the first 8 of the bytes behind
 * what was asked for, as far as there are any before the seal, by the same secrets; none of them is
 * 0.
 * Invariants:
 *  I1 a seal says that its object is free from when that is made until it is handed out, and from
 *     its free on: neither live nor waiting. Of two frees at once one succeeds: a free is a
 *     compare-and-swap of the seal.
 *  I2 no byte of a seal or a canary is a program's, so what differs was written by mistake.
 * Place: called by watch alone. Concurrency: any thread, any instruction; no lock. The secrets are
 *  const after the start. The release of a free pairs with the acquire of what takes the object out
 *  of its sheaf (slot.h), as for the object's other bytes.
 */
#ifndef STOOK_SEAL_H
#define STOOK_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alone.h"
#include "base/compiler.h"

#define STOOK_SEAL_BYTES 8

/* What it says. Bit 0: live. Bits 1 to 3: who made it, as the watch says. From bit 4: the bytes. */
#define STOOK_SEALED_LIVE UINT64_C(1)
#define STOOK_SEALED_BY_SHIFT    1
#define STOOK_SEALED_BYTES_SHIFT 4
#define STOOK_SEALED_WAITING (UINT64_C(7) << STOOK_SEALED_BY_SHIFT) /* by RCU: readers look at it */
#define STOOK_SEAL_SAYS   UINT64_C(0x1fffff)
#define STOOK_SEAL_ONES   UINT64_C(0x0101010101010101)

extern struct stook_seal_secret {
        uint64_t address, factor;       /* of keys */
        uint64_t tie, untie;            /* odd; their product is 1 */
} stook_seal_secret STOOK_HIDDEN STOOK_ALIGNED(32);
/* At start. */
void stook_seal_start(void);

typedef uint64_t stook_seal_word __attribute__((may_alias, aligned(1)));

/* What ties a word to @object: all that is written about it is made of this. */
STOOK_INLINE uint64_t stook_seal_key(const void *object)
{
        return ((uintptr_t)object ^ stook_seal_secret.address) * stook_seal_secret.factor;
}

/* The seal that says @says. */
STOOK_INLINE uint64_t stook_seal_of(uint64_t key, uint64_t says)
{
        return key + says * stook_seal_secret.tie;
}

/* What @seal says: above SAYS, it is no seal of the object with that key. */
STOOK_INLINE uint64_t stook_seal_untie(uint64_t key, uint64_t seal)
{
        return (seal - key) * stook_seal_secret.untie;
}

STOOK_INLINE bool stook_seal_is_good(uint64_t says)
{
        return STOOK_LIKELY(says <= STOOK_SEAL_SAYS);
}

/* The byte that comes first in memory is of the best bits. */
STOOK_INLINE uint64_t stook_seal_canary(uint64_t key)
{
        return __builtin_bswap64(key) | STOOK_SEAL_ONES;
}

/* @at: bytes from the object's start to its seal. */
STOOK_INLINE uint64_t *stook_seal_word_of(const void *object, size_t at)
{
        return (uint64_t *)((uintptr_t)object + at);
}

STOOK_INLINE uint64_t stook_seal_load(const void *object, size_t at)
{
        return __atomic_load_n(stook_seal_word_of(object, at), __ATOMIC_RELAXED);
}

/* What the object's seal says. */
STOOK_INLINE uint64_t stook_seal_says(const void *object, size_t at)
{
        return stook_seal_untie(stook_seal_key(object), stook_seal_load(object, at));
}

/* Is the object in use, and of that entry point? */
STOOK_INLINE bool stook_seal_is_by(uint64_t says, unsigned by)
{
        return STOOK_LIKELY(!((says ^ (by << STOOK_SEALED_BY_SHIFT | STOOK_SEALED_LIVE)) &
                              ((1u << STOOK_SEALED_BYTES_SHIFT) - 1)));
}

STOOK_INLINE bool stook_seal_is_live(uint64_t says)
{
        return stook_seal_is_good(says) && (says & STOOK_SEALED_LIVE);
}

/* Of a good seal. */
STOOK_INLINE size_t stook_seal_bytes(uint64_t says)
{
        return says >> STOOK_SEALED_BYTES_SHIFT;
}

STOOK_INLINE unsigned stook_seal_made_by(uint64_t says)
{
        return says >> STOOK_SEALED_BY_SHIFT & 7;
}

/* The canary is written whole, and the seal over what of it is too much. */
STOOK_INLINE void stook_seal_write(uint64_t key, void *object, size_t at, size_t bytes,
                                   unsigned by)
{
        uint64_t seal = stook_seal_of(key, (uint64_t)bytes << STOOK_SEALED_BYTES_SHIFT |
                                           by << STOOK_SEALED_BY_SHIFT | STOOK_SEALED_LIVE);

        *(stook_seal_word *)((char *)object + bytes) = stook_seal_canary(key);
        __atomic_store_n(stook_seal_word_of(object, at), seal, __ATOMIC_RELAXED);
}

/* Is what stands behind the @bytes that were asked for as it was left? */
STOOK_INLINE bool stook_seal_canary_is_whole(uint64_t key, const void *object, size_t at,
                                             size_t bytes)
{
        uint64_t differs = *(const stook_seal_word *)((const char *)object + bytes) ^
                           stook_seal_canary(key);
        size_t n = at - bytes;

        return STOOK_LIKELY(!(n < 8 ? differs & ((UINT64_C(1) << 8 * n) - 1) : differs));
}

/*
 * The first word of a free object, and the one that the last byte asked for is in, unless it is
 * zeroed (STOOK_HARDEN_CHECK_FREE), are the canary: no address, and not what the user left. A late
 * write there is found, and a late use of a pointer there fails.
 */
STOOK_INLINE stook_seal_word *stook_seal_last_word(void *object, size_t bytes)
{
        return (stook_seal_word *)((char *)object + ((bytes - !!bytes) & ~(size_t)7));
}

STOOK_INLINE void stook_seal_fill(uint64_t key, void *object, size_t bytes)
{
        *(stook_seal_word *)object = stook_seal_canary(key);
        *stook_seal_last_word(object, bytes) = stook_seal_canary(key);
}

STOOK_INLINE bool stook_seal_is_filled(uint64_t key, void *object, size_t bytes)
{
        return STOOK_LIKELY(*(stook_seal_word *)object == stook_seal_canary(key)) &&
               STOOK_LIKELY(*stook_seal_last_word(object, bytes) == stook_seal_canary(key));
}

/* A user never sees the secret. */
STOOK_INLINE void stook_seal_unfill(void *object, size_t bytes)
{
        *(stook_seal_word *)object = 0;
        *stook_seal_last_word(object, bytes) = 0;
}

/* Of a free object: what was asked for is all that it says, and a byte at least. */
STOOK_INLINE uint64_t stook_seal_of_free(uint64_t key, size_t bytes)
{
        return stook_seal_of(key, (uint64_t)(bytes + !bytes) << STOOK_SEALED_BYTES_SHIFT);
}

STOOK_INLINE bool stook_seal_is_free(uint64_t says)
{
        return stook_seal_is_good(says) &&
               STOOK_LIKELY(!(says & ((1u << STOOK_SEALED_BYTES_SHIFT) - 1)));
}

/*
 * A user's time ends, if the object and what is behind it are whole. @seal: as loaded, and what the
 * caller wanted it to say.
 */
STOOK_INLINE bool stook_seal_end(uint64_t key, void *object, size_t at, uint64_t seal)
{
        uint64_t says = stook_seal_untie(key, seal);

        return STOOK_LIKELY(stook_seal_is_live(says)) &&
               stook_seal_canary_is_whole(key, object, at, stook_seal_bytes(says)) &&
               STOOK_LIKELY(stook_word_cas(stook_seal_word_of(object, at), seal,
                                           stook_seal_of_free(key, stook_seal_bytes(says)),
                                           stook_is_alone()));
}

/* The constructor of slabs whose objects have seals. @at: as the pointer's number. */
void stook_seal_make(void *object, void *at);
/* Do all of the first @bytes read as zeros? */
bool stook_seal_reads_zero(const void *object, size_t bytes);

/* ---- delay.c: freed objects wait, each for a random time ---- */
/* A class's first place, and how many less one: a power of two less one. */
struct stook_delay_class {
        uint32_t first, mask;
};
/*
 * At start, for each class, whose objects have @object_bytes: objects of @bytes, all classes
 * together, may wait for each slot.
 */
struct stook_delay_class stook_delay_add(size_t bytes, size_t object_bytes);

#define STOOK_DELAY_BLOCKS  64          /* more slots share them */
#define STOOK_DELAY_FACTOR  UINT64_C(0x9e3779b97f4a7c15)

struct stook_delay_block {
        uint64_t state;                 /* atomic, relaxed: of the generator */
        uint64_t place[];               /* atomic: an object, or 0 */
};
extern struct stook_delay_block *stook_delay_blocks[STOOK_DELAY_BLOCKS] STOOK_HIDDEN; /* atomic */
STOOK_COLD struct stook_delay_block *stook_delay_make(struct stook_delay_block **at);

/*
 * @object of a class waits. @chance: a number that only the process knows. @slot: of this thread,
 * or of another. Return: another object, whose time is over; NULL: none.
 */
STOOK_INLINE void *stook_delay_swap(struct stook_delay_class of, void *object, uint64_t chance,
                                    uint32_t slot)
{
        struct stook_delay_block **at = &stook_delay_blocks[slot % STOOK_DELAY_BLOCKS];
        struct stook_delay_block *block = __atomic_load_n(at, __ATOMIC_ACQUIRE);
        uint64_t *place, state, other;

        if (STOOK_UNLIKELY(!block) && !(block = stook_delay_make(at)))
                return object;
        /* The place is of the calls before: it is known before the object is. */
        state = __atomic_load_n(&block->state, __ATOMIC_RELAXED);
        place = &block->place[of.first + (state >> 40 & of.mask)];
        __atomic_store_n(&block->state, (state ^ chance) * STOOK_DELAY_FACTOR, __ATOMIC_RELAXED);
        do {
                other = __atomic_load_n(place, __ATOMIC_RELAXED);
        } while (!stook_word_cas(place, other, (uintptr_t)object, stook_is_alone()));
        return (void *)other;
}
/* All that wait, of any class: @leave is called for each. */
void stook_delay_flush(void (*leave)(void *object));

#endif
