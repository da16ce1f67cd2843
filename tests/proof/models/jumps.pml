/*
 * Jumps out of calls that hold a lock: the count that heals, and the lock that is had again
 * (src/base/lock.h, I3, I4). One thread makes two calls that take a lock. Between any two steps of
 * the first call a handler may come on top of it, twice, and take the same lock. The handler
 * returns, or it jumps out of both calls, at any of its own steps. Then the thread makes its next
 * call from a frame as deep as before, shallower, a little deeper or much deeper. Another thread
 * takes the lock meanwhile.
 *
 * Stack addresses are depths here: 0 is the outermost frame, larger is deeper. A call that begins
 * at depth d has its frames in d to d + 1, and records d + GAP. A signal frame takes 4: a handler's
 * call on top of it begins at d + 6 or below. Loads and stores of the count are a step each, for
 * the compiler may put a handler between them; the count and its place are one word.
 * Waits are left out: a lock is tried, and a call that cannot have it goes another way.
 *
 * Shown: no two calls that are under way hold the lock (A1); what the lock guards is whole when a
 * call begins to use it, or is made anew (A2); after a jump a call from no deeper frame than the
 * recorded place finds the count at zero and has the lock, if no other thread does (A3).
 *
 * check: holds
 * BREAK=1: the recorded place is below a signal frame.
 * check: breaks -DBREAK=1
 * BREAK=2: the count and its place are two words, the count is stored first.
 * check: breaks -DBREAK=2
 * BREAK=3: a lock is inherited though the count was not zero when the call began.
 * check: breaks -DBREAK=3
 * BREAK=4: a lock is inherited whichever thread holds it.
 * check: breaks -DBREAK=4
 * BREAK=5: what an inherited lock guards is used as it is.
 * check: breaks -DBREAK=5
 * BREAK=6: nothing heals.
 * check: breaks -DBREAK=6
 * BREAK=7: the count is lowered before the lock is dropped.
 * check: breaks -DBREAK=7
 */
#ifndef BREAK
#define BREAK 0
#endif
#if BREAK == 1
#define GAP 8
#else
#define GAP 3
#endif
#define FREE 0
#define ME 1
#define OTHER 2

byte lock;                              /* FREE, or whose */
byte count;                             /* locks_held */
byte place;                             /* where it was raised from zero */
bool broken;                            /* what the lock guards: between its holder's two stores */

byte inside[4];                         /* ghost: calls under way that hold the lock, by level */
bool on_top, jumped;                    /* the handler runs; it left by a jump */
byte depth = 10;                        /* of the thread's call */

#define HOLDERS (inside[0] + inside[1] + inside[2] + inside[3])
/*
 * Levels: 0 the first call, 1 the handler's on top of it, 2 the call after a jump. A call with
 * another on top of it does not go on, and none goes on after a jump out of it.
 */
#define RUNS (level == 2 || (!jumped && on_top == (level == 1)))
#define step(s) if :: atomic { RUNS -> s } :: atomic { level < 2 && jumped -> goto left } fi

/* From depth `here`. */
inline call(here) {
        /* stook_lock_heal, at the entry */
        step(seen = count; was = place);
        if
        :: BREAK != 6 && seen > 0 && here <= was -> step(count = 0)
        :: else
        fi;
        /* take: what the caller knows of itself, then the count, then the word */
        step(alone = (count == 0 || BREAK == 3));
        step(seen = count; was = place);
        if
        :: seen == 0 && BREAK != 2 -> step(count = 1; place = here + GAP)
        :: seen == 0 && BREAK == 2 -> step(count = 1); step(place = here + GAP)
        :: else -> step(count = seen + 1; place = was)
        fi;
        step(
                if
                :: lock == FREE -> lock = ME; got = true; anew = false
                :: (alone && lock == ME) || (BREAK == 4 && lock != FREE) ->
                        lock = ME; got = true; anew = (BREAK != 5)
                :: else -> got = false
                fi;
                if
                :: got -> inside[level] = 1; assert(HOLDERS <= 1)               /* A1 */
                :: else
                fi);
        if
        :: !got -> step(seen = count; was = place); step(count = seen - (seen > 0); place = was)
        :: else ->
                if
                :: anew -> step(broken = false)
                :: else
                fi;
                step(assert(!broken); broken = true);                           /* A2 */
                step(broken = false);
                if
                :: BREAK == 7 ->
                        step(seen = count; was = place);
                        step(count = seen - (seen > 0); place = was);
                        step(lock = FREE; inside[level] = 0)
                :: else ->
                        step(lock = FREE; inside[level] = 0);
                        step(seen = count; was = place);
                        step(count = seen - (seen > 0); place = was)
                fi
        fi
}

proctype handler() {
        byte level = 1, seen, was, handlers;
        bool alone, got, anew;

end_idle:
        atomic { !on_top && !jumped -> on_top = true }
        call(depth + 6);
left:   on_top = false;
        handlers++;
        if
        :: handlers < 2 && !jumped -> goto end_idle
        :: else
        fi
}

/* The end of both calls, at any step of the handler's call. Their frames are gone. */
proctype jump() {
end_none:
        atomic {
                on_top && !jumped -> jumped = true; inside[0] = 0; inside[1] = 0
        }
}

proctype thread() {
        byte level = 0, seen, was;
        bool alone, got, anew, can;

        call(depth);
        goto end_returned;
left:   atomic {
                level = 2;
                if
                :: depth = 9
                :: depth = 10
                :: depth = 12
                :: depth = 16
                fi;
                can = count == 0 || (depth <= place);
        }
        call(depth);
        /* The count is back, the lock is free or another thread's. */
        assert(!can || (count == 0 && lock != ME));                             /* A3 */
end_returned:
        false
}

proctype other() {
        if
        :: atomic { lock == FREE -> lock = OTHER; inside[3] = 1; assert(HOLDERS <= 1) }
           atomic { assert(!broken); inside[3] = 0; lock = FREE }
        :: true
        fi
}

init {
        atomic {
                /* Of a call before, maybe a deeper one: at count zero it says nothing. */
                if
                :: place = 0
                :: place = 30
                fi;
                run thread();
                run handler();
                run jump();
                run other()
        }
}
