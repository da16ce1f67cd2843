/*
 * Purpose: the seal: a word behind each object of malloc's classes, for STOOK_HARDEN's canary,
 * double and pairs.
 *
 *      what was asked for | canary, to the seal | seal: the last 8 bytes of the stride
 *
 * The seal says whether the object has a user, the bytes asked for, and which entry point made it.
 * A hash with the process's secret ties that to the address, so what overwrites it is found, also
 * where it is a copy of another object's seal. The canary is the first 8 of the bytes behind what
 * was asked for, as far as there are any before the seal, by the same secret; none of them is 0.
 * Invariants:
 *  I1 a seal is SEALED_FREE from when its object is made until it is handed out, and from its free
 *     on. Of two frees at once one succeeds: a free is a compare-and-swap of the seal.
 *  I2 no byte of a seal or a canary is a program's, so what differs was written by mistake.
 * Place: called by watch alone. Concurrency: any thread, any instruction; no lock. The secret is
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
#include "base/thread.h"

#define STOOK_SEAL_BYTES 8

/* Bit 0: live. Bits 1 to 3: who made it, as the watch says. Bits 4 to 20: the bytes asked for. */
#define STOOK_SEALED_LIVE UINT64_C(1)
#define STOOK_SEALED_WAITING (UINT64_C(7) << 1) /* freed by RCU; readers may look at it */
#define STOOK_SEAL_SAYS   UINT64_C(0x1fffff)
#define STOOK_SEAL_MIX    UINT64_C(0x9e3779b97f4a7c15)
#define STOOK_SEAL_ONES   UINT64_C(0x0101010101010101)

extern uint64_t stook_seal_secret[2] STOOK_HIDDEN;
/* At start. */
void stook_seal_start(void);

typedef uint64_t stook_seal_word __attribute__((may_alias, aligned(1)));

/* The seal of @object that says @says. */
STOOK_INLINE uint64_t stook_seal_of(const void *object, uint64_t says)
{
        uint64_t x = ((uintptr_t)object ^ stook_seal_secret[0]) + says * stook_seal_secret[1];

        return (x * STOOK_SEAL_MIX & ~STOOK_SEAL_SAYS) | says;
}

STOOK_INLINE uint64_t stook_seal_canary(const void *object)
{
        return (((uintptr_t)object + stook_seal_secret[1]) * STOOK_SEAL_MIX) | STOOK_SEAL_ONES;
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

STOOK_INLINE bool stook_seal_is_good(const void *object, uint64_t seal)
{
        return STOOK_LIKELY(seal == stook_seal_of(object, seal & STOOK_SEAL_SAYS));
}

STOOK_INLINE size_t stook_seal_bytes(uint64_t seal)
{
        return (seal & STOOK_SEAL_SAYS) >> 4;
}

STOOK_INLINE unsigned stook_seal_made_by(uint64_t seal)
{
        return seal >> 1 & 7;
}

/* The canary is written whole, and the seal over what of it is too much. */
STOOK_INLINE void stook_seal_write(void *object, size_t at, size_t bytes, unsigned by)
{
        *(stook_seal_word *)((char *)object + bytes) = stook_seal_canary(object);
        __atomic_store_n(stook_seal_word_of(object, at),
                         stook_seal_of(object, bytes << 4 | (uint64_t)by << 1 | STOOK_SEALED_LIVE),
                         __ATOMIC_RELAXED);
}

/* Is what stands behind the @bytes that were asked for as it was left? */
STOOK_INLINE bool stook_seal_canary_is_whole(const void *object, size_t at, size_t bytes)
{
        uint64_t differs = *(const stook_seal_word *)((const char *)object + bytes) ^
                           stook_seal_canary(object);
        size_t n = at - bytes;

        return STOOK_LIKELY(!(n < 8 ? differs & ((UINT64_C(1) << 8 * n) - 1) : differs));
}

/*
 * The first word of a free object, unless it is zeroed (STOOK_HARDEN_CHECK_FREE): no address, and
 * not what the user left. A late write there is found, and a late use of a pointer there fails.
 */
STOOK_INLINE void stook_seal_fill(void *object)
{
        *(stook_seal_word *)object = ~stook_seal_canary(object);
}

STOOK_INLINE bool stook_seal_is_filled(const void *object)
{
        return STOOK_LIKELY(*(const stook_seal_word *)object == ~stook_seal_canary(object));
}

/* A user never sees the secret. */
STOOK_INLINE void stook_seal_unfill(void *object)
{
        *(stook_seal_word *)object = 0;
}

/* @object is free, and goes to a user that asks for @bytes. False: its seal was overwritten. */
STOOK_INLINE bool stook_seal_begin(void *object, size_t at, size_t bytes)
{
        if (STOOK_UNLIKELY(stook_seal_load(object, at) != stook_seal_of(object, 0)))
                return false;
        stook_seal_write(object, at, bytes, 0);
        return true;
}

/* A user's time ends, if the object and what is behind it are whole. @seal: as loaded. */
STOOK_INLINE bool stook_seal_end(void *object, size_t at, uint64_t seal)
{
        return STOOK_LIKELY(seal & STOOK_SEALED_LIVE) && stook_seal_is_good(object, seal) &&
               stook_seal_canary_is_whole(object, at, stook_seal_bytes(seal)) &&
               STOOK_LIKELY(stook_word_cas(stook_seal_word_of(object, at), seal,
                                           stook_seal_of(object, 0), stook_is_alone()));
}

/* The constructor of slabs whose objects have seals. @at: as the pointer's number. */
void stook_seal_make(void *object, void *at);
/* Do all of the first @bytes read as zeros? */
bool stook_seal_reads_zero(const void *object, size_t bytes);

/* ---- delay.c: freed objects wait, each for a random time ---- */
/*
 * At start: objects of @bytes may wait for each thread, of classes whose objects have
 * bytes_of[class].
 */
void stook_delay_start(size_t bytes, unsigned classes, const uint32_t *bytes_of);

#define STOOK_DELAY_BITS    6
#define STOOK_DELAY_BLOCKS  (1u << STOOK_DELAY_BITS)    /* more threads share them */
#define STOOK_DELAY_CLASSES 80                          /* no fewer than malloc has */

struct stook_delay_block {
        uint64_t state;                 /* atomic, relaxed: of the generator */
        uint64_t place[];               /* atomic: an object, or 0 */
};
extern struct stook_delay_block *stook_delay_blocks[STOOK_DELAY_BLOCKS] STOOK_HIDDEN; /* atomic */
/* Const after the start: a class's first place, and how many less one: a power of two less one. */
extern struct stook_delay_class {
        uint32_t first, mask;
} stook_delay_classes[STOOK_DELAY_CLASSES] STOOK_HIDDEN;
STOOK_COLD struct stook_delay_block *stook_delay_make(struct stook_delay_block **at);

/* @object of @class waits. Return: another one, whose time is over; NULL: none. */
STOOK_INLINE void *stook_delay_swap(unsigned class, void *object)
{
        struct stook_delay_block **at = &stook_delay_blocks[(uintptr_t)stook_self * STOOK_SEAL_MIX
                                                            >> (64 - STOOK_DELAY_BITS)];
        struct stook_delay_block *block = __atomic_load_n(at, __ATOMIC_ACQUIRE);
        struct stook_delay_class of = stook_delay_classes[class];
        bool alone = stook_is_alone();
        uint64_t *place, state, other;

        if (STOOK_UNLIKELY(!block) && !(block = stook_delay_make(at)))
                return object;
        state = __atomic_load_n(&block->state, __ATOMIC_RELAXED) + STOOK_SEAL_MIX;
        __atomic_store_n(&block->state, state, __ATOMIC_RELAXED);
        state ^= state >> 31;
        place = &block->place[of.first + (state * stook_seal_secret[1] >> 40 & of.mask)];
        do {
                other = __atomic_load_n(place, __ATOMIC_RELAXED);
        } while (!stook_word_cas(place, other, (uintptr_t)object, alone));
        return (void *)other;
}
/* All that wait, of any class: @leave is called for each. */
void stook_delay_flush(void (*leave)(void *object));

#endif
