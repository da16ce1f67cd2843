/*
 * Purpose: sums and shares over what a process left; see figures.h.
 */
#include <string.h>
#include "cli/run/figures.h"

bool process_age_ms(const struct process *p, uint64_t *age_ms)
{
        if (!p->published || p->exact || !p->ended_ms)
                return false;
        *age_ms = p->ended_ms > p->at_ms ? p->ended_ms - p->at_ms : 0;
        return true;
}

uint64_t stats_live_bytes(const struct stook_cache_stats *s)
{
        return s->objects_live * s->stride;
}

uint64_t stats_cached_bytes(const struct stook_cache_stats *s)
{
        return s->objects_cached * s->stride;
}

uint64_t stats_peak_bytes(const struct stook_cache_stats *s)
{
        return s->slabs_peak * s->slab_bytes;
}

static uint64_t at_most(uint64_t value, uint64_t limit)
{
        return value < limit ? value : limit;
}

/*
 * Objects handed out, by where they came from: an estimate. The capacity is that of the end. A
 * sheaf that came from the barn before the capacity grew had fewer objects, so the barn's share is
 * too high then, and the slot's too low.
 */
static void origins(const struct stook_cache_stats *s, uint64_t *slot, uint64_t *barn,
                    uint64_t *slabs)
{
        uint64_t refilled = at_most(s->sheaf_refill, s->alloc_fastpath);

        *barn = at_most(s->barn_get * s->sheaf_capacity, s->alloc_fastpath - refilled);
        *slot = s->alloc_fastpath - refilled - *barn;
        *slabs = refilled + s->alloc_slowpath;
}

void stats_shares(const struct stook_cache_stats *s, struct shares *shares)
{
        uint64_t slot, barn, slabs;
        double all;

        origins(s, &slot, &barn, &slabs);
        all = (double)(slot + barn + slabs);
        if (all == 0)
                all = 1;
        shares->slot = (double)slot / all;
        shares->barn = (double)barn / all;
        shares->slabs = (double)slabs / all;
}

void process_shares(const struct process *p, struct shares *shares)
{
        double slot = 0, barn = 0, slabs = 0, all;

        for (size_t i = 0; i < p->count; i++) {
                uint64_t a, b, c;

                origins(&p->caches[i], &a, &b, &c);
                slot += (double)a;
                barn += (double)b;
                slabs += (double)c;
        }
        all = slot + barn + slabs;
        if (all == 0)
                all = 1;
        *shares = (struct shares){ slot / all, barn / all, slabs / all };
}

void process_totals(const struct process *p, struct process_totals *t)
{
        memset(t, 0, sizeof *t);
        for (size_t i = 0; i < p->count; i++) {
                const struct stook_cache_stats *s = &p->caches[i];

#define ADD(name) t->counters.name += s->name;
                STOOK_COUNTERS(ADD)
#undef ADD
                t->counters.slabs += s->slabs;
                t->counters.sheaves += s->sheaves;
                t->counters.objects_live += s->objects_live;
                t->counters.objects_cached += s->objects_cached;
                t->live_bytes += stats_live_bytes(s);
                t->cached_bytes += stats_cached_bytes(s);
                t->space_bytes += s->slabs * s->slab_bytes;
        }
        t->large_bytes = p->taken_bytes > t->space_bytes ? p->taken_bytes - t->space_bytes : 0;
}
