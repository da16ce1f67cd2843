/*
 * Purpose: memory for the parts of slabs that have more of them than fit into their descriptors,
 * and for the bits of constructed objects.
 * Place: called by slab_birth.c; calls pages (metadata).
 *
 * Blocks come in a few sizes and two kinds: with or without room for the bits of constructed
 * objects. A free block waits on a stack of its size and kind, and serves as that again.
 *
 * Invariants:
 *  A1 A cell that once was a part's pair is never anything else. Its low word keeps the generation
 *     of its last life and the flag RELEASED while the block is free (slab_state.h S7). The stack's
 *     link lies in the high word of the first pair, which nothing else reads then.
 * Concurrency: lock-free stacks; any thread, any instruction.
 * Failure: NULL: no memory.
 */
#include "pages/meta.h"
#include "slab/slab_inside.h"

#define PARTS_LEAST 4                   /* one cache line */
#define SIZES       5                   /* 4, 8, 16, 32, 64 parts */
_Static_assert(PARTS_LEAST << (SIZES - 1) == STOOK_SLAB_PARTS,
               "the largest block has all parts of a slab");

static struct stook_tagged_stack blocks[2][SIZES];

static unsigned size_of(unsigned parts)
{
        return parts <= PARTS_LEAST ? 0 : 32 - (unsigned)__builtin_clz(parts - 1) - 2;
}

bool stook_slab_parts_new(struct stook_slab *slab, bool made)
{
        unsigned size = size_of(slab->part_count), room = PARTS_LEAST << size;
        size_t bytes = sizeof(struct stook_pair) + (made ? sizeof(uint64_t) : 0);
        struct stook_link *link;

        slab->made_at = 0;
        slab->parts = stook_slab_span(slab)->pair;
        if (slab->part_count <= STOOK_SPAN_PAIRS && !made)
                return true;
        link = stook_tagged_stack_pop(&blocks[made][size]);
        if (link)
                slab->parts = stook_container_of((uintptr_t *)link, struct stook_pair, hi);
        else
                slab->parts = stook_meta_bump(room * bytes, 0);
        if (made)
                slab->made_at = (uint8_t)room;
        return slab->parts != NULL;
}

void stook_slab_parts_free(struct stook_slab *slab)
{
        if (slab->parts != stook_slab_span(slab)->pair)
                stook_tagged_stack_push(&blocks[slab->made_at != 0][size_of(slab->part_count)],
                                        (struct stook_link *)&slab->parts->hi);
}
