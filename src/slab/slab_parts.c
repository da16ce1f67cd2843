/*
 * Purpose: memory for the parts of slabs that have more of them than fit into their descriptors,
 * and for the bits of constructed objects.
 * Place: called by slab_birth.c; calls pages (metadata).
 *
 * Blocks come in a few sizes and two kinds: with or without room for the bits of constructed
 * objects. A free block waits on a stack of its size and kind, and serves as that again.
 *
 * Invariants:
 *  A1 A cell that once was a part's pair is never anything else. While the block is free, a pair
 *     keeps the generation of its last life and the flag RELEASED (slab_state.h S7), and its bits
 *     stay set (S9). Only the first pair's low word has another use then: the stack's link. Its
 *     generation, which is never less than the second pair's, waits in the second pair.
 * Concurrency: lock-free stacks; any thread, any instruction.
 * Failure: NULL: no memory.
 */
#include "pages/meta.h"
#include "slab/slab_inside.h"

#define LEAST_LOG2 2                    /* 4 parts are one cache line */
#define SIZES      5                    /* 4, 8, 16, 32, 64 parts */
#define NEAR_LOG2  1
_Static_assert(1 << (LEAST_LOG2 + SIZES - 1) == STOOK_SLAB_PARTS,
               "the largest block has all parts of a slab");
_Static_assert(1 << NEAR_LOG2 == STOOK_SPAN_PAIRS, "the room in a descriptor");

static struct stook_tagged_stack blocks[2][SIZES];

static unsigned size_of(unsigned parts)
{
        return parts <= 1 << LEAST_LOG2 ? 0 :
               32 - (unsigned)__builtin_clz(parts - 1) - LEAST_LOG2;
}

/* Atomic: a thread that is late in popping this block may still read its link. */
static void keep_generation(struct stook_pair *to, const struct stook_pair *from)
{
        __atomic_store_n(&to->lo, from->lo, __ATOMIC_RELEASE);
}

/* NULL: no memory. */
static struct stook_pair *new_block(unsigned size, bool made)
{
        size_t bytes = sizeof(struct stook_pair) + (made ? sizeof(uint64_t) : 0);
        struct stook_link *link = stook_tagged_stack_pop(&blocks[made][size]);
        struct stook_pair *block;

        if (!link)
                return stook_meta_bump(bytes << (LEAST_LOG2 + size), 0);
        block = stook_container_of((uint64_t *)link, struct stook_pair, lo);
        keep_generation(&block[0], &block[1]);
        return block;
}

bool stook_slab_parts_new(struct stook_slab *slab, bool made)
{
        struct stook_pair *parts = stook_slab_span(slab)->pair;
        unsigned room = NEAR_LOG2;

        slab->made_at = 0;
        if (slab->part_count > STOOK_SPAN_PAIRS || made) {
                room = LEAST_LOG2 + size_of(slab->part_count);
                parts = new_block(room - LEAST_LOG2, made);
                if (!parts)
                        return false;
                slab->made_at = made ? (uint8_t)(1 << room) : 0;
        }
        /* Atomic: a late free reads it (slab_state.h S9). */
        __atomic_store_n(&slab->parts, (uintptr_t)parts | room, __ATOMIC_RELEASE);
        return true;
}

void stook_slab_parts_free(struct stook_slab *slab)
{
        struct stook_pair *parts = stook_slab_parts(slab);

        /* Atomic: a late free reads it (slab_state.h S9). */
        __atomic_store_n(&slab->parts, 0, __ATOMIC_RELEASE);
        if (parts == stook_slab_span(slab)->pair)
                return;
        keep_generation(&parts[1], &parts[0]);
        stook_tagged_stack_push(&blocks[slab->made_at != 0][size_of(slab->part_count)],
                                (struct stook_link *)&parts->lo);
}
