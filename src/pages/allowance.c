/*
 * Purpose: how much free memory a node may keep: allowance.h.
 * Place: called by purge.c and recent.c; reads what span.c counts, swing.h and replace.h.
 * Failure: none.
 */
#include "pages/allowance.h"
#include "pages/policy.h"

/*
 * The end of a spike: less than this part of the most of lately is in use. MiB left of 256 of mixed
 * sizes that are freed in random order, medians: 25 without it, 21 with 8 and with 4. The time is
 * the same; 8 asks the system 2 % more often, 4 up to 16 %.
 */
#define SPIKE_END_PART 8
#define ALLOWANCE    ((size_t)1 << 20)  /* dirty memory that is never purged at once */
#define KEPT_PART    8                  /* of what is in use */

static bool is_aged;                    /* atomic, relaxed: "aged" of allowance.h */

void stook_pages_set_aged(bool aged)
{
        __atomic_store_n(&is_aged, aged, __ATOMIC_RELAXED);
}

bool stook_pages_is_aged(void)
{
        return __atomic_load_n(&is_aged, __ATOMIC_RELAXED);
}

size_t stook_pages_recurring(const struct stook_pages_node *node)
{
        size_t missed = __atomic_load_n(&node->retaken_bytes, __ATOMIC_RELAXED);
        size_t swing = missed ? stook_swing_bytes(&node->swing) : 0;

        return missed >= swing / 2 ? swing : missed;
}

size_t stook_pages_missed(const struct stook_pages_node *node)
{
        size_t missed = __atomic_load_n(&node->retaken_bytes, __ATOMIC_RELAXED);
        size_t swing = stook_pages_recurring(node);

        return missed > swing ? missed : swing;
}

/* One large object was freed, and the next one may take its place. */
static bool is_replacing(const struct stook_pages_node *node)
{
        return stook_density_found(&node->density[STOOK_DENSITY_LARGE]) == STOOK_DENSE &&
               stook_replace_goes_on(&node->replace,
                                     __atomic_load_n(&node->taken_bytes, __ATOMIC_RELAXED));
}

bool stook_pages_is_shrinking(const struct stook_pages_node *node)
{
        size_t used = __atomic_load_n(&node->taken_bytes, __ATOMIC_RELAXED);

        return !is_replacing(node) && used < stook_swing_most(&node->swing) / 3 * 2;
}

/*
 * Large objects that are replaced by others of other sizes leave free parts that fit nothing if
 * much is purged. Fresh memory is then taken beside them. What is written in part is not worth it.
 */
static bool keeps_large(const struct stook_pages_node *node)
{
        return stook_density_found(&node->density[STOOK_DENSITY_LARGE]) == STOOK_DENSE &&
               !stook_pages_is_shrinking(node);
}

size_t stook_pages_allowance(const struct stook_pages_node *node)
{
        size_t share = __atomic_load_n(&node->taken_bytes, __ATOMIC_RELAXED);
        size_t most = stook_swing_most(&node->swing), replaced = stook_replace_most(&node->replace);

        if (most > replaced)
                most = replaced;
        if (is_replacing(node) && most > share)
                share = most;
        else if (!keeps_large(node))
                share /= KEPT_PART;
        return (share > ALLOWANCE ? share : ALLOWANCE) + stook_pages_missed(node);
}

size_t stook_pages_left_by_purge(const struct stook_pages_node *node)
{
        return stook_pages_is_shrinking(node) ? stook_pages_missed(node)
                                              : stook_pages_allowance(node);
}

size_t stook_pages_kept_at_once(const struct stook_pages_node *node)
{
        size_t allowed = stook_pages_allowance(node), most = stook_swing_most(&node->swing);

        return stook_pages_is_aged() && most > allowed ? most : allowed;
}

bool stook_pages_may_keep(const struct stook_pages_node *node, size_t bytes)
{
        return stook_pages_dirty(node) + bytes <= stook_pages_allowance(node);
}

size_t stook_pages_worth(const struct stook_pages_node *node, size_t dirty)
{
        size_t allowed = stook_pages_kept_at_once(node);
        size_t used = __atomic_load_n(&node->taken_bytes, __ATOMIC_RELAXED);
        size_t end = stook_swing_most(&node->swing) / SPIKE_END_PART;

        if (dirty <= allowed)
                return SIZE_MAX;
        if (dirty <= 2 * allowed)
                return STOOK_PURGE_BIG;
        return dirty <= used / 3 * 2 && used >= end ? STOOK_PURGE_SMALL : 1;
}
