/*
 * Purpose: see made_up_cpu.h.
 */
#include "made_up_cpu.h"
#include "base/thread.h"
#include "section/section.h"
#include "slot/slot_regions.h"

/* As far as sections read and write the kernel's struct rseq. */
static struct area {
        uint32_t cpu_id_start, cpu_id;
        uint64_t rseq_cs;
        uint32_t flags, node_id, mm_cid, unused;
} area __attribute__((aligned(32)));

_Static_assert(offsetof(struct area, cpu_id) == STOOK_RSEQ_CPU_ID &&
               offsetof(struct area, rseq_cs) == STOOK_RSEQ_CS &&
               offsetof(struct area, mm_cid) == STOOK_RSEQ_MM_CID, "the kernel's layout");

bool made_up_cpus_start(void)
{
        intptr_t from_record = (intptr_t)((uintptr_t)&area - (uintptr_t)stook_self);

        if (!stook_regions.rseq_slots)
                return false;
        stook_self->ready = 0;
        stook_self->rseq = (char *)&area;
        stook_sections.index = (uintptr_t)from_record + stook_regions.index_offset;
        stook_sections.area =
                stook_regions.index_offset == STOOK_RSEQ_MM_CID ? from_record : 0;
        return true;
}

void made_up_cpu_set(uint32_t cpu)
{
        *(volatile uint32_t *)&area.cpu_id = cpu;
        *(volatile uint32_t *)&area.mm_cid = cpu;
}
