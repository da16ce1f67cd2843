/*
 * Locks crossed by handlers: src/base/lock.h, and the way without the lock of slab_partial.c and
 * pages/span.c.
 * Two threads, two nodes with a lock and a pending stack each. Each thread brings something to its
 * own node, and takes something out of it, which it has in its hands for a while without the lock;
 * a handler may interrupt it between any two steps, once, and brings something to the other
 * thread's node. Loads, compare-and-swaps and stores are a step each. Waiting is for ever here, but
 * where STOP=1 lets a thread stand still for good, at any step: there it may end, and threads bring
 * only.
 * With FORK=1 the handler is that of a forked child instead: no other thread is there, the child
 * repairs what is in no place (life/fork.c) and leaves that undone on top of a holder.
 * Memory is sequentially consistent here: the orders stand at the code.
 * Shown: no thread waits for ever (I1, I2; no invalid end state), nothing stays on pending (M2 of
 * slab_partial.c and M1 of span.c), what is brought is in one place (no double: "in hands" of
 * pages_node.h, P4 of slab_partial.c).
 *
 * check: holds
 * check: holds -DSTOP=1
 * check: holds -DFORK=1
 * BREAK=1: a handler on top of a holder waits for locks that its own thread does not hold.
 * check: breaks -DBREAK=1
 * BREAK=2: locks_held is raised after the acquiring compare-and-swap (I3).
 * check: breaks -DBREAK=2
 * BREAK=3: locks_held is lowered before the release (I3).
 * check: breaks -DBREAK=3
 * BREAK=4: waits do not end by themselves (I2).
 * check: breaks -DBREAK=4 -DSTOP=1
 * BREAK=5: a thread that drops the lock does not look at pending after that.
 * check: breaks -DBREAK=5
 * BREAK=6: a thread that pushes on pending does not try the lock after that.
 * check: breaks -DBREAK=6
 * BREAK=7: a thread with something in its hands does not count as a holder.
 * check: breaks -DBREAK=7 -DFORK=1
 * BREAK=8: a child repairs on top of a holder.
 * check: breaks -DBREAK=8 -DFORK=1
 */
#ifndef BREAK
#define BREAK 0
#endif
#ifndef STOP
#define STOP 0
#endif
#ifndef FORK
#define FORK 0
#endif

byte lock[2];                           /* 0 free, 1 held */
byte owner[2] = 9;                      /* ghost, and what BREAK=1 asks: the holder */
byte list[2] = 1, pending[2];
byte hands[2];                          /* by thread: out of the list, free */
byte users;                             /* put to use */
byte held[2];                           /* locks_held */
bool handling[2];                       /* the handler is on top of the thread */
bool interrupted[2], over[2], stopped[2];

#define THREAD_RUNS (!handling[me] && !stopped[me])
/* A step of the code at level 0 (thread) or 1 (its handler). */
#define RUNS ((level == 1 && handling[me]) || (level == 0 && THREAD_RUNS))
#define STOPPED (level == 0 && stopped[me] && !handling[me])
#define step(s) if :: atomic { RUNS -> s } :: STOPPED -> goto end_stopped fi

/* Answers in `got`. */
inline take(x, may) {
        step(wait = may && (held[me] == 0 || (BREAK == 1 && owner[x] != me)));
        if
        :: BREAK != 2 -> step(held[me]++)
        :: BREAK == 2
        fi;
        if
        :: atomic { RUNS && lock[x] == 0 -> lock[x] = 1; owner[x] = me; got = true }
        :: STOPPED -> goto end_stopped
        :: atomic { RUNS && lock[x] == 1 -> got = false }
           if
           :: STOPPED -> goto end_stopped
           :: atomic { RUNS && !wait }
           :: atomic { RUNS && wait && lock[x] == 0 -> lock[x] = 1; owner[x] = me; got = true }
           :: atomic { RUNS && wait && STOP && BREAK != 4 }
           fi
        fi;
        if
        :: BREAK == 2 && got -> step(held[me]++)
        :: BREAK != 2 && !got -> step(held[me]--)
        :: else
        fi
}

inline drop(x) {
        if
        :: BREAK == 3 -> step(held[me]--); step(lock[x] = 0; owner[x] = 9)
        :: else -> step(lock[x] = 0; owner[x] = 9); step(held[me]--)
        fi
}

inline settle(x) {
        step(list[x] = list[x] + pending[x]; pending[x] = 0)
}

/* Drops the lock, and sees to what threads that could not have it left meanwhile. */
inline unhold(x) {
        do
        :: drop(x);
           if
           :: atomic { RUNS && (pending[x] == 0 || BREAK == 5) -> break }
           :: atomic { RUNS && pending[x] != 0 && BREAK != 5 }
           :: STOPPED -> goto end_stopped
           fi;
           take(x, false);
           if
           :: !got -> break
           :: else -> settle(x)
           fi
        od
}

inline bring(x) {
        take(x, true);
        if
        :: got -> step(list[x]++); unhold(x)
        :: else ->
           step(pending[x]++);
           if
           :: BREAK == 6
           :: else ->
              take(x, false);
              if
              :: got -> settle(x); unhold(x)
              :: else
              fi
           fi
        fi
}

/* One out of the list; out of the lock it is in this thread's hands, then in its use. */
inline fetch(x) {
        take(x, true);
        if
        :: !got
        :: else ->
           step(list[x]--; hands[me]++);
           if
           :: BREAK == 7
           :: else -> step(held[me]++)
           fi;
           unhold(x);
           step(hands[me]--; users++);
           if
           :: BREAK == 7
           :: else -> step(held[me]--)
           fi
        fi
}

/*
 * Of a child: locks of the others are free again, what is in no place is listed. What the child
 * holds is in no place.
 */
inline repair() {
        if
        :: atomic { RUNS && held[me] != 0 && BREAK != 8 }
        :: atomic { RUNS && (held[me] == 0 || BREAK == 8) ->
                lock[0] = 0; lock[1] = 0; owner[0] = 9; owner[1] = 9;
                list[0] = list[0] + hands[0] + hands[1] + pending[0];
                list[1] = list[1] + pending[1];
                pending[0] = 0; pending[1] = 0
           }
        fi
}

proctype handler(byte me) {
        byte level = 1;
        bool got, wait;

end_waiting:
        atomic { !interrupted[me] && !over[me] && !stopped[me] ->
                interrupted[me] = true; handling[me] = true
        }
        if
        :: FORK -> repair()
        :: else -> bring(1 - me)
        fi;
        handling[me] = false;
end_stopped:
        false
}

proctype thread(byte me) {
        byte level = 0;
        bool got, wait;

#if !STOP
        fetch(me);
#endif
        bring(me);
        step(over[me] = true);
        atomic {
                if
                :: !STOP && !FORK && over[0] && over[1] && !handling[0] && !handling[1] ->
                        assert(pending[0] == 0 && pending[1] == 0);
                        assert(held[0] == 0 && held[1] == 0 && lock[0] == 0 && lock[1] == 0)
                :: else
                fi;
                /* Two at first, one brought by each thread, one by each handler that ran. */
                if
                :: FORK -> assert(list[0] + list[1] + pending[0] + pending[1] +
                                  hands[0] + users <= 3)
                :: else
                fi
        }
end_stopped:
        false
}

/* A thread stands still for good. */
proctype stopper() {
end_never:
        if
        :: stopped[0] = true
        :: stopped[1] = true
        :: true
        fi
}

init {
        atomic {
                run thread(0);
                run handler(0);
#if !FORK
                run thread(1);
                run handler(1);
#endif
#if STOP
                run stopper();
#endif
        }
}
