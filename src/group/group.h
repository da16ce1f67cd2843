/*
 * Purpose: which group is charged what: groups, their counters, and charging by way of a slot's
 * precharge.
 * Place: called by cache and malloc, which know objects; calls slot and evacuate for precharges.
 *
 * Life of a group: it is LIVE while it has references: its maker's, and those of threads inside and
 * of groups below it. The last reference makes it ENDING; its precharges are taken back then. It is
 * FREE, and its id may be used again, when nothing is charged to it any more. group_life.c looks
 * for that when groups are made or destroyed; a free, which may be in a handler, only counts down.
 *
 * Invariants:
 *  I1 charged = bytes of live objects + bytes in precharges of the id, plus all that of the groups
 *     below. So an id whose charged is 0 is in no precharge and in no object.
 *  I2 a charge that succeeded is within the limit of the group and of each ancestor, unless it was
 *     forced.
 *  I3 memory of groups is never given back: a stale id or handle reads a group.
 *  I4 bytes charged to an id keep it, its parent and all ancestors from being used again; the
 *     subtraction of the last ones lets them go. So a thread that takes bytes off a group has read
 *     everything it needs of it before.
 * Concurrency: charged: compare-and-swaps and subtractions by any thread. M1: the release of each
 *  subtraction, before which the group's parent was read, pairs with the acquire of the 0 with
 *  which the id is let go (group_life.c). So the parent that was read is the one of that life.
 *  state and the list are guarded by `lives`; references is atomic.
 */
#ifndef STOOK_GROUP_INTERNAL_H
#define STOOK_GROUP_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stook/group.h>
#include "base/compiler.h"
#include "base/thread.h"

/*
 * stook_self->group of a thread whose allocations are charged to no group, whatever the process's
 * group is.
 */
#define STOOK_GROUP_NONE UINT16_MAX

enum stook_group_state { STOOK_GROUP_FREE, STOOK_GROUP_LIVE, STOOK_GROUP_ENDING };

struct stook_group {
        struct stook_group *parent;     /* atomic: written under lives; const while not FREE (I4) */
        uint16_t id;                    /* const */
        uint16_t next;                  /* lives; the next FREE or ENDING one, 0: none */
        uint32_t state;                 /* atomic: written under lives */
        uint32_t references;            /* atomic */
        /* Set before other threads use the group. */
        void   (*on_limit)(struct stook_group *group, size_t wanted, void *data);
        void    *on_limit_data;
        uint64_t limit;                 /* atomic; UINT64_MAX: none */
        char     name[64];
        uint64_t charged STOOK_ALIGNED(STOOK_CACHELINE); /* atomic M1, by any thread */
        uint64_t peak;                  /* atomic, a racy maximum */
        uint64_t limit_events, refusals; /* atomic counts */
};

/*
 * The process has, or had, a group: malloc's hot path is off. Relaxed; set for good before the
 * first group is handed out.
 */
extern uint32_t stook_groups_exist STOOK_HIDDEN;
extern uint16_t stook_group_of_process STOOK_HIDDEN;     /* written at start; 0: none */

/* All groups, by id. Const once set; NULL: none was made yet. */
extern struct stook_group *stook_groups STOOK_HIDDEN;
/* Ids ever used; 0 is none. Written under `lives` (group_life.c), read racily from outside. */
extern uint32_t stook_groups_bound STOOK_HIDDEN;

/* Id that an allocation of this thread is charged to; 0: none. */
STOOK_INLINE uint16_t stook_group_now(void)
{
        uint16_t id = stook_self->group;

        if (STOOK_UNLIKELY(!id))
                return stook_group_of_process;
        return id == STOOK_GROUP_NONE ? 0 : id;
}

/*
 * Of a group that is kept by bytes or a reference (I4); of another one it is any parent that it has
 * had.
 */
STOOK_INLINE struct stook_group *stook_group_parent(const struct stook_group *group)
{
        return __atomic_load_n(&group->parent, __ATOMIC_RELAXED);
}

/* Is it the group, or one below it? Of a stale id the answer is any; for sums of precharges. */
STOOK_INLINE bool stook_group_is_below(const struct stook_group *at,
                                       const struct stook_group *group)
{
        while (at && at != group)
                at = stook_group_parent(at);
        return at;
}

/* ---- group_life.c ---- */
struct stook_group *stook_group_at(uint16_t id);
/*
 * Set by malloc: @prepare is called when the first group is made, with no lock held. It returns 0,
 * or -errno, with which the making of the group fails.
 */
void stook_group_set_prepare(int (*prepare)(void));
/* The process's group, from STOOK_GROUP_LIMIT. */
void stook_group_start(uint64_t limit_bytes);
void stook_group_fork_child(void);

/* ---- group_charge.c ---- */
#define STOOK_CHARGE_QUIET 1u           /* no callback, no evacuation: must not wait */
#define STOOK_CHARGE_FORCE 2u           /* cannot fail: limits are passed */
#define STOOK_CHARGE_TRY   4u           /* a refusal is not counted, and no callback runs */

/* False: over a limit; nothing charged, events counted. @id is not 0. */
bool stook_group_charge(uint16_t id, uint64_t bytes, unsigned how);
void stook_group_uncharge(uint16_t id, uint64_t bytes);
/* Bytes in the caller's hands that are charged to @id, off the counters. */
void stook_group_give_back(uint16_t id, uint64_t bytes);

#endif
