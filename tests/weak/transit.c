/*
 * Proves of src/rcu/rcu_transit.c, as it is: a barrier that finds a sheaf gone waits for the call
 * that took it, and then sees that it was submitted, however many calls begin meanwhile; so it does
 * for what was deferred, which a call may take just before the barrier would. Without the wait, or
 * with a call that is in transit only once it has the sheaf, objects are missed: the kernel's
 * mistake of a sheaf in transit at a barrier, and another one.
 */
#include "selves.h"

#include "rcu/rcu_transit.c"

/* ---- the layers below ---- */

uint64_t stook_os_clock_ms(void) { return 0; }          /* no wait ends by its time */
void stook_os_futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value, (void)ns;
        weak_wait();
}
uint32_t stook_gate_state = STOOK_GATE_OPEN, *stook_gate_heap;
const struct stook_gate_duties stook_gate_duties = { NULL, NULL, NULL };
void stook_gate_check(void) { }
bool stook_lock_frame_is_gone(uintptr_t frame, uintptr_t here)
{
        (void)frame, (void)here;
        return false;
}

/* ---- a sheaf: on its slot, then with the implementation ---- */

static _Alignas(64) uint64_t slot;      /* 1: it is there */
static _Alignas(64) int submitted;      /* the thread's that has it; the barrier's, afterwards */

static void reset(void)
{
        slot = 1;
        submitted = 0;
        phase = 0;
        in_transit[0] = in_transit[1] = 0;
        renew[0] = renew[1] = false;
        first_here[0] = first_here[1] = 0;
        for (unsigned i = 0; i <= WEAK_THREADS; i++)
                weak_selves[i].inside = 0;
}

static bool take(void)
{
        return __atomic_exchange_n(&slot, 0, __ATOMIC_ACQ_REL);
}

static void free_by_rcu(void)
{
        uint64_t ticket = stook_transit_begin();

        if (take())
                submitted++;
        stook_transit_end(ticket);
}

static void barrier(void)
{
        bool mine = take();

        if (mine)
                submitted++;
        weak_assert(stook_transit_wait());
        weak_assert(submitted == 1);
}

/* Calls that come and go. */
static void pass(void)
{
        for (unsigned i = 0; i < 2; i++)
                stook_transit_end(stook_transit_begin());
}

static void barrier_without_wait(void)
{
        if (take())
                submitted++;
        weak_assert(submitted == 1);
}

static void begin_late(void)
{
        if (take()) {
                uint64_t ticket = stook_transit_begin();

                submitted++;
                stook_transit_end(ticket);
        }
}

static const struct weak_program one_call = {
        "transit, one call", reset, { free_by_rcu, barrier }, NULL, 3, 2
};
static const struct weak_program beside_others = {
        "transit, beside others", reset, { free_by_rcu, barrier, pass }, NULL, 2, 1
};
static const struct weak_program two_calls = {
        "transit, two calls", reset, { free_by_rcu, barrier, free_by_rcu }, NULL, 2, 1
};
static const struct weak_program not_waited = {
        "transit, no wait", reset, { free_by_rcu, barrier_without_wait }, NULL, 2, 2
};
static const struct weak_program late = {
        "transit, begun late", reset, { begin_late, barrier }, NULL, 2, 2
};

int main(void)
{
        weak_hold(&one_call);
        weak_hold(&beside_others);
        weak_hold(&two_calls);
        weak_break(&not_waited);
        weak_break(&late);
        return 0;
}
