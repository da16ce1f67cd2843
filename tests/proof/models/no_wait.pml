/*
 * Allocations that may not wait, of objects that another CPU frees: who fills their sheaf? Stook's
 * protocol is beside the mistake that the Linux kernel made and mended, as public texts tell: a
 * refill was refused to callers that may not block. Then each object is a descent to the slabs of
 * its own, under the list's lock (a driver's rate fell to a third).
 *
 * A nolock caller takes OBJECTS objects through a sheaf of CAPACITY. It is on the CPU of a thread
 * that holds the list's lock, at any of its steps, and as a handler would be: that thread goes on
 * when the caller has finished. A third thread, on another CPU, takes and drops the lock at any
 * time, and may keep it for as long as it likes.
 *
 * Stook (src/slot/slot_get.c, src/slab/slab_fill.c): a nolock call refills like any other. It tries
 * the list's lock once for a refill. Where it cannot have it, the refill takes a new slab, which no
 * other thread can see yet. Waits are for callers that may wait.
 * Shown: the caller comes to its end, whoever holds the lock; it descends once for a whole sheaf,
 * so OBJECTS / CAPACITY times, however often the lock is refused; each descent tries one lock.
 *
 * check: holds
 * check: holds -DMAY_WAIT=1
 * BREAK=1: the kernel's mistake: a refill is refused to a caller that may not wait. It takes its
 * one object from the slabs.
 * check: breaks -DBREAK=1
 * BREAK=2: the nolock caller's refill waits for the lock. The holder below it never goes on.
 * check: breaks -DBREAK=2
 * BREAK=3: a refill that cannot have the lock is given up, and one object is taken from a new slab.
 * check: breaks -DBREAK=3
 */
#ifndef BREAK
#define BREAK 0
#endif
#ifndef MAY_WAIT
#define MAY_WAIT 0
#endif

#define OBJECTS  6
#define CAPACITY 3

bool lock, in_call;
byte sheaf;                             /* objects in it */
byte got, descents, tries;
byte from_list, from_new;               /* refills, by where their objects are from */

/* Below the caller, on its CPU: it does not run while the caller does. */
proctype holder() provided (MAY_WAIT || !in_call) {
        atomic { !lock -> lock = true };
        lock = false
}

proctype other() {
end:    do
        :: atomic { !lock -> lock = true };
           lock = false
        :: break
        od
}

inline try_lock() {
        atomic {
                tries++;
                held = !lock;
                if :: held -> lock = true :: else fi
        }
}

inline refill(most) {
        descents++;
#if MAY_WAIT || BREAK == 2
        atomic { !lock -> lock = true; tries++ };
        held = true;
#else
        try_lock();
#endif
        if
        :: held -> sheaf = sheaf + most; from_list++; lock = false
#if BREAK == 3
        :: else -> sheaf = sheaf + 1; from_new++
#else
        :: else -> sheaf = sheaf + most; from_new++
#endif
        fi
}

/* A handler comes at any time: also while the holder has the lock. */
proctype caller() {
        bool held;

        in_call = true;
        do
        :: got == OBJECTS -> break
        :: got < OBJECTS && sheaf > 0 -> d_step { sheaf--; got++ }
        :: got < OBJECTS && sheaf == 0 ->
#if BREAK == 1
                refill(1)
#else
                refill(CAPACITY)
#endif
        od;
        assert(descents == OBJECTS / CAPACITY);
        assert(tries == descents && from_list + from_new == descents);
        in_call = false
}

init {
        atomic { run holder(); run other(); run caller() }
}
