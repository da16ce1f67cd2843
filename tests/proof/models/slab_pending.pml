/*
 * Two slabs, their words `pending`, and the pending stack with its links, as in
 * src/slab/slab_partial.c. Claims are bits of the words. A claimer settles its claims under the
 * lock, or enters them where the lock is refused. It has claims on both slabs, and pushes them as
 * one chain. A filler without the lock takes the stack, and puts back all but the first slab, as
 * they are. Then it takes the claims of the first, and enters them again, or has used them up. What
 * the claims are for is in slab.pml.
 * Shown: each claim is settled once. None is left at the end (P2). No slab is on the stack twice,
 * or pushed while a thread may still follow its link (P1).
 *
 * check: holds
 * check: holds -DFILLER=0
 * BREAK=1: the word is taken before the link to the next slab is read (P1).
 * check: breaks -DBREAK=1
 * BREAK=2: a slab is pushed although its word was not zero (P1).
 * check: breaks -DBREAK=2
 * BREAK=3: a thread that drops the lock does not look at pending after that (P2).
 * check: breaks -DBREAK=3
 * BREAK=4: a thread that pushes does not try the lock after that (P2).
 * check: breaks -DBREAK=4
 * BREAK=5: the word is read and cleared in two steps.
 * check: breaks -DBREAK=5
 * BREAK=6: a thread that pushes tries the lock before that (P2).
 * check: breaks -DBREAK=6
 * BREAK=7: the filler puts the slab back, too, whose word it takes (P1).
 * check: breaks -DBREAK=7
 * BREAK=8: the filler does not try the lock after it put slabs back (P2).
 * check: breaks -DBREAK=8
 */
#ifndef BREAK
#define BREAK 0
#endif
#ifndef FILLER
#define FILLER 1
#endif

#define SLABS 2
#define NONE  SLABS

byte word[SLABS];
byte next[SLABS];
byte first = NONE;
bool lock;
byte settled[SLABS];                    /* ghost */
byte done;

#define LOCALS byte at, follow, claims, old, head, tail; bool got

inline settle(s, c) {
        d_step { assert(!(settled[s] & (c))); settled[s] = settled[s] | (c) }
}

inline take_word(s) {
#if BREAK == 5
        claims = word[s];
        word[s] = 0
#else
        d_step { claims = word[s]; word[s] = 0 }
#endif
}

inline take_stack() { d_step { at = first; first = NONE } }

inline settle_pending() {
        take_stack();
        do
        :: at != NONE ->
#if BREAK == 1
                take_word(at);
                settle(at, claims);
                follow = next[at];
#else
                follow = next[at];
                take_word(at);
                settle(at, claims);
#endif
                at = follow
        :: else -> break
        od;
        claims = 0; follow = NONE
}

inline try_lock() { d_step { if :: !lock -> lock = true; got = true :: else -> got = false fi } }

inline unhold() {
        do
        ::      lock = false;
#if BREAK == 3
                break;
#endif
                if :: first == NONE -> break :: else fi;
                try_lock();
                if :: !got -> break :: else fi;
                settle_pending()
        od;
        got = false
}

/*
 * The claims c are entered; the slab joins the chain head..tail if it is this thread that pushes
 * it.
 */
inline enter(s, c) {
        d_step { old = word[s]; word[s] = word[s] | (c) };
#if BREAK == 2
        old = 0;
#endif
        if
        :: !old -> next[s] = head; head = s; if :: tail == NONE -> tail = s :: else fi
        :: else
        fi;
        old = 0
}

inline push() {
        if
        :: head != NONE ->
                do
                ::      old = first;
                        next[tail] = old;
                        d_step {
                                if
                                :: first == old -> first = head; got = true
                                :: else -> got = false
                                fi
                        };
                        if :: got -> break :: else fi
                od
        :: else
        fi;
        head = NONE; tail = NONE; old = 0
}

/* stook_pending_stack_put_back: head and what follows it. */
inline put_back() {
        do
        ::      d_step {
                        if
                        :: first == NONE -> first = head; got = true
                        :: else -> got = false
                        fi
                };
                if :: got -> break :: else fi;
                d_step { old = first; first = NONE };
                if
                :: old != NONE ->
                        tail = old;
                        do
                        :: next[tail] != NONE -> tail = next[tail]
                        :: else -> break
                        od;
                        next[tail] = head;
                        head = old
                :: else
                fi
        od;
        head = NONE; tail = NONE; old = 0; got = false
}

inline push_and_try() {
#if BREAK == 6
        try_lock();
        push();
        if :: lock && got -> skip :: else fi;
#else
        push();
#endif
#if BREAK != 4 && BREAK != 6
        try_lock();
        if :: got -> settle_pending(); unhold() :: else fi
#endif
}

/* Claims a of slab 0 and b of slab 1. */
proctype claimer(byte a, b) {
        LOCALS;
        head = NONE; tail = NONE;
        if
        :: atomic { !lock -> lock = true };
                if :: a -> settle(0, a) :: else fi;
                if :: b -> settle(1, b) :: else fi;
                unhold()
        :: lock ->
                if :: a -> enter(0, a) :: else fi;
                if :: b -> enter(1, b) :: else fi;
                push_and_try()
        fi;
        done++
}

/* Holds the lock for a while. */
proctype holder() {
        LOCALS;
        atomic { !lock -> lock = true };
        settle_pending();
        unhold();
        done++
}

proctype filler() {
        LOCALS;
        byte mine;
        head = NONE; tail = NONE;
        take_stack();
        mine = at; at = NONE;
        if
        :: mine != NONE ->
#if BREAK == 7
                head = mine;
#else
                head = next[mine];
#endif
                if
                :: head != NONE ->                      /* stook_slab_pend_again */
                        put_back();
#if BREAK != 8
                        try_lock();
                        if :: got -> settle_pending(); unhold() :: else fi
#endif
                :: else
                fi;
                take_word(mine);
                if
                :: claims -> enter(mine, claims); claims = 0; push_and_try()
                :: claims -> settle(mine, claims); claims = 0
                :: else
                fi
        :: else
        fi;
        done++
}

init {
        atomic {
                run claimer(1, 1);
                run claimer(2, 2);
#if FILLER
                run filler();
#else
                run claimer(4, 0);
#endif
                run holder();
        }
        done == 4;
        assert(!lock && first == NONE && !word[0] && !word[1] &&
               settled[0] == (FILLER -> 3 : 7) && settled[1] == 3)
}
