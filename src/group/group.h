/*
 * Purpose: what is charged to whom: groups, their counters, and charging by way of a slot's stock.
 * Place: called by cache and malloc, which know objects; calls slot for stocks.
 *
 * Life of a group: LIVE while somebody refers to it (its maker, threads inside, groups below it). The last reference
 * makes it ENDING; its stocks are taken back then. It is FREE, and its id may be used again, when nothing is charged
 * to it any more, which group_life.c looks for when groups are made or put: a free, which may be in a handler, only
 * counts down.
 *
 * Invariants:
 *  I1 charged = bytes of live objects + bytes in stocks of the id, plus all that of the groups below; so an id whose
 *     charged is 0 is in no stock and in no object.
 *  I2 a charge that succeeded is within the limit of the group and of each ancestor, unless it was forced.
 *  I3 memory of groups is never given back: a stale id or handle reads a group.
 * Concurrency: charged: relaxed compare-and-swaps and subtractions by anybody; it orders nothing. state and the
 *  list under `lives`; references atomic.
 */
#ifndef STOOK_GROUP_INTERNAL_H
#define STOOK_GROUP_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stook/group.h>
#include "base/compiler.h"
#include "base/thread.h"

/* stook_self->group of a thread whose allocations are charged to nobody, whatever the process's group is. */
#define STOOK_GROUP_NOBODY UINT16_MAX

enum stook_group_state { STOOK_GROUP_FREE, STOOK_GROUP_LIVE, STOOK_GROUP_ENDING };

struct stook_group {
        struct stook_group *parent;     /* const while not FREE */
        uint16_t id;                    /* const */
        uint16_t next;                  /* lives; the next FREE or ENDING one, 0: none */
        uint32_t state;                 /* atomic: written under lives */
        uint32_t references;            /* atomic */
        void   (*on_limit)(struct stook_group *group, size_t wanted, void *data); /* set before use by other threads */
        void    *on_limit_data;
        uint64_t limit;                 /* atomic; UINT64_MAX: none */
        char     name[64];
        uint64_t charged STOOK_ALIGNED(STOOK_CACHELINE); /* atomic, by anybody */
        uint64_t peak;                  /* atomic, a racy maximum */
        uint64_t limit_events, refusals; /* atomic counts */
};

/* The process has, or had, a group: malloc's hot path is off. Relaxed; set for good before the first group is handed out. */
extern uint32_t stook_groups_exist STOOK_HIDDEN;
extern uint16_t stook_group_of_process STOOK_HIDDEN;     /* written at start; 0: none */

/* Id that an allocation of this thread is charged to; 0: none. */
STOOK_INLINE uint16_t stook_group_current(void)
{
        uint16_t id = stook_self->group;

        if (STOOK_UNLIKELY(!id))
                return stook_group_of_process;
        return id == STOOK_GROUP_NOBODY ? 0 : id;
}

/* ---- group_life.c ---- */
struct stook_group *stook_group_at(uint16_t id);
/* Called when the first group is made, with no lock held; false: no memory. Set by malloc. */
void stook_group_set_prepare(bool (*prepare)(void));
/* The process's group, from STOOK_GROUP_LIMIT. */
void stook_group_start(uint64_t limit_bytes);
void stook_group_fork_child(void);

/* ---- group_charge.c ---- */
#define STOOK_CHARGE_QUIET 1u           /* no callback, no drain: who may not wait */
#define STOOK_CHARGE_FORCE 2u           /* cannot fail: limits are passed */

/* False: over a limit; nothing charged, events counted. @id is not 0. */
bool stook_group_charge(uint16_t id, uint64_t bytes, unsigned how);
void stook_group_uncharge(uint16_t id, uint64_t bytes);

#endif
