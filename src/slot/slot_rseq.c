/*
 * Purpose: the rseq backend: the contract of slot/slot.h by restartable sequences.
 * Place: called by slot_miss.c and, for nodes and bulk, by cache; the sections are in arch/ and
 *  slot_section.h.
 * Invariants:
 *  I1 only rseq_cs of the kernel's area is written; the library is never unloaded, so it is left pointing at
 *     the last section.
 * Concurrency: any thread, any instruction; a thread that is not enrolled (ready 0) gets misses.
 */
#include "slot/slot_regions.h"
#include "slot/slot_stock.h"
#if defined(__x86_64__)
#include "slot/arch/rseq_x86_64.h"
#elif defined(__aarch64__)
#include "slot/arch/rseq_aarch64.h"
#endif

/* In slot 0: sections add the slot. */
static uintptr_t line_of(uint32_t offset)
{
        return (uintptr_t)stook_sections.slots + offset;
}

static void *pop(uint32_t offset)
{
        return stook_section_pop(line_of(offset));
}

static struct stook_pair look(uint32_t offset)
{
        struct stook_pair nothing = { .lo = (uintptr_t)&stook_sheaf_zero };
        uint32_t ready = stook_self->ready;
        uint32_t slot = ready ? *stook_slot_index(stook_self) : 0;
        char *line;

        if (slot >= ready)
                return nothing;
        line = stook_sections.slots + ((size_t)slot << STOOK_SLOT_SHIFT) + offset;
        return stook_pair_read(&((struct stook_line *)line)->pair);
}

static struct stook_line *own(void)
{
        uint32_t ready = stook_self->ready;
        uint32_t slot = ready ? *stook_slot_index(stook_self) : 0;

        return slot < ready ? (struct stook_line *)(stook_sections.slots + ((size_t)slot << STOOK_SLOT_SHIFT)) : NULL;
}

/* Sheaf memory is type-stable, so a stale main is still a sheaf. */
static void *peek(uint32_t offset)
{
        const struct stook_sheaf *main = (const struct stook_sheaf *)look(offset).lo;
        unsigned size = stook_sheaf_size(main);

        if (!size || size > main->capacity)
                return NULL;
        return __atomic_load_n(&main->objects[size - 1], __ATOMIC_RELAXED);
}

/* On several nodes a sheaf refuses single pushes: barn/sheaf.h I5. Who comes here knows that the object may go there. */
static STOOK_NOINLINE enum stook_push push_past_bound(uint32_t offset, void *object)
{
        if (peek(offset) == object)
                return STOOK_PUSH_DOUBLE;
        return stook_section_push_n(line_of(offset), 1, &object) ? STOOK_PUSH_DONE : STOOK_PUSH_MISS;
}

static enum stook_push push(uint32_t offset, void *object)
{
        if (STOOK_UNLIKELY(stook_regions.nodes > 1))
                return push_past_bound(offset, object);
        return stook_section_push(line_of(offset), object);
}

static size_t pop_n(uint32_t offset, size_t n, void **objects)
{
        return n ? stook_section_pop_n(line_of(offset), n < STOOK_SLOT_BATCH ? n : STOOK_SLOT_BATCH, objects) : 0;
}

static size_t push_n(uint32_t offset, size_t n, void *const *objects)
{
        return n ? stook_section_push_n(line_of(offset), n < STOOK_SLOT_BATCH ? n : STOOK_SLOT_BATCH, objects) : 0;
}

static void *pop_if(uint32_t offset, void *expected)
{
        return stook_section_pop_if(line_of(offset), expected);
}

static bool exchange(uint32_t offset, struct stook_pair expected, struct stook_pair desired, unsigned size,
                     const uint32_t *config, uint32_t generation)
{
        static const uint32_t unconditional;

        if (!config) {
                config = &unconditional;
                generation = 0;
        }
        return stook_section_exchange(line_of(offset), expected, desired, size, config, generation);
}

static bool stock_add(uint32_t offset, uint64_t tag, int64_t delta)
{
        return stook_section_stock_add(line_of(offset), tag, delta);
}

static bool stock_set(uint32_t offset, uint64_t expected, uint64_t desired)
{
        return stook_section_stock_set(line_of(offset), expected, desired);
}

static uint64_t stock_look(uint32_t offset)
{
        uint32_t ready = stook_self->ready;
        uint32_t slot = ready ? *stook_slot_index(stook_self) : 0;

        if (slot >= ready)
                return 0;
        return __atomic_load_n((uint64_t *)(stook_sections.slots + ((size_t)slot << STOOK_SLOT_SHIFT) + offset),
                               __ATOMIC_RELAXED);
}

static void *rcu_push(uint32_t offset, void *object)
{
        return stook_section_rcu_push(line_of(offset), object);
}

static struct stook_sheaf *rcu_fill(uint32_t offset, void *object)
{
        struct stook_sheaf *sheaf = stook_section_rcu_fill(line_of(offset), object);

        if (sheaf)
                __atomic_store_n(&sheaf->word, sheaf->word + 1, __ATOMIC_RELAXED);
        return sheaf;
}

const struct stook_slot_ops stook_slot_rseq = {
        .name = "rseq",
        .abort_limit = 16,              /* a debugger that steps aborts every one; 50 kHz of signals hardly two */
        .pop = pop,
        .push = push,
        .pop_n = pop_n,
        .push_n = push_n,
        .peek = peek,
        .pop_if = pop_if,
        .look = look,
        .own = own,
        .exchange = exchange,
        .stock_add = stock_add,
        .stock_set = stock_set,
        .stock_look = stock_look,
        .rcu_push = rcu_push,
        .rcu_fill = rcu_fill,
};
