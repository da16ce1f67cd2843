/*
 * Purpose: the contract of section.h by restartable sequences.
 * Place: called by slot through the table of operations. The sections are in section_hot.h,
 *  section_precharge.h, and a file for each machine.
 * Invariants:
 *  I1 of the kernel's area only rseq_cs is written. The library is never unloaded, so rseq_cs may
 *     keep pointing at the last section.
 * Concurrency: any thread, any instruction. A thread that is not enrolled (ready 0) has misses.
 */
#include "section/section.h"
#include "section/section_precharge.h"

struct stook_sections stook_sections = { .index = STOOK_RSEQ_MM_CID };

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
        uint32_t slot = ready ? *stook_section_index(stook_self) : 0;
        char *line;

        if (slot >= ready)
                return nothing;
        line = stook_sections.slots + ((size_t)slot << STOOK_SLOT_SHIFT) + offset;
        return stook_pair_read(&((struct stook_line *)line)->pair);
}

static struct stook_slot_head *own(void)
{
        uint32_t ready = stook_self->ready;
        uint32_t slot = ready ? *stook_section_index(stook_self) : 0;
        char *at = stook_sections.slots + ((size_t)slot << STOOK_SLOT_SHIFT);

        return slot < ready ? (struct stook_slot_head *)at : NULL;
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

static enum stook_push push(uint32_t offset, void *object)
{
        return stook_section_push(line_of(offset), object);
}

static size_t pop_n(uint32_t offset, size_t n, void **objects)
{
        return n ? stook_section_pop_n(line_of(offset),
                                       n < STOOK_SECTION_BATCH ? n : STOOK_SECTION_BATCH, objects)
                 : 0;
}

static size_t push_n(uint32_t offset, size_t n, void *const *objects)
{
        return n ? stook_section_push_n(line_of(offset),
                                        n < STOOK_SECTION_BATCH ? n : STOOK_SECTION_BATCH, objects)
                 : 0;
}

static void *pop_if(uint32_t offset, void *expected)
{
        return stook_section_pop_if(line_of(offset), expected);
}

static bool rearm(uint32_t offset, struct stook_sheaf *main, uint64_t from, uint64_t to)
{
        return stook_section_rearm(line_of(offset), main, from, to);
}

static bool exchange(uint32_t offset, struct stook_pair expected, struct stook_pair desired,
                     unsigned size, const uint32_t *config, uint32_t generation)
{
        static const uint32_t unconditional;

        if (!config) {
                config = &unconditional;
                generation = 0;
        }
        return stook_section_exchange(line_of(offset), expected, desired, size, config, generation);
}

static bool precharge_add(uint32_t offset, uint64_t tag, int64_t delta)
{
        return stook_section_precharge_add(line_of(offset), tag, delta);
}

static bool precharge_set(uint32_t offset, uint64_t expected, uint64_t desired)
{
        return stook_section_precharge_set(line_of(offset), expected, desired);
}

static uint64_t precharge_look(uint32_t offset)
{
        uint32_t ready = stook_self->ready;
        uint32_t slot = ready ? *stook_section_index(stook_self) : 0;
        char *word;

        if (slot >= ready)
                return 0;
        word = stook_sections.slots + ((size_t)slot << STOOK_SLOT_SHIFT) + offset;
        return __atomic_load_n((uint64_t *)word, __ATOMIC_RELAXED);
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

const struct stook_section_ops stook_section_rseq = {
        .name = "rseq",
        /* A debugger that steps aborts every section; signals at 50 kHz hardly two in a row. */
        .abort_limit = 16,
        .pop = pop,
        .push = push,
        .pop_n = pop_n,
        .push_n = push_n,
        .peek = peek,
        .pop_if = pop_if,
        .rearm = rearm,
        .look = look,
        .own = own,
        .exchange = exchange,
        .precharge_add = precharge_add,
        .precharge_set = precharge_set,
        .precharge_look = precharge_look,
        .rcu_push = rcu_push,
        .rcu_fill = rcu_fill,
};
