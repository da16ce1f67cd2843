/*
 * Proves of src/barn/sheaf_pool.c, as it is: a walk over all sheaves beside threads that make and
 * give up sheaves finds each run whole, and each sheaf's capacity and counts; no two threads get
 * one sheaf.
 */
#include <string.h>

#include "selves.h"

#include "barn/sheaf_pool.c"

/* ---- the layers below ---- */

static _Alignas(64) char memory[64 << 10];
static size_t memory_used;              /* atomic */

void *stook_meta_bump(size_t bytes, size_t align)
{
        (void)align;
        return memory + __atomic_fetch_add(&memory_used, (bytes + 63) & ~(size_t)63,
                                           __ATOMIC_RELAXED);
}

static struct stook_counters counters;
static uint64_t far[STOOK_COUNTERS_FAR_COUNT];
static struct stook_sheaf *made[2];

static void reset(void)
{
        memset(memory, 0, memory_used);
        memory_used = 0;
        stook_sheaf_runs = NULL;
        memset(&idle[0], 0, sizeof(idle[0]));
        counters = (struct stook_counters){ .far = far };
}

static void make_one(void)
{
        struct stook_sheaf *sheaf = stook_sheaf_new(1 + weak_me, 250, 0, &counters);

        weak_assert(sheaf && stook_sheaf_capacity(sheaf) == 250);
        made[weak_me] = sheaf;
}

static void make_and_delete(void)
{
        struct stook_sheaf *sheaf = stook_sheaf_new(1 + weak_me, 250, 0, &counters);

        weak_assert(sheaf);
        made[weak_me] = NULL;
        stook_sheaf_delete(sheaf, &counters);
}

static void look(struct stook_sheaf *sheaf, unsigned index, void *data)
{
        struct stook_sheaf_sums *sums = data;

        weak_assert(index == 1 || index == 2);
        stook_sheaf_sum_in(sheaf, sums);
}

static void walk(void)
{
        struct stook_sheaf_sums sums = { 0 };

        stook_sheaf_walk(look, &sums);
        weak_assert(sums.sheaves <= 2 && !sums.objects && !sums.pops && !sums.pushes);
}

static void apart(void)
{
        weak_assert(!made[0] || made[0] != made[1]);
}

static const struct weak_program made_beside_a_walk = {
        "sheaves, beside a walk", reset, { make_one, make_and_delete, walk }, apart, 2, 1
};
static const struct weak_program made_by_two = {
        "sheaves, by two", reset, { make_one, make_one }, apart, 3, 2
};

int main(void)
{
        weak_hold(&made_beside_a_walk);
        weak_hold(&made_by_two);
        return 0;
}
