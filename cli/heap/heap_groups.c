/*
 * Purpose: the accounting groups of a heap; see heap.h.
 */
#include <errno.h>
#include <string.h>
#include "cli/heap/heap_inside.h"

static int add_group(struct heap *h, const struct stook_group *from, const struct stook_group *base,
                     uint16_t of_process)
{
        uint64_t parent = (uint64_t)(uintptr_t)from->parent - (uint64_t)(uintptr_t)base;
        struct heap_group *g;

        if (!heap_more((void **)&h->groups, h->group_count, sizeof *h->groups))
                return -ENOMEM;
        g = &h->groups[h->group_count++];
        *g = (struct heap_group){
                .id = from->id, .usage_bytes = from->charged, .limit_bytes = from->limit,
                .peak_bytes = from->peak, .limit_events = from->limit_events,
                .refusals = from->refusals, .references = from->references,
                .ending = from->state == STOOK_GROUP_ENDING, .of_process = from->id == of_process,
        };
        if (from->parent && parent / sizeof *from <= STOOK_GROUPS_MAX)
                g->parent = (uint16_t)(parent / sizeof *from);
        memcpy(g->name, from->name, sizeof g->name);
        g->name[sizeof g->name - 1] = 0;
        return 0;
}

static struct heap_group *group_of(const struct heap *h, uint16_t id)
{
        for (size_t i = 0; i < h->group_count; i++)
                if (h->groups[i].id == id)
                        return &h->groups[i];
        return NULL;
}

/* As stook_group_usage(). Parents of a damaged heap may go round in a circle. */
static void take_off_precharges(struct heap *h)
{
        for (size_t i = 0; i < h->group_count; i++) {
                uint64_t bytes = h->precharged[h->groups[i].id];
                struct heap_group *g = bytes ? &h->groups[i] : NULL;

                for (size_t steps = 0; g && steps < h->group_count; steps++) {
                        g->precharge_bytes += bytes;
                        g->usage_bytes -= bytes < g->usage_bytes ? bytes : g->usage_bytes;
                        g = group_of(h, g->parent);
                }
        }
}

int heap_read_groups(struct heap *h)
{
        const struct stook_root *r = &h->library->root;
        struct stook_group *base, group;
        uint32_t bound;
        uint16_t of_process;
        int error = heap_copy(h, r->groups, &base, sizeof base);

        if (!error)
                error = heap_copy(h, r->groups_used, &bound, sizeof bound);
        if (!error)
                error = heap_copy(h, r->group_of_process, &of_process, sizeof of_process);
        if (error || !base)
                return error;
        if (bound > STOOK_GROUPS_MAX + 1)
                return -EBADMSG;
        for (uint32_t id = 1; id < bound && !error; id++) {
                error = heap_copy(h, base + id, &group, sizeof group);
                if (!error && group.state != STOOK_GROUP_FREE)
                        error = add_group(h, &group, base, of_process);
        }
        if (!error)
                take_off_precharges(h);
        return error;
}
