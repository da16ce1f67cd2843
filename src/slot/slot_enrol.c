/*
 * Purpose: a thread's way to the hot path.
 * The slot index proves nothing: an unregistered thread reads mm_cid 0, a vfork child its parent's
 * ids. So a thread starts with `ready` 0, misses, and comes here. Only a registration that the
 * kernel shows to be alive (cpu_id >= 0) opens the hot path. The thread comes again when its index
 * passes `ready`. Direct sections of the drop-in hit without it (direct/direct.c): there a thread
 * comes with its first miss of another kind.
 * Place: called by slow calls through stook_slot_ops; calls os (registration) and
 * slot_regions.c.
 * Concurrency: works on this thread's record only. A signal handler may run it on top of itself:
 *  fields are stored in an order in which each prefix is safe (rseq before `ready`), and both calls
 *  store the same.
 */
#include <stddef.h>
#include "slot/slot_regions.h"
#include "section/section_hot.h"
#include "os/os.h"

intptr_t stook_slot_area;
static void (*at_end)(void *);          /* const after start */
/* The thread that started the library, or that forked. Const but at start and in a forked child. */
static const struct stook_thread_v1 *first;
/* Atomic, relaxed: of the key that calls it, plus 1. 0: there is none yet. */
static uint32_t end_key_plus_1;

/* Of a thread whose area is ours. It may have been registered only to try that. */
static void at_end_of_enrolled(void *self)
{
        if (at_end && ((struct stook_thread_v1 *)self)->rseq)
                at_end(self);
}

void stook_slot_set_end(void (*end)(void *))
{
        at_end = end;
        stook_slot_note_first();
        stook_os_rseq_before_end(at_end_of_enrolled);
}

void stook_slot_note_first(void)
{
        first = stook_self;
}

static void note(const char *area)
{
        intptr_t from_record = (intptr_t)((uintptr_t)area - (uintptr_t)stook_self);
        intptr_t fixed = stook_regions.index_offset == STOOK_RSEQ_MM_CID ? from_record : 0;

        stook_sections.slots = stook_regions.base;
        __atomic_store_n(&stook_sections.index, (uintptr_t)from_record + stook_regions.index_offset,
                         __ATOMIC_RELAXED);
        __atomic_store_n(&stook_sections.area, fixed, __ATOMIC_RELAXED);
        if (stook_self_is_programs())
                __atomic_store_n(&stook_slot_area, fixed, __ATOMIC_RELAXED);
}

void stook_slot_note_area(void)
{
        const char *area = stook_os_rseq_area();
        bool direct = area && stook_os_rseq_owner() == STOOK_RSEQ_LIBC &&
                      stook_regions.index_offset == STOOK_RSEQ_MM_CID;

        if (area)
                note(area);
        stook_direct_duties.start(direct ? area : NULL);
}

/*
 * The key is made for the second thread: to make it touches pages of libc that a program with one
 * thread does not need. Two threads may both make one; the first to note it wins. Return: -1: none.
 */
static int end_key(void)
{
        uint32_t seen = __atomic_load_n(&end_key_plus_1, __ATOMIC_RELAXED);
        int key;

        if (seen)
                return (int)seen - 1;
        key = stook_os_thread_end_key(at_end);
        if (key < 0 || __atomic_compare_exchange_n(&end_key_plus_1, &seen, (uint32_t)key + 1, false,
                                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                return key;
        stook_os_thread_end_key_drop(key);
        return (int)seen - 1;
}

/*
 * False: nothing is called at the end of this thread. Where its area is ours, its end is noticed
 * already, and must be: a thread whose area is gone would empty a locked slot.
 */
static bool ends_noticed(struct stook_thread_v1 *self)
{
        return stook_os_rseq_owner() == STOOK_RSEQ_OWN || stook_os_thread_end_arm(end_key(), self);
}

/* Once in each thread. */
static void count_enrolled(struct stook_thread_v1 *self)
{
        if (__atomic_fetch_add(&stook_threads_enrolled, 1, __ATOMIC_RELAXED) && at_end &&
            ends_noticed(self))
                __atomic_fetch_add(&stook_threads_live, 1, __ATOMIC_RELAXED);
}

void stook_slot_count_locked(void)
{
        int key;

        if (!at_end || stook_self == first || stook_self->rseq || stook_self_is_barred())
                return;
        key = end_key();
        /* A handler in between may count the thread twice: then its end gives nothing back. */
        if (!stook_os_thread_end_is_armed(key) && stook_os_thread_end_arm(key, stook_self))
                __atomic_fetch_add(&stook_threads_live, 1, __ATOMIC_RELAXED);
}

bool stook_slot_enrol(void)
{
        struct stook_thread_v1 *self = stook_self;
        uint32_t index, ready;
        char *area;

        if (!stook_regions.rseq_slots || stook_self_is_barred())
                return false;
        area = self->rseq;
        if (!area) {
                area = stook_os_rseq_area();
                if (!area || __atomic_load_n((int32_t *)(area + STOOK_RSEQ_CPU_ID),
                                             __ATOMIC_RELAXED) < 0) {
                        stook_self_bar();
                        stook_direct_duties.unregistered();
                        return false;
                }
                note(area);
                /* An exchange: a handler may have enrolled the thread on top of this call. */
                if (!__atomic_exchange_n(&self->rseq, area, __ATOMIC_RELEASE))
                        count_enrolled(self);
        }
        index = *stook_section_index(self);
        ready = stook_regions_ready(index);
        stook_direct_duties.slots_ready();
        if (index >= ready)
                return false;
        __atomic_signal_fence(__ATOMIC_RELEASE);
        self->ready = ready;
        return true;
}

const struct stook_section_ops *stook_slot_ops(void)
{
        uint32_t ready = stook_self->ready;

        if (STOOK_LIKELY(ready && *stook_section_index(stook_self) < ready))
                return &stook_section_rseq;
        return stook_slot_enrol() ? &stook_section_rseq : &stook_section_locked;
}
