/*
 * What is proved: a wait for the calls in transit is right after an earlier wait has given up
 * (src/rcu/rcu_transit.c). A call that was inside when the wait began has left when it returns,
 * though the thread that was given up comes back at any time.
 *
 * S is stopped in transit, for any time. N comes and goes twice. W waits, and may give up a thread
 * that does not leave. Then it waits once more, and gives up none. (A thread that was given up for
 * good costs the second wait nothing, because the new generation begins at 0. Here S always comes
 * back in the end, so that the second wait need not give up.)
 *
 * check: holds
 * BREAK=1: a thread lowers a generation that it did not raise
 * check: breaks -DBREAK=1
 * BREAK=2: a thread that gives up takes away the calls, but begins no generation
 * check: breaks -DBREAK=2
 * BREAK=3: the waiting thread looks at one count only
 * check: breaks -DBREAK=3
 */
#ifndef BREAK
#define BREAK 0
#endif

byte calls[2];
byte generation[2];
bit  phase = 0;
byte come = 0;                          /* how often N has come */
bool inside = false;                    /* N is */
byte n_at, n_mine;                      /* its ticket */
byte done = 0;

inline enter(at, mine) {
        at = phase;                     /* a hint: the count may be another by the next step */
        d_step { mine = generation[at]; calls[at]++ }
}

inline leave(at, mine) {
        d_step {
                if
#if BREAK == 1
                :: calls[at] > 0 -> calls[at]--
#else
                :: calls[at] > 0 && generation[at] == mine -> calls[at]--
#endif
                :: else
                fi
        }
}

inline give_up(at) {
        d_step {
                calls[at] = 0;
#if BREAK != 2
                generation[at]++
#endif
        }
}

/* One count; @may: it may be given up. */
inline wait_for(at, may) {
        phase = 1 - at;
        if
        :: calls[at] == 0
        :: may && calls[at] != 0 -> give_up(at)
        fi
}

proctype S() {
        byte at, mine;

        enter(at, mine);
        leave(at, mine);
        done++
}

proctype N() {
        do
        :: come < 2 ->
                enter(n_at, n_mine);
                d_step { come++; inside = true };
                inside = false;
                leave(n_at, n_mine)
        :: else -> break
        od;
        done++
}

proctype W() {
        byte before;
        bool was;

        wait_for(0, true);
        wait_for(1, true);
        /* inside, and not given up itself */
        d_step { before = come; was = inside && generation[n_at] == n_mine };
        wait_for(0, false);
#if BREAK != 3
        wait_for(1, false);
#endif
        assert(!was || !inside || come != before);
        done++
}

init {
        atomic { run S(); run N(); run W() }
        done == 3
}
