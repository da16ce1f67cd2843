/*
 * Purpose: a slot's spare sheaf, taken out and put back whole, for prefilled sheaves.
 * Place: called by prefill/prefill.c; one exchange each.
 *
 * {main, S} becomes {main, none}, and the other way round. S is whatever sheaf was the spare, with
 * any number of objects. A spare that is neither full nor empty is what the table of slot_pair.h
 * means by "not full" and "not empty".
 *
 * Invariants:
 *  I1 a sheaf is put back under the generation in which its capacity was found to be the cache's.
 * Concurrency: any thread, any instruction.
 * Failure: after abort_limit (section/section.h) refusals the slot has no sheaf to give, or no
 *  place for one. Nothing has changed then.
 */
#include "base/inject.h"
#include "slot/slot.h"

static struct stook_pair with_spare(struct stook_pair p, const struct stook_sheaf *spare)
{
        return (struct stook_pair){ .lo = p.lo, .hi = (uintptr_t)spare };
}

static bool exchange(struct stook_front *front, struct stook_pair from,
                     const struct stook_sheaf *spare, uint32_t generation)
{
        unsigned size = stook_sheaf_size((const struct stook_sheaf *)from.lo);

        if (STOOK_INJECT_EVERY(lend_fail))
                return false;
        return stook_slot_ops()->exchange(front->offset, from, with_spare(from, spare), size,
                                          &front->config, generation);
}

struct stook_sheaf *stook_slot_take_spare(struct stook_front *front)
{
        uint32_t generation = __atomic_load_n(&front->config, __ATOMIC_ACQUIRE);
        const struct stook_section_ops *ops = stook_slot_ops();

        for (unsigned tries = 0; !(generation & 1) && tries < ops->abort_limit; tries++) {
                struct stook_pair seen = ops->look(front->offset);

                if (!seen.hi)
                        break;
                if (exchange(front, seen, NULL, generation))
                        return (struct stook_sheaf *)seen.hi;
        }
        return NULL;
}

bool stook_slot_give_spare(struct stook_front *front, struct stook_sheaf *sheaf)
{
        uint32_t generation = __atomic_load_n(&front->config, __ATOMIC_ACQUIRE);
        const struct stook_section_ops *ops = stook_slot_ops();

        if ((generation & 1) || stook_sheaf_capacity(sheaf) != stook_barns_capacity(front->below))
                return false;
        for (unsigned tries = 0; tries < ops->abort_limit; tries++) {
                struct stook_pair seen = ops->look(front->offset);

                if (seen.hi)
                        break;
                if (exchange(front, seen, sheaf, generation))
                        return true;
        }
        return false;
}
