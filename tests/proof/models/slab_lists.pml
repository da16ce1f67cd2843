/*
 * One slab, and two lists of its node, as in src/slab/slab_lists.c and slab_partial.c. The slab has
 * two parts, and may go over from the first list to the second. A taker has the first list's lock.
 * It uses the slab up and lets it go over: number, then drop. Two claimers have one claim each, and
 * read the slab's number without a lock. They settle under the lock of that list, or enter the
 * claim and push the slab on its pending stack. What is settled changes the slab's place in a list:
 * that is the step that must not be done by two threads at a time, nor under another list's lock.
 * How two slabs wait on one stack is in slab_pending.pml.
 * Shown: a thread that changes the slab's place holds the lock of the list of its number (L2). Each
 * claim is settled once, and none is left at the end (P2), wherever the slab was pushed. The slab
 * is on one pending stack at a time (P1).
 *
 * The slab goes over once; with BACK=1 it may come back (5.7 million states).
 * check: holds
 * BREAK=1: a holder acts on a slab whatever its number says.
 * check: breaks -DBREAK=1
 * BREAK=2: a holder that finds a slab of the other list on pending forgets it.
 * check: breaks -DBREAK=2
 * BREAK=3: a slab that is pushed on to the other list: that list's lock is not tried after it.
 * check: breaks -DBREAK=3
 * BREAK=4: the slab goes over before it is off its list.
 * check: breaks -DBREAK=4
 * BREAK=5: the slab goes over after the lock was dropped.
 * check: breaks -DBREAK=5
 * BREAK=6: a claimer pushes the slab although its word was not zero.
 * check: breaks -DBREAK=6
 */
#ifndef BREAK
#define BREAK 0
#endif

#ifndef BACK
#define BACK 0
#endif

byte number;                    /* of the slab's list */
byte word;                      /* its claims on pending */
bool lock[2];
bool stack[2];                  /* the slab is on this list's pending stack */
bool listed;
bool changing;                  /* ghost: a thread changes the slab's place */
byte settled;                   /* ghost */
byte done;

#define LOCALS byte here, claims, old; bool got, moved

/* Under the lock of list l: the slab's place in the list changes, in more steps than one. */
inline change(l, to) {
        d_step { assert(lock[l] && number == l && !changing); changing = true };
        listed = to;
        d_step { assert(number == l); changing = false }
}

inline settle(l, c) {
        d_step { assert(!(settled & (c))); settled = settled | (c) };
        change(l, true)
}

inline try_lock(l) {
        d_step { if :: !lock[l] -> lock[l] = true; got = true :: else -> got = false fi }
}

inline is_here(l) {
#if BREAK == 1
        got = true
#else
        got = (number == l)
#endif
}

/* Held: of list l. */
inline settle_pending(l) {
        d_step { got = stack[l]; stack[l] = false };
        if
        :: got ->
                is_here(l);
                if
                :: got -> d_step { claims = word; word = 0 }; settle(l, claims); claims = 0
#if BREAK != 2
                :: else -> assert(!moved); moved = true
#else
                :: else
#endif
                fi
        :: else
        fi;
        got = false
}

inline push(l) { d_step { assert(!stack[0] && !stack[1]); stack[l] = true } }

/* stook_slab_unhold: here is the list whose lock is held. */
inline unhold() {
        do
        ::      lock[here] = false;
                got = false;
                if :: stack[here] -> try_lock(here) :: else fi;
                if
                :: !got && moved ->
                        moved = false;
                        here = number;
                        push(here);
#if BREAK != 3
                        try_lock(here)
#endif
                :: else
                fi;
                if :: got -> got = false; settle_pending(here) :: else -> break fi
        od
}

inline enter(c) { d_step { old = word; word = word | (c) } }

proctype claimer(byte c) {
        LOCALS;
        here = number;
        try_lock(here);
        if
        :: got ->
                is_here(here);
                if
                :: got -> settle(here, c)
                :: else -> enter(c); if :: !old -> assert(!moved); moved = true :: else fi
                fi;
                unhold()
        :: else ->
                enter(c);
                if :: !old || BREAK == 6 -> push(here) :: else fi;
                try_lock(here);
                if :: got -> settle_pending(here); unhold() :: else fi
        fi;
        done++
}

/* Uses the slab up, and takes it over to its own list, l. */
proctype taker(byte l) {
        LOCALS;
        here = number;
        atomic { !lock[here] -> lock[here] = true };
        settle_pending(here);
        is_here(here);
        if
        :: got ->
#if BREAK == 4
                number = l;
#endif
                change(here, false);
#if BREAK != 4 && BREAK != 5
                number = l
#endif
        :: else
        fi;
        unhold();
#if BREAK == 5
        number = l;
#endif
        done++
}

init {
        atomic {
                run taker(1);
#if BACK
                run taker(0);
#endif
                run claimer(1);
                run claimer(2);
        }
        done == 3 + BACK;
        assert(!lock[0] && !lock[1] && !stack[0] && !stack[1] && !word && settled == 3)
}
