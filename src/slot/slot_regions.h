/*
 * Purpose: what the files of the slot layer share about regions: where they are, and which are
 * ready.
 * Place: slot layer only.
 */
#ifndef STOOK_SLOT_REGIONS_H
#define STOOK_SLOT_REGIONS_H

#include "os/os.h"
#include "slot/slot.h"

/* Const after stook_slots_start. */
struct stook_regions {
        /* Slot i at base + (i << STOOK_SLOT_SHIFT): first rseq's, then locked's */
        char    *base;
        uint32_t rseq_slots;            /* 0: the locked backend was chosen */
        uint32_t locked_slots;          /* a power of two */
        uint32_t index_offset;          /* in struct rseq, of what indexes rseq's slots */
        uint32_t nodes;                 /* stook_os_node_count() */
        uint32_t cpus;                  /* that the thread could run on which started the library */
};
extern struct stook_regions stook_regions;

#define STOOK_SLOTS_MAX 8192
#define STOOK_LOCKED_SLOTS_MAX 4096

/* Which slots are ready; slot_regions.c M1. Readers outside the process look there, too. */
struct stook_slots_filled {
        union {
                struct {
                        uint32_t ready; /* slots of rseq's */
                        uint32_t lines; /* slot_regions.c I1 */
                };
                uint64_t extent;        /* both, which change together */
        };
        uint64_t locked[STOOK_LOCKED_SLOTS_MAX / 64];   /* a bit for each locked slot */
};
extern struct stook_slots_filled stook_filled STOOK_HIDDEN;

/* The slot this thread is on, a hint; 0 where it has none. */
STOOK_INLINE uint32_t stook_slot_now(void)
{
        const struct stook_slot_head *own = stook_slot_ops()->own();

        uintptr_t bytes = (uintptr_t)own - (uintptr_t)stook_regions.base;

        return own ? (uint32_t)(bytes >> STOOK_SLOT_SHIFT) : 0;
}

/* In struct rseq of the kernel. */
#define STOOK_RSEQ_CPU_ID  4            /* int32_t: negative when the thread is not registered */

/*
 * Slots of the rseq backend that are ready now: more than @index, unless there is no such slot, or
 * no memory. Waits for no other thread.
 */
uint32_t stook_regions_ready(uint32_t index);
/* A slot of the locked backend, made ready if need be. NULL: no memory or no lock to be had. */
struct stook_slot_head *stook_regions_locked(uint32_t slot);

/* Lines that are filled in every ready slot. */
uint32_t stook_regions_lines(void);

#endif
