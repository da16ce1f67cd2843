/*
 * Purpose: numbers for call stacks: a hash table that only grows. A stack never moves and never
 * goes away, so a number stays valid, and another process can read the table while it grows.
 * Place: called by stack_walk.c and readers of stacks; calls pages for metadata.
 * Invariants:
 *  I1 units below `next_unit` have one owner for ever: a stack, or a call that did not get to
 *     publish one. So a handler, a thread that ends and a forked child leave a whole table.
 *  I2 a stack that a bucket leads to is complete, and its fields never change.
 *  I3 two equal stacks may have two numbers, after two calls at once. Only memory is lost.
 * Concurrency: any thread, any instruction. M1: the releasing compare-and-swap of a bucket, or of a
 *  block's address, pairs with the acquire of the thread that follows it.
 * Failure: 0, once the blocks are used up or there is no memory.
 */
#include <string.h>

#include "pages/meta.h"
#include "stack/stack.h"

#define BUCKETS 16384                   /* 64 KiB; arbitrary */

char *stook_stack_blocks[STOOK_STACK_BLOCKS] STOOK_MOSTLY_UNUSED;
static uint32_t *buckets;               /* written by the start; each: atomic, number of a stack */
static uint32_t  next_unit = 1;         /* atomic: I1; number 0 is no stack */

bool stook_stack_table_start(void)
{
        if (!buckets)
                buckets = stook_meta_bump(BUCKETS * sizeof(*buckets), 0);
        return buckets != NULL;
}

static const struct stook_stack *stack_at(uint32_t number)
{
        char *block;

        if (!number || number / STOOK_STACK_UNITS >= STOOK_STACK_BLOCKS)
                return NULL;
        block = __atomic_load_n(&stook_stack_blocks[number / STOOK_STACK_UNITS], __ATOMIC_ACQUIRE);
        if (!block)
                return NULL;
        return (const void *)(block + number % STOOK_STACK_UNITS * STOOK_STACK_UNIT);
}

static uint32_t hash_of(const uintptr_t *frames, unsigned count)
{
        uint64_t hash = count;

        for (unsigned i = 0; i < count; i++)
                hash = (hash ^ frames[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
        return (uint32_t)(hash >> 32);
}

/* Looks from @number on, up to @end: that one and those behind it were looked at before. */
static uint32_t find(uint32_t number, uint32_t end, uint32_t hash, const uintptr_t *frames,
                     unsigned count)
{
        while (number != end) {
                const struct stook_stack *stack = stack_at(number);

                if (stack->hash == hash && stack->count == count &&
                    !memcmp(stack->frames, frames, count * sizeof(*frames)))
                        return number;
                number = stack->next;
        }
        return 0;
}

/* The memory behind block @i. Of two threads that make it at once, one wastes 64 KiB. */
static char *block_at(uint32_t i)
{
        char *block = __atomic_load_n(&stook_stack_blocks[i], __ATOMIC_ACQUIRE), *made;

        if (block)
                return block;
        made = stook_meta_bump(STOOK_STACK_BLOCK_BYTES, 0);
        if (!made)
                return NULL;
        if (__atomic_compare_exchange_n(&stook_stack_blocks[i], &block, made, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return made;
        return block;
}

/* Room for a stack; its number in *@number. A stack never spans two blocks. */
static struct stook_stack *stack_new(unsigned count, uint32_t *number)
{
        size_t bytes = sizeof(struct stook_stack) + count * sizeof(uintptr_t);
        uint32_t units = (uint32_t)((bytes + STOOK_STACK_UNIT - 1) / STOOK_STACK_UNIT);
        uint32_t at = __atomic_load_n(&next_unit, __ATOMIC_RELAXED), start;
        char *block;

        do {
                start = at;
                if (start % STOOK_STACK_UNITS + units > STOOK_STACK_UNITS)
                        start = (start / STOOK_STACK_UNITS + 1) * STOOK_STACK_UNITS;
                if (start / STOOK_STACK_UNITS >= STOOK_STACK_BLOCKS)
                        return NULL;
                /* The block first: a number without memory behind it would be wasted. */
                block = block_at(start / STOOK_STACK_UNITS);
                if (!block)
                        return NULL;
        } while (!__atomic_compare_exchange_n(&next_unit, &at, start + units, true,
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        *number = start;
        return (void *)(block + start % STOOK_STACK_UNITS * STOOK_STACK_UNIT);
}

uint32_t stook_stack_number(const uintptr_t *frames, unsigned count)
{
        uint32_t hash, *bucket, head, number, end = 0, mine;
        struct stook_stack *stack;

        if (!buckets || !count || count > STOOK_STACK_FRAMES_MOST)
                return 0;
        hash = hash_of(frames, count);
        bucket = &buckets[hash % BUCKETS];
        head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
        number = find(head, 0, hash, frames, count);
        if (number)
                return number;
        stack = stack_new(count, &mine);
        if (!stack)
                return 0;
        stack->hash = hash;
        stack->count = count;
        stack->modules = stook_stack_note_modules(frames, count);
        memcpy(stack->frames, frames, count * sizeof(*frames));
        for (;;) {
                stack->next = end = head;
                if (__atomic_compare_exchange_n(bucket, &head, mine, false, __ATOMIC_ACQ_REL,
                                                __ATOMIC_ACQUIRE))
                        return mine;
                number = find(head, end, hash, frames, count);
                if (number)
                        return number;
        }
}

static const struct stook_stack *whole_stack(uint32_t id)
{
        const struct stook_stack *stack = NULL;

        if (id < __atomic_load_n(&next_unit, __ATOMIC_RELAXED))
                stack = stack_at(id);
        return stack && stack->count <= STOOK_STACK_FRAMES_MOST ? stack : NULL;
}

unsigned stook_stack_frames(uint32_t id, uintptr_t *frames, unsigned most)
{
        const struct stook_stack *stack = whole_stack(id);
        unsigned count = 0;

        if (stack)
                count = stack->count < most ? stack->count : most;
        if (count)
                memcpy(frames, stack->frames, count * sizeof(*frames));
        return count;
}

uint32_t stook_stack_modules_of(uint32_t id)
{
        const struct stook_stack *stack = whole_stack(id);

        return stack ? stack->modules : 0;
}

size_t stook_stack_bytes(void)
{
        uint32_t units = __atomic_load_n(&next_unit, __ATOMIC_RELAXED);
        size_t blocks = (units + STOOK_STACK_UNITS - 1) / STOOK_STACK_UNITS;

        return buckets ? blocks * STOOK_STACK_BLOCK_BYTES + BUCKETS * sizeof(*buckets) : 0;
}
