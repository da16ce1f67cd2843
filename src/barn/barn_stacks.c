/*
 * Purpose: the two stacks of a barn, for the files of this folder: see barn_stacks.h.
 * Place: called by the other files of this folder; calls nothing below.
 */
#include "barn/barn_stacks.h"
#include "report/report.h"

bool stook_barn_has_room(struct stook_barns *barns, unsigned node)
{
        return stook_stacks_have_room(barns, node);
}

bool stook_barn_is_unasked(struct stook_barns *barns, unsigned node)
{
        return stook_stacks_are_unasked(barns, __atomic_load_n(&barns->node[node].unasked,
                                                               __ATOMIC_RELAXED));
}

bool stook_barn_push_full(struct stook_barns *barns, unsigned node, struct stook_sheaf *full)
{
        stook_assert(stook_sheaf_full(full), "barn I1");
        return stook_stacks_push_full(barns, node, full);
}

bool stook_barn_push_empty(struct stook_barns *barns, unsigned node, struct stook_sheaf *empty)
{
        stook_assert(stook_sheaf_size(empty) == 0, "barn I1");
        return stook_stacks_push_empty(barns, node, empty);
}

struct stook_sheaf *stook_barn_pop_full(struct stook_barns *barns, unsigned node)
{
        return stook_stacks_pop_full(barns, node);
}

struct stook_sheaf *stook_barn_pop_empty(struct stook_barns *barns, unsigned node)
{
        return stook_stacks_pop_empty(barns, node);
}

struct stook_sheaf *stook_barn_ask_full(struct stook_barns *barns, unsigned node)
{
        return stook_stacks_ask_full(barns, node);
}
