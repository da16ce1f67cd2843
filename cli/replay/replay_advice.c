/*
 * Purpose: see replay_advice.h.
 */
#include <stdlib.h>
#include "cli/replay/replay_advice.h"

#define BARN_SHEAVES 10                 /* STOOK_BARN_SHEAVES, and the kernel's */
#define SHEAF_HEAD   32                 /* bytes before a sheaf's array */

struct replay_layers replay_cache_layers(const struct replay_result *r, uint32_t cache)
{
        struct replay_layers allocs, frees;

        replay_layers(&r->stats[cache], &allocs, &frees);
        return (struct replay_layers){ allocs.slot + frees.slot, allocs.barn + frees.barn,
                                       allocs.slabs + frees.slabs };
}

static uint64_t calls_of(const struct replay_layers *l)
{
        return l->slot + l->barn + l->slabs;
}

static uint64_t limit(int value)
{
        return value < 0 ? BARN_SHEAVES : (uint64_t)value;
}

uint64_t replay_kept_bytes(const struct replay_result *r, uint32_t cache)
{
        const struct stook_cache_stats *s = &r->stats[cache];
        uint64_t of_slots = 2 * (uint64_t)r->settings.slots;
        uint64_t full = r->settings.nodes * limit(r->settings.barn_full);
        uint64_t empty = r->settings.nodes * limit(r->settings.barn_empty);

        if (!s->sheaf_capacity)
                return 0;
        return (of_slots + full) * s->sheaf_capacity * s->stride +
               (of_slots + full + empty) * (SHEAF_HEAD + 8 * s->sheaf_capacity);
}

static double cost(const struct replay_result *r, uint32_t cache)
{
        struct replay_layers l = replay_cache_layers(r, cache);

        return ((double)l.barn + ADVICE_SLABS * (double)l.slabs) / (double)calls_of(&l);
}

static bool same_machine(const struct replay_result *a, const struct replay_result *b)
{
        return a->settings.slots == b->settings.slots && a->settings.nodes == b->settings.nodes;
}

/* Among results that are of the same machine as results[from]. */
static size_t choose(const struct replay_result *results, size_t from, size_t count,
                     uint32_t cache)
{
        double least = cost(&results[from], cache);
        size_t best = count;

        for (size_t i = from + 1; i < count; i++)
                if (same_machine(&results[i], &results[from]) && cost(&results[i], cache) < least)
                        least = cost(&results[i], cache);
        for (size_t i = from; i < count; i++) {
                uint64_t kept = replay_kept_bytes(&results[i], cache), best_kept;

                if (!same_machine(&results[i], &results[from]) ||
                    cost(&results[i], cache) > least + 1.0 / ADVICE_CALLS)
                        continue;
                best_kept = best < count ? replay_kept_bytes(&results[best], cache) : 0;
                if (best == count || kept < best_kept ||
                    (kept == best_kept && cost(&results[i], cache) < cost(&results[best], cache)))
                        best = i;
        }
        return best;
}

static bool is_first_of_machine(const struct replay_result *results, size_t at)
{
        for (size_t i = 0; i < at; i++)
                if (same_machine(&results[i], &results[at]))
                        return false;
        return true;
}

static int busiest_first(const void *a, const void *b)
{
        const struct replay_advice *x = a, *y = b;

        if (x->calls != y->calls)
                return x->calls > y->calls ? -1 : 1;
        if (x->cache != y->cache)
                return x->cache < y->cache ? -1 : 1;
        return x->result < y->result ? -1 : x->result > y->result;
}

struct replay_advice *replay_advise(const struct replay_list *list,
                                    const struct replay_result *results, size_t count,
                                    size_t *advices, size_t *few)
{
        size_t machines = 0, n = 0;
        struct replay_advice *advice;

        *few = 0;
        for (size_t i = 0; i < count; i++)
                machines += is_first_of_machine(results, i);
        advice = calloc(list->cache_count * machines + 1, sizeof *advice);
        for (uint32_t cache = 0; advice && cache < list->cache_count; cache++) {
                struct replay_layers l = replay_cache_layers(&results[0], cache);

                if (calls_of(&l) < ADVICE_LEAST) {
                        ++*few;
                        continue;
                }
                for (size_t i = 0; i < count; i++)
                        if (is_first_of_machine(results, i))
                                advice[n++] = (struct replay_advice){
                                        cache, choose(results, i, count, cache), calls_of(&l) };
        }
        if (advice)
                qsort(advice, n, sizeof *advice, busiest_first);
        *advices = n;
        return advice;
}
