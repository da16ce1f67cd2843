/*
 * Purpose: what the files of the slot layer share about regions: where they are, and which are ready.
 * Place: slot layer only.
 */
#ifndef STOOK_SLOT_REGIONS_H
#define STOOK_SLOT_REGIONS_H

#include "os/os.h"
#include "slot/slot.h"

/* Const after stook_slots_start. */
struct stook_regions {
        char    *base;                  /* slot i at base + (i << STOOK_SLOT_SHIFT): first rseq's, then locked's */
        uint32_t rseq_slots;            /* 0: the locked backend was chosen */
        uint32_t locked_slots;          /* a power of two */
        uint32_t index_offset;          /* in struct rseq, of what indexes rseq's slots */
        uint32_t nodes;                 /* stook_os_node_count() */
};
extern struct stook_regions stook_regions;

/* The slot this thread is on, a hint; 0 where it has none. */
STOOK_INLINE uint32_t stook_slot_now(void)
{
        const struct stook_line *own = stook_slot_ops()->own();

        return own ? (uint32_t)(((uintptr_t)own - (uintptr_t)stook_regions.base) >> STOOK_SLOT_SHIFT) : 0;
}

/* The node of a slot's CPU. */
STOOK_INLINE unsigned stook_slots_node_of(const struct stook_regions *r, uint32_t slot)
{
        return stook_os_node_of_cpu(slot < r->rseq_slots ? slot : slot - r->rseq_slots);
}

/* In struct rseq of the kernel. */
#define STOOK_RSEQ_CPU_ID  4            /* int32_t: negative when the thread is not registered */

/* Slots of the rseq backend that are ready now: more than @index, unless there is no such slot, no memory, or
 * no lock to be had. */
uint32_t stook_regions_ready(uint32_t index);
/* A slot of the locked backend, made ready if need be. NULL: no memory or no lock to be had. */
char *stook_regions_locked(uint32_t slot);

/* Lines that are filled in every ready slot. */
uint32_t stook_regions_lines(void);
/*
 * slot_drain.c, for other drains: its mutex (false: held by another and not @wait, or drains are broken), and its
 * barrier, after which no section or holder of a locked slot is inside that was there before.
 */
bool stook_slot_drain_begin(bool wait);
void stook_slot_drain_end(void);
bool stook_slot_drain_barrier(void);

/*
 * slot_drain.c, for another file that takes sheaves off slots. Begin has the drain's mutex (@wait: or false) and one
 * barrier behind it; false: refused. After settle, another barrier, what was taken off is the caller's alone; false:
 * it never is.
 */
bool stook_drain_begin(bool wait);
bool stook_drain_settle(void);
/* With the mutex: nothing is to be detached from this slot, for its holder does not come back. */
bool stook_drain_skips(unsigned slot);
void stook_drain_end(void);

/* slot_drain.c: for the child of a fork. */
void stook_slot_drain_fork_child(void);

#endif
