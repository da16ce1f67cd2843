/*
 * Purpose: the engine of evacuations: see evacuate.h.
 * Concurrency: M1: the exchange that takes something off a slot, and the membarrier after it, pair
 *  with the loads and the commit of every section.
 * Failure: false, as said there.
 */
#include "base/inject.h"
#include "base/lock.h"
#include "base/mutex.h"
#include "evacuate/evacuate.h"
#include "os/os.h"
#include "slot/slot_regions.h"

static struct stook_mutex mutex = STOOK_MUTEX_INIT(STOOK_RANK_EVACUATE);
static bool broken;                     /* mutex; I2 */

static bool mutex_take(enum stook_evacuate_how how)
{
        if (how == STOOK_EVACUATE_TRY)
                return stook_mutex_try(&mutex);
        if (how == STOOK_EVACUATE_TRY_COUNTED)
                return stook_mutex_try_counting(&mutex);
        stook_mutex_lock(&mutex);
        return true;
}

bool stook_evacuate_begin(enum stook_evacuate_how how)
{
        if (!mutex_take(how))
                return false;
        if (!broken)
                return true;
        stook_mutex_unlock(&mutex);
        return false;
}

void stook_evacuate_end(void)
{
        stook_mutex_unlock(&mutex);
}

bool stook_evacuate_is_mine(void)
{
        return stook_mutex_is_mine(&mutex);
}

void stook_evacuate_recover(void)
{
        if (!stook_mutex_was_left(&mutex))
                return;
        stook_mutex_inherit(&mutex);
        stook_mutex_unlock(&mutex);
}

void stook_evacuate_fork_child(void)
{
        if (!stook_mutex_is_mine(&mutex))
                stook_mutex_reset(&mutex);
        __atomic_store_n(&stook_evacuate_looking, 0, __ATOMIC_RELAXED);
}

/* ---- locked slots ---- */

#define LOOKS  100                      /* at each slot, without sleep */
#define SLEEPS 1000                     /* of one barrier, 1 ms each: a holder may be stopped */

/*
 * A call of this thread held the slot and was jumped out of. With locks_held at zero no call that
 * is under way holds it.
 */
static void let_go_own(struct stook_slot_head *slot)
{
        uint64_t mine = (uintptr_t)stook_self;

        if (!stook_lock_may_not_wait())
                __atomic_compare_exchange_n(&slot->holder, &mine, 0, false, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED);
}

static void set_stuck(struct stook_slot_head *slot, bool stuck)
{
        __atomic_store_n(&slot->stuck, stuck, __ATOMIC_RELAXED);
}

static bool is_stuck(unsigned slot)
{
        const struct stook_slot_head *head;

        if (slot < stook_regions.rseq_slots)
                return false;
        head = stook_slots_head(slot);
        return head && __atomic_load_n(&head->stuck, __ATOMIC_RELAXED);
}

/*
 * Waits until the thread that held a locked slot before has left it; holders stay for nanoseconds.
 * All slots of a barrier share its sleeps. A slot whose holder never came back is not waited for
 * again: a trim would wait for it once for each cache.
 */
static bool has_passed(struct stook_slot_head *slot, unsigned *sleeps)
{
        uint64_t holder;

        let_go_own(slot);
        /*
         * A read-modify-write, not a load: the next holder's comes after it, and that holder sees
         * what was taken off.
         */
        for (unsigned looks = 0; (holder = __atomic_fetch_or(&slot->holder, 0, __ATOMIC_ACQ_REL));
             looks++) {
                if (looks < LOOKS)
                        continue;
                if (__atomic_load_n(&slot->stuck, __ATOMIC_RELAXED) || !*sleeps) {
                        set_stuck(slot, true);
                        return false;
                }
                --*sleeps;
                STOOK_INJECT_COUNT(evacuate_sleeps);
                stook_os_futex_wait((uint32_t *)(void *)&slot->holder, (uint32_t)holder,
                                    1000 * 1000);
        }
        set_stuck(slot, false);
        return true;
}

/* ---- barriers ---- */

struct passed {
        bool membarrier_done;           /* false: it was refused */
        bool stuck;                     /* a holder did not leave */
        bool newly_stuck;               /* this barrier was the first to find it so: I3 */
};

/*
 * Afterwards each section that was between its loads and its commit has committed or was aborted.
 * Each holder of a locked slot has left it, but for those of stuck slots.
 */
static struct passed barrier(void)
{
        struct passed passed = { .membarrier_done = true };
        unsigned sleeps = SLEEPS;

        if (STOOK_INJECT_GET(no_barrier))
                return passed;
        passed.membarrier_done = !stook_regions.rseq_slots || stook_os_membarrier();
        for (unsigned slot = stook_regions.rseq_slots;
             passed.membarrier_done && slot < stook_slots_bound(); slot++) {
                struct stook_slot_head *head = stook_slots_head(slot);
                bool was_stuck = is_stuck(slot);

                if (!head || has_passed(head, &sleeps))
                        continue;
                passed.stuck = true;
                passed.newly_stuck |= !was_stuck;
        }
        return passed;
}

bool stook_evacuate_barrier(void)
{
        struct passed passed = barrier();

        return passed.membarrier_done && !passed.stuck;
}

/* The second barrier. True: what was taken off is the caller's. */
static bool settle(void)
{
        struct passed passed = barrier();

        if (!passed.membarrier_done)
                broken = true;
        return passed.membarrier_done && !passed.newly_stuck;
}

enum stook_evacuated stook_evacuate_slots(stook_evacuate_take *take, void *data)
{
        bool any = false;

        if (!barrier().membarrier_done)
                return STOOK_EVACUATE_REFUSED;
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                struct stook_line *lines = (struct stook_line *)stook_slots_head(slot);

                if (lines)
                        any |= take(slot, is_stuck(slot), lines, data);
        }
        return !any || settle() ? STOOK_EVACUATE_DONE : STOOK_EVACUATE_LOST;
}
