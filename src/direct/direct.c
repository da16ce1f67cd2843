/*
 * Purpose: the word by which direct sections know that the kernel protects them, and which slots
 * are filled. A section of <stook/section.h> asks the thread record for both. A direct section (of
 * malloc, new, free and delete, dropin/hot_x86_64.S and hot_aarch64.S) takes fewer instructions: it
 * compares the slot index with a bound in memory, one for all threads, and finds the area by one
 * word.
 * Place: called by slot, through stook_direct_duties, by life/fork.c, and by vfork.
 *
 * Argument: the index proves nothing by itself (section/section.h I4). What proves it, without the
 * record, is that every thread that runs code of the program is registered:
 *  - The area is libc's. glibc registers the first thread before it relocates any library, and
 *    each other one with all signals blocked, before it runs anything of the program. It ends the
 *    process if the second fails where the first did not. It never takes a registration back: a
 *    thread is registered until the kernel ends it. Our own areas (musl, older glibc) are
 *    registered by a thread's first slow call. So with them direct sections are off.
 *  - The index is mm_cid, at its fixed place. Else they are off: the area leads to the thread
 *    record, with the no_index that is above all bounds.
 *  - A child of fork keeps the registration of the thread that forked, at the same address.
 *  - A child of vfork has none, and runs in this memory: on the parent's record, with the parent's
 *    index. While any vfork is under way the bound is 0 for all threads. They use the checked
 *    sections meanwhile, in which the record of a child says no.
 *  - A thread that finds itself without a registration all the same turns direct sections off, for
 *    ever. It was made by a raw clone, or the program took its registration away. Neither is
 *    supported (docs/CONCURRENCY.md).
 * So a thread may pop and push before it has enrolled. It enrols in its first miss. Until then its
 * end is not noticed (life/last_thread.c): it has made no slow call, so slabs, barns and pages have
 * nothing from it. What it left in its slot was there before, or is less than a sheaf has room for.
 *
 * When the bound is loaded: inside the section on x86-64, and with the area, before the section, on
 * aarch64. Both are right. A thread whose bound is old was registered when it loaded it, and still
 * is. Slots do not become unfilled. And no child of vfork has an old bound: what it runs began
 * after the bound had become 0, for it may not return into a call that was interrupted before.
 *
 * Invariants:
 *  D1 the bound is 0 from before a child of vfork exists until it is gone. Its parent is barred
 *     from before the count is raised until it is lowered again.
 *  D2 the bound never passes stook_filled.ready.
 *  D3 the area is memory of the calling thread whenever a section stores to it. On x86-64 `area`
 *     leads there at all times. A section that has the thread record there finds no index below
 *     any bound, whatever starts meanwhile. So no order is needed between `area` and the bound. On
 *     aarch64 they are one word, which leads there from the start on. Before that malloc has no
 *     direct section, because `sizes` is 0, and there is no object that a free could push.
 *     The same holds for `sealed`, which is `area` as it was before that became the record's.
 *  D4 (aarch64) a thread that finds `sizes` set finds all of the start. Only a process with one
 *     thread sets it. The handlers of that thread find its stores in order. A thread that is made
 *     later finds all that came before. If the process has several threads at the start, direct
 *     sections stay off: a thread that loads in another order could find the new bound, and `ready`
 *     or a class's line as it was before the start.
 * Concurrency: `ready` is changed by compare-and-swap, at any instruction, by any thread. A thread
 *  that vanishes in vfork, by a jump out of a handler, leaves the bound at 0: checked sections do
 *  the same work.
 *  M1: release of `ready`, after stook_filled.ready; pairs with its load in a section, or before
 *      one. x86-64 orders it before the loads of the slot's lines. aarch64 may load them before the
 *      comparison with the bound. So there the address of a line depends on the word that has the
 *      bound: the area is in the same word, the index is loaded from the area, and the line's
 *      address is made of the index. (A checked section needs no such order. Its thread has stored
 *      the record's `ready` itself, behind the acquire in stook_regions_ready.)
 *  M2: full fence between the store of stook_filled.ready and the look at the count, and between
 *      the change of the count and the look at stook_filled.ready. One of the two threads raises.
 * Failure: none.
 */
#include "base/alone.h"
#include "base/thread.h"
#include "direct/direct.h"
#include "slot/slot_regions.h"

#define COUNT  (STOOK_DIRECT_OFF - STOOK_DIRECT_VFORK)  /* of vforks */
#define VFORKS (COUNT | STOOK_DIRECT_OFF)

_Static_assert(STOOK_SLOTS_MAX <= STOOK_DIRECT_BOUND_MAX, "a bound is below it");

/* Weak: the drop-in's has first values (dropin/hot_x86_64.S, dropin/hot_aarch64.S). */
__attribute__((weak)) struct stook_direct stook_direct;

#if defined(__aarch64__)
_Static_assert(offsetof(struct stook_direct, slots) == 0 &&
               offsetof(struct stook_direct, ready) == 8 &&
               offsetof(struct stook_direct, sizes) == 16 && sizeof(struct stook_direct) == 32,
               "dropin/hot_aarch64.S: SLOTS, ALL_READY");
#else
_Static_assert(offsetof(struct stook_direct, area) == 0 &&
               offsetof(struct stook_direct, ready) == 8 &&
               offsetof(struct stook_direct, sealed) == 16 && sizeof(struct stook_direct) == 24,
               "dropin/hot_x86_64.S: AREA, ALL_READY, SEALED_AREA");
#endif

static bool change(uint64_t *seen, uint64_t to)
{
        return __atomic_compare_exchange_n(&stook_direct.ready, seen, to, false, __ATOMIC_SEQ_CST,
                                           __ATOMIC_RELAXED);
}

static void turn_off(void)
{
        uint64_t seen = __atomic_load_n(&stook_direct.ready, __ATOMIC_RELAXED);

        while (!change(&seen, (seen & (VFORKS | STOOK_DIRECT_AREA)) | STOOK_DIRECT_OFF))
                ;
}

#if defined(__aarch64__)
/* Static thread-local storage, and libc's areas, are within 2 GiB of the thread pointer. */
static void set_area(intptr_t area)
{
        uint64_t seen = __atomic_load_n(&stook_direct.ready, __ATOMIC_RELAXED);

        while (!change(&seen, (seen & ~STOOK_DIRECT_AREA) | (uint32_t)area))
                ;
        stook_direct.slots = stook_regions.base;
}

static bool may_turn_on(void)
{
        return stook_has_one_thread();          /* D4 */
}

void stook_direct_seal(void)
{
}

static void turn_on(void)
{
        /* After `ready`, for a handler. */
        __atomic_store_n(&stook_direct.sizes, stook_direct.sizes_when_on, __ATOMIC_RELEASE);
}
#else
static void set_area(intptr_t area)
{
        __atomic_store_n(&stook_direct.area, area, __ATOMIC_RELAXED);
}

void stook_direct_seal(void)
{
        stook_direct.sealed = stook_direct_area();
        set_area((const char *)stook_self - (const char *)__builtin_thread_pointer());
}

static bool may_turn_on(void)
{
        return true;
}

static void turn_on(void)
{
}
#endif

static void start_direct(const char *area)
{
        bool on = area && may_turn_on();

        if (!on) {
                turn_off();
                area = (const char *)stook_self;
        }
        set_area(area - (const char *)__builtin_thread_pointer());
        if (on)
                turn_on();
}

void stook_direct_raise(void)
{
        uint64_t seen, filled;

        __atomic_thread_fence(__ATOMIC_SEQ_CST);        /* M2 */
        seen = __atomic_load_n(&stook_direct.ready, __ATOMIC_RELAXED);
        do {
                filled = __atomic_load_n(&stook_filled.ready, __ATOMIC_ACQUIRE);
                if ((seen & VFORKS) || stook_direct_bound_of(seen) >= filled)
                        return;
        } while (!__atomic_compare_exchange_n(&stook_direct.ready, &seen,
                                              (seen & STOOK_DIRECT_AREA) |
                                                      filled << STOOK_DIRECT_BOUND_SHIFT,
                                              false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void stook_direct_begin_vfork(void)
{
        uint64_t seen = __atomic_load_n(&stook_direct.ready, __ATOMIC_RELAXED);

        /* One more than COUNT has room for is STOOK_DIRECT_OFF. */
        while (!(seen & STOOK_DIRECT_OFF) &&
               !change(&seen, (seen & (VFORKS | STOOK_DIRECT_AREA)) + STOOK_DIRECT_VFORK))
                ;
}

void stook_direct_end_vfork(void)
{
        uint64_t seen = __atomic_load_n(&stook_direct.ready, __ATOMIC_RELAXED);

        while (!(seen & STOOK_DIRECT_OFF) && !change(&seen, seen - STOOK_DIRECT_VFORK))
                ;
        stook_direct_raise();
}

/*
 * The vforks of other threads are not under way here. A barred thread is itself in vfork, or forked
 * in a child of it and has no registration: the count stays, and does not come down to 0 in the
 * second case. (Or direct sections are off.)
 */
void stook_direct_fork_child(void)
{
        if (stook_self_is_barred() ||
            !(__atomic_load_n(&stook_direct.ready, __ATOMIC_RELAXED) & COUNT))
                return;
        __atomic_fetch_and(&stook_direct.ready, ~COUNT, __ATOMIC_RELAXED);
        stook_direct_raise();
}

const struct stook_direct_duties stook_direct_duties = {
        .start = start_direct,
        .slots_ready = stook_direct_raise,
        .unregistered = turn_off,
};
