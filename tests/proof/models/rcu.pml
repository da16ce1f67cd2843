/*
 * What is proved: a barrier waits for every object that was given to free_rcu before it. So
 * free_rcu and then destroy is legal. And no sheaf of a slot is lost or submitted twice
 * (src/rcu/rcu_open.c, src/rcu/rcu_submit.c, src/rcu/rcu_barrier.c).
 *
 * There is one slot, whose rcu sheaf has three places. At first it is empty, or has an object that
 * does not matter here. A frees an object (its first free) and then has a barrier. B frees one by
 * an ordinary call, or by a nolock call, whose full sheaf is deferred (on a stack). C is an
 * ordinary call that empties the stack. Any step may be followed by any step of the others.
 *
 * A section of the slot is one atomic step; that it is so is what slot.pml and the tests at every
 * instruction are about. But a push that loaded the sheaf may commit after an evacuation took it
 * off, until the evacuation's membarrier. That is modelled (`loaded`).
 *
 * Sheaf 1 is open at first. Sheaf 2 is what is opened when there is none. Grace periods: the
 * implementation's barrier returns when all that was given to `call` before has been freed.
 *
 * check: holds
 * check: holds -DNOLOCK=1
 * BREAK=1: the transit count is not raised before the sheaf is taken off
 * check: breaks -DBREAK=1
 * BREAK=2: no barrier waits for calls in transit
 * check: breaks -DBREAK=2
 * BREAK=3: a barrier does not empty the stack of deferred sheaves
 * check: breaks -DBREAK=3 -DNOLOCK=1
 * BREAK=4: a barrier does not wait again after it has emptied the stack
 * check: breaks -DBREAK=4 -DNOLOCK=1
 * BREAK=5: an evacuation looks at the sheaf without a membarrier
 * check: breaks -DBREAK=5
 * BREAK=6: the fill detaches by a plain store instead of a compare-and-swap
 * check: breaks -DBREAK=6
 * BREAK=7: the call that empties the stack is not in transit
 * check: breaks -DBREAK=7 -DNOLOCK=1
 * STALE=1: an earlier barrier has left the phase at 1
 * check: holds -DSTALE=1
 * BREAK=8: the waiting thread looks at one count only
 * check: breaks -DBREAK=8 -DSTALE=1
 */
#ifndef BREAK
#define BREAK 0
#endif
#ifndef NOLOCK
#define NOLOCK 0
#endif
#ifndef STALE
#define STALE 0
#endif

#define NONE 0
#define SLOT 1
#define STACK 2
#define CALLED 3                        /* given to the implementation */
#define FREED 4
#define HANDS 5
#define CLOSED 6                        /* not used yet */

byte open = 1;                          /* the slot's rcu_free: 0 none, else a sheaf */
#define ROOM 3
byte size[3];                           /* objects in a sheaf, up to ROOM */
byte where[3];
byte on_stack = 0;                      /* of deferred sheaves; one is enough here */
byte transit[2];
bit  phase = 0;
bool returned[3];                       /* free_rcu of this process has returned */
byte sheaf_of[3];                       /* where its object went */
bool gone = false;                      /* A's barrier is over, the cache destroyed */
/*
 * The process between its load and its commit, + 1; 0: none. Another one on the slot aborts it.
 */
byte loaded = 0;
byte done = 0;

/* Raises the count that the phase says, or one that it said earlier. */
inline enter_transit(at) {
        at = phase;
        transit[at]++
}
inline leave_transit(at) { transit[at]-- }

inline submit(s) {
        d_step {
                assert(where[s] == HANDS);
                assert(!gone);          /* into a cache that is no more */
                where[s] = CALLED
        }
}

/* An ordinary call submits what lies on the stack. */
inline empty_stack(me, s, at) {
#if BREAK != 7
        enter_transit(at);
#endif
        d_step { s = on_stack; on_stack = 0; if :: s -> where[s] = HANDS :: else fi };
        if
        :: s -> submit(s)
        :: else
        fi;
#if BREAK != 7
        leave_transit(at)
#else
        skip
#endif
}

/* One object into the slot's sheaf. */
inline free_rcu(me, s, at, nolock) {
        do
        :: d_step { open == 0 -> open = 2; where[2] = SLOT }
        :: atomic { open != 0 && size[open] < ROOM - 1 -> s = open; loaded = me + 1 };
                /* a section: aborted by a membarrier, else it commits */
                if
                :: d_step {
                        loaded == me + 1 ->
                        assert(where[s] == SLOT || where[s] == HANDS);
                        size[s]++; sheaf_of[me] = s; loaded = 0
                   };
                        break
                :: d_step { loaded != me + 1 -> skip }
                fi
        :: atomic { open != 0 && size[open] == ROOM - 1 -> skip };
#if BREAK != 1
                enter_transit(at);
#endif
                atomic {
                        s = open;
                        if
                        :: s != 0 && size[s] == ROOM - 1 -> loaded = me + 1
                        :: else -> s = 0
                        fi
                };
                if
                :: s != 0 ->
                        if
                        :: d_step {
                                loaded == me + 1 ->
                                loaded = 0;
#if BREAK != 6
                                if
                                :: open == s && size[s] == ROOM - 1 ->
                                        open = 0; where[s] = HANDS;
                                        size[s] = ROOM; sheaf_of[me] = s
                                :: else -> s = 0
                                fi
#else
                                assert(where[s] == SLOT); open = 0; where[s] = HANDS;
                                size[s] = ROOM; sheaf_of[me] = s
#endif
                           }
                        :: d_step { loaded != me + 1 -> s = 0 }
                        fi
                :: else
                fi;
#if BREAK == 1
                if
                :: s != 0 -> enter_transit(at)
                :: else
                fi;
#endif
                if
                :: s != 0 && !nolock -> submit(s)
                :: s != 0 && nolock ->
                        d_step { assert(on_stack == 0); on_stack = s; where[s] = STACK }
                :: else
                fi;
#if BREAK == 1
                if
                :: s != 0 -> leave_transit(at)
                :: else
                fi;
#else
                leave_transit(at);
#endif
                if
                :: s != 0 -> break
                :: else
                fi
        od;
        returned[me] = true
}

inline wait_for_transit() {
#if BREAK != 2
        phase = 1;
        transit[0] == 0;
#if BREAK != 8
        phase = 0;
        transit[1] == 0
#endif
#endif
        skip
}

inline barrier(s, at) {
        /* open sheaves: off the slot, a membarrier, then they are ours */
        enter_transit(at);
        d_step { s = open; open = 0; if :: s -> where[s] = HANDS :: else fi };
#if BREAK != 5
        loaded = 0;
#endif
        if
        :: s != 0 && size[s] != 0 -> submit(s)
        :: s != 0 && size[s] == 0 -> where[s] = CLOSED
        :: else
        fi;
        leave_transit(at);
        wait_for_transit();
#if BREAK != 3
        empty_stack(0, s, at);
#endif
#if BREAK != 4
        wait_for_transit();
#endif
        /* the implementation's */
        d_step {
                if :: where[1] == CALLED -> where[1] = FREED :: else fi;
                if :: where[2] == CALLED -> where[2] = FREED :: else fi
        }
}

proctype A() {
        byte s, at;
        bool before;

        free_rcu(0, s, at, 0);
        before = returned[1];           /* B's object was given before our barrier too */
        barrier(s, at);
        assert(where[sheaf_of[0]] == FREED);
        assert(!before || where[sheaf_of[1]] == FREED);
        /* Destroyed: no sheaf with an object from before may be submitted any more. */
        gone = before;
        done++
}

proctype B() {
        byte s, at;

        free_rcu(1, s, at, NOLOCK);
        done++
}

proctype C() {
        byte s, at;

        empty_stack(2, s, at);
        done++
}

init {
        atomic {
                where[1] = SLOT; where[2] = CLOSED;
                if :: size[1] = 0 :: size[1] = 1 fi;
#if STALE
                phase = 1;
#endif
                run A(); run B(); run C()
        }
        done == 3;
        /* every sheaf with objects is somewhere */
        assert(where[1] != HANDS && where[2] != HANDS)
}
