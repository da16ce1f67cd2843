/*
 * One slab of PARTS parts with OBJECTS objects each, as in src/slab/slab_state.h, slab_partial.c,
 * slab_fill.c. Freers free an object each. A filler takes up to four objects: from the listed parts
 * under the lock; or, where it is refused, from the claims on pending. It frees one of them again.
 * A shrinker retires an empty slab. The lock may be refused whenever it is held, by a thread or by
 * what a handler interrupted. So a handler on top of a holder is among these runs. Whether an empty
 * slab is surplus is a free choice each time.
 * Every read of a part, every compare-and-swap and every store is a step. The halves of a part are
 * read at once: halves of two pairs make the compare-and-swap fail. Memory is sequentially
 * consistent here: the orders stand at the code.
 * Where some objects of the part are free and the freed one leaves some out, a free may change the
 * bits alone, and compare nothing else (S9). It may also change the pair: so both meet in one part.
 * Parts of two objects have no such case.
 * The stack's links are in slab_pending.pml, the generation in slab_lives.pml.
 * Shown: no object is lost or handed out twice; no thread touches the descriptor after the release
 * (`alive`); a released slab has all its objects, no list and no claim (S3); a slab is on pending
 * once (P1); nothing is on pending at the end (P2); a part is listed exactly if it has free
 * objects, at the end (S4), and `listed` agrees (S5).
 *
 * check: holds
 * check: holds -DSHRINK=1 -DFREERS=1 -DBACK=0
 * check: holds -DFILLERS=2 -DFREERS=1 -DBACK=0
 * check: holds -DPARTS=1 -DOBJECTS=3
 * check: holds -DPARTS=1 -DOBJECTS=3 -DSHRINK=1 -DBACK=0
 * BREAK=1: the claim is not set in the free's own compare-and-swap (S2).
 * check: breaks -DBREAK=1
 * BREAK=2: a claim is taken back by a store, not by comparing the whole pair.
 * check: breaks -DBREAK=2
 * BREAK=3: a thread that drops the lock does not look at pending after that (P2).
 * check: breaks -DBREAK=3
 * BREAK=4: a thread that pushes on pending does not try the lock after that (P2).
 * check: breaks -DBREAK=4
 * BREAK=5: a claim on pending is taken from although its part is listed (S1).
 * check: breaks -DBREAK=5 -DSHRINK=1 -DFREERS=1 -DBACK=0
 * BREAK=6: a slab is released although another part is claimed (S3).
 * check: breaks -DBREAK=6
 * BREAK=7: a take under the lock that leaves nothing does not clear LISTED (S4).
 * check: breaks -DBREAK=7
 * BREAK=8: a take that leaves nothing clears LISTED in a step of its own (S4).
 * check: breaks -DBREAK=8 -DBACK=0
 * BREAK=9: a take from a claim that leaves nothing keeps the claim as it was, and forgets it.
 * check: breaks -DBREAK=9 -DBACK=0
 * BREAK=10: the whole slab is not looked at: released when the claimed part is empty.
 * check: breaks -DBREAK=10
 * BREAK=11: a free of the last object of a listed part takes no claim, and settles all the same
 * (S2).
 * check: breaks -DBREAK=11
 * BREAK=12: the look whether the slab is empty reads a part's flags before its bits, and misses a
 * claim.
 * check: breaks -DBREAK=12
 * BREAK=13: a free of a full part changes the bits alone (S9).
 * check: breaks -DBREAK=13 -DPARTS=1 -DOBJECTS=3
 * BREAK=14: a free that changes the bits alone stores them, and compares nothing.
 * check: breaks -DBREAK=14 -DPARTS=1 -DOBJECTS=3
 * BREAK=15: a take compares the flags only: it misses a free that changed the bits alone.
 * check: breaks -DBREAK=15 -DPARTS=1 -DOBJECTS=3
 * BREAK=16: the settling of a claim compares the flags only.
 * check: breaks -DBREAK=16 -DPARTS=1 -DOBJECTS=3
 */
#ifndef BREAK
#define BREAK 0
#endif
#ifndef PARTS
#define PARTS 2
#endif
#ifndef OBJECTS
#define OBJECTS 2
#endif
#ifndef SHRINK
#define SHRINK 0
#endif
#ifndef FILLERS
#define FILLERS 1
#endif
#ifndef BACK
#define BACK 1
#endif
#ifndef FREERS
#define FREERS 2
#endif

#define ALL_OBJECTS (PARTS * OBJECTS)
#define ALL ((1 << OBJECTS) - 1)
#define NONE ALL_OBJECTS
/* flags */
#define LISTED   1
#define CLAIM    2
#define RELEASED 4

byte bits[PARTS], flags[PARTS];         /* the parts */
byte listed;                            /* lock: parts that are LISTED; not 0: on the list */
byte pending;                           /* the slab's word */
bool stacked, lock;
bool alive = true;                      /* ghost */
bool out[ALL_OBJECTS];                  /* ghost: not in the slab */
byte done;

/* of each process: b g as read; ng nb: new */
#define LOCALS byte b, g, nb, ng, claims, p, seen; bool ok, got, dead, claimed, vacant, surplus

inline read(q) { d_step { assert(alive); b = bits[q]; g = flags[q] } }

inline cas(q) {
        d_step {
                assert(alive);
                if
                :: bits[q] == b && flags[q] == g -> bits[q] = nb; flags[q] = ng; ok = true
                :: else -> ok = false; b = bits[q]; g = flags[q]
                fi
        }
}

/* The bits alone. */
inline cas_bits(q) {
        d_step {
                assert(alive);
                if
#if BREAK == 14
                :: true -> bits[q] = nb; ok = true
#else
                :: bits[q] == b -> bits[q] = nb; ok = true
                :: else -> ok = false
#endif
                fi
        }
}

/* The whole pair; by mistake its flags alone. */
inline cas_flags(q) {
        d_step {
                assert(alive);
                if
                :: flags[q] == g -> bits[q] = nb; flags[q] = ng; ok = true
                :: else -> ok = false; b = bits[q]; g = flags[q]
                fi
        }
}

/*
 * Held: part k is free, listed and unclaimed. Its words are read one by one, the bits first: the
 * claim was set in the step that set the last bit, so a thread that sees all bits sees the claim,
 * too.
 */
inline look_part(k) {
#if BREAK == 12
        d_step { assert(alive); seen = flags[k] };
        d_step { vacant = bits[k] == ALL && seen == LISTED; seen = 0 }
#else
        d_step { assert(alive); vacant = bits[k] == ALL };
        if
#if BREAK == 6
        :: vacant -> d_step { vacant = (flags[k] & LISTED) != 0 }
#elif BREAK == 10
        :: !vacant -> vacant = true
#else
        :: vacant -> d_step { vacant = flags[k] == LISTED }
#endif
        :: else
        fi
#endif
}

/*
 * Held. All parts are free, listed and unclaimed, but for part q, whose claim is the caller's
 * (PARTS: none is).
 */
inline look_empty(q) {
        vacant = true;
        if :: q != 0 -> look_part(0) :: else fi;
#if PARTS == 2
        if :: vacant && q != 1 -> look_part(1) :: else fi
#endif
}

inline mark_released() {
        flags[0] = RELEASED;
#if PARTS == 2
        flags[1] = RELEASED;
#endif
        listed = 0;
        assert(!dead);
        dead = true
}

/* Held, the claim of part q is ours. */
inline settle(q) {
        if :: surplus = true :: surplus = false fi;
        read(q);
        do
        ::      assert(g & CLAIM || BREAK == 1 || BREAK == 11);
                vacant = false;
                if :: surplus && b == ALL -> look_empty(q) :: else fi;
                if :: vacant -> mark_released(); break :: else fi;
                ng = g & ~CLAIM; nb = b;
                if :: !(g & LISTED) && b -> ng = ng | LISTED :: else fi;
#if BREAK == 2
                d_step { assert(alive); bits[q] = b; flags[q] = ng; ok = true };
#elif BREAK == 16
                cas_flags(q);
#else
                cas(q);
#endif
                if
                :: ok -> if :: !(g & LISTED) && b -> listed = listed | (1 << q) :: else fi; break
                :: else
                fi
        od;
        vacant = false; surplus = false; b = 0; g = 0; nb = 0; ng = 0; ok = false
}

inline settle_claims() {
        do
        :: claims & 1 -> claims = claims & ~1; settle(0)
#if PARTS == 2
        :: !(claims & 1) && claims & 2 -> claims = claims & ~2; settle(1)
#endif
        :: !claims -> break
        od
}

inline take_word() { d_step { assert(alive); claims = pending; pending = 0; assert(claims) } }

inline settle_pending() {
        d_step { got = stacked; stacked = false };
        if :: got -> take_word(); settle_claims() :: else fi
}

inline try_lock() { d_step { if :: !lock -> lock = true; got = true :: else -> got = false fi } }

inline unhold() {
        do
        ::      lock = false;
#if BREAK == 3
                break;
#endif
                if :: !stacked -> break :: else fi;
                try_lock();
                if :: !got -> break :: else fi;
                settle_pending()
        od;
        got = false;
        if
        :: dead -> d_step { assert(alive && bits[0] == ALL && flags[0] == RELEASED &&
                                   !listed && !pending && !stacked);
#if PARTS == 2
                            assert(bits[1] == ALL && flags[1] == RELEASED);
#endif
                            alive = false; dead = false }
        :: else
        fi
}

/* The claims are ours, the lock is not to be had. */
inline pend() {
        d_step { assert(alive); got = (pending == 0); pending = pending | claims; claims = 0 };
        if :: got -> d_step { assert(!stacked); stacked = true } :: else fi;
#if BREAK != 4
        try_lock();
        if :: got -> settle_pending(); unhold() :: else fi
#endif
}

inline settle_or_pend() {
        if
        :: atomic { !lock -> lock = true }; settle_claims(); unhold()
        :: lock -> pend()
        fi
}

/* By the bits alone, if it may be; and it may be not. */
inline free_some(o) {
        d_step { assert(alive); b = bits[p]; nb = b | (1 << (o % OBJECTS)) };
        if
#if BREAK == 13
        :: nb != ALL -> cas_bits(p)
#else
        :: b && nb != ALL -> cas_bits(p)
#endif
        :: ok = false
        fi
}

inline free(o) {
        p = o / OBJECTS;
        assert(out[o]);
        out[o] = false;
        ok = false;
#if OBJECTS > 2
        free_some(o);
#endif
        if :: !ok -> free_any(o) :: else fi;
        b = 0; g = 0; nb = 0; ng = 0; ok = false
}

inline free_any(o) {
        read(p);
        do
        ::      assert(!(g & RELEASED) && !(b & (1 << (o % OBJECTS))));
                nb = b | (1 << (o % OBJECTS));
                ng = g;
                if
                :: g == 0 -> ng = CLAIM
                :: g == LISTED && nb == ALL -> if :: ng = LISTED | CLAIM :: skip fi
                :: g != 0 && !(g == LISTED && nb == ALL) -> skip
                fi;
                claimed = (ng != g);
#if BREAK == 1
                ng = g;
#elif BREAK == 11
                if :: g == LISTED -> ng = g :: else fi;
#endif
                cas(p);
                if :: ok -> break :: else fi
        od;
        if :: claimed -> claims = 1 << p; claimed = false; settle_or_pend() :: else fi
}

/* Ghost: the bits t of part q are ours now. `mine` is the first object of all. */
#define GET(i) if :: t & (1 << i) -> assert(!out[q * OBJECTS + i]); \
                     out[q * OBJECTS + i] = true; want--; \
                     if :: mine == NONE -> mine = q * OBJECTS + i :: else fi \
               :: else fi

inline note() {
        d_step {
                GET(0); GET(1);
#if OBJECTS == 3
                GET(2);
#endif
                t = 0
        }
}

/* Up to `want` objects of part q: t. The flag `held` goes if none is left. */
inline take(held) {
        read(q);
        do
        ::      d_step {
                        nb = b; t = 0; n = want;
                        do
                        :: n && nb -> t = t | (nb & ~(nb - 1)); nb = nb & (nb - 1); n--
                        :: else -> break
                        od;
                        n = 0
                };
                ng = g;
#if BREAK != 7 && BREAK != 8
                if :: !nb -> ng = g & ~held :: else fi;
#else
                if :: !nb && held == CLAIM -> ng = g & ~held :: else fi;
#endif
#if BREAK == 9
                if :: !nb && held == CLAIM -> ng = g :: else fi;
#endif
#if BREAK == 15
                cas_flags(q);
#else
                cas(q);
#endif
                if :: ok -> break :: else fi
        od;
        left = (nb != 0);
        note();
#if BREAK == 8
        if
        :: !left && held == LISTED ->
                read(q);
                do :: nb = b; ng = g & ~LISTED; cas(q); if :: ok -> break :: else fi od
        :: else
        fi
#endif
}

inline take_listed() {
        q = 0;
        do
        :: q < PARTS ->
                if
                :: want && listed & (1 << q) ->
                        assert(alive && flags[q] & LISTED && bits[q]);          /* S4, S5 */
                        take(LISTED);
                        if :: !left -> listed = listed & ~(1 << q) :: else fi
                :: else
                fi;
                q++
        :: else -> break
        od
}

inline take_claims() {
        q = 0; kept = claims;
        do
        :: q < PARTS ->
                if
                :: want && claims & (1 << q) ->
                        d_step { assert(alive); got = flags[q] & LISTED };
                        if
#if BREAK == 5
                        :: true ->
#else
                        :: !got ->
#endif
                                take(CLAIM);
                                if :: !left -> kept = kept & ~(1 << q) :: else fi
#if BREAK != 5
                        :: got
#endif
                        fi
                :: else
                fi;
                q++
        :: else -> break
        od;
        claims = kept; kept = 0
}

proctype freer(byte o) {
        LOCALS;
        free(o);
        done++
}

proctype filler() {
        LOCALS;
        byte t, n, want, mine = NONE, q, kept;
        bool left;

        if :: want = 1 :: want = OBJECTS :: want = OBJECTS + 1 :: want = ALL_OBJECTS fi;
        if
        :: atomic { !lock -> lock = true };
                settle_pending();
                if :: alive && !dead -> take_listed() :: else fi;
                unhold()
        :: lock ->
                d_step { got = stacked; stacked = false };
                if
                :: got ->
                        take_word();
                        take_claims();
                        if :: claims -> pend() :: else fi
                :: else
                fi
        fi;
        q = 0; want = 0; t = 0; left = false; b = 0; g = 0; nb = 0; ng = 0;
#if BACK
        if :: mine != NONE -> free(mine) :: else fi;
#endif
        done++
}

#if SHRINK
proctype shrinker() {
        LOCALS;
        atomic { !lock -> lock = true };
        settle_pending();
        if
        :: listed -> look_empty(PARTS); if :: vacant -> mark_released() :: else fi
        :: else
        fi;
        unhold();
        done++
}
#endif

/*
 * Part q at the start: the objects of `gone` are with freers; of the others any may be out for
 * good.
 */
inline start(q, gone) {
        if
        :: bits[q] = ALL & ~(gone)
        :: bits[q] = 0
        fi;
        if :: bits[q] -> flags[q] = LISTED; listed = listed | (1 << q) :: else fi;
        i = 0;
        do
        :: i < OBJECTS -> out[q * OBJECTS + i] = !(bits[q] & (1 << i)); i++
        :: else -> break
        od
}

init {
        byte i, q;

        atomic {
                run freer(0);
#if PARTS == 1
                start(0, 3);
                run freer(1);
#else
                start(0, (FREERS > 2 -> 3 : 1));
                start(1, (FREERS > 1 -> 1 : 0));
#if FREERS > 1
                run freer(OBJECTS);
#endif
#if FREERS > 2
                run freer(1);
#endif
#endif
                run filler();
#if FILLERS == 2
                run filler();
#endif
#if SHRINK
                run shrinker();
#endif
        }
        done == FREERS + FILLERS + SHRINK;
        d_step {
                assert(!lock && !pending && !stacked);
                q = 0;
                do
                :: q < PARTS ->
                        i = 0;
                        do
                        :: i < OBJECTS -> assert(out[q * OBJECTS + i] == !(bits[q] & (1 << i))); i++
                        :: else -> break
                        od;
                        assert(!alive || flags[q] == (bits[q] -> LISTED : 0));
                        assert(!alive || ((listed >> q) & 1) == (bits[q] != 0));
                        q++
                :: else -> break
                od
        }
}
