/*
 * One slab of three objects and its state word, as in src/slab/slab_state.h, slab_partial.c, slab_fill.c.
 * Two pushers free an object each, a filler takes what it likes (detached, or fresh ones where the slab stands) and
 * frees one object again. Or, instead of that last
 * push, a shrinker gives an empty slab back. Or one pusher and two fillers.
 * The lock may be refused whenever it is held (by a thread, or by what a handler interrupted); whether an empty slab
 * is surplus is anybody's guess. Every load and every compare-and-swap of the word is a step, so is every read and
 * write of a link. Memory is sequentially consistent here: the orders stand at the code.
 * Shown: no object is lost or handed out twice, the list is whole when it is walked, nobody touches the descriptor
 * after the release (`alive`), a slab is on pending once (P1), pending is empty at the end (P2), a slab with free
 * objects ends on the list (S4).
 *
 * check: holds
 * check: holds -DSHRINK=1
 * check: holds -DFILLERS=2
 * BREAK=1: the claim is not made in the push's own compare-and-swap (S2).
 * check: breaks -DBREAK=1
 * BREAK=2: the detached mark goes in a step of its own (S4).
 * check: breaks -DBREAK=2 -DSHRINK=1
 * BREAK=3: a claim is taken back by a store, not by comparing the whole word.
 * check: breaks -DBREAK=3
 * BREAK=4: who drops the lock does not look at pending after that (P2).
 * check: breaks -DBREAK=4
 * BREAK=5: who pushes on pending does not try the lock after that (P2).
 * check: breaks -DBREAK=5
 * BREAK=6: a filler releases a slab that somebody else has claimed (S3).
 * check: breaks -DBREAK=6
 * BREAK=7: a slab on pending is taken from although it is listed (S1).
 * check: breaks -DBREAK=7 -DSHRINK=1
 * BREAK=8: a slab is postponed without a claim.
 * check: breaks -DBREAK=8
 * BREAK=9: a take from the listed slab does not look whether objects have come back to it.
 * check: breaks -DBREAK=9 -DSHRINK=1
 */
#ifndef BREAK
#define BREAK 0
#endif
#ifndef SHRINK
#define SHRINK 0
#endif

#ifndef FILLERS
#define FILLERS 1
#endif

#define OBJECTS 3
#define NONE    3
/* flags */
#define LISTED    1
#define DETACHED  2
#define CLAIM     4
#define RELEASING 8

byte head, inuse, fresh, flags;         /* the word */
byte next[OBJECTS];                     /* links */
byte owner[OBJECTS];                    /* ghost: 0 in the slab, else who has it */
bool onlist, pending, lock;
bool alive = true;                      /* ghost */
byte done;

/* locals of each process: h u f g as loaded; ng: new flags */
#define LOCALS byte h, u, f, g, ng, act; bool ok, got, dead, claimed

inline load() { d_step { assert(alive); h = head; u = inuse; f = fresh; g = flags } }

inline cas(nh, nu, nf, nf_flags) {
        d_step {
                assert(alive);
                if
                :: head == h && inuse == u && fresh == f && flags == g ->
                        head = nh; inuse = nu; fresh = nf; flags = nf_flags; ok = true
                :: else -> ok = false
                fi
        }
}

/* The claim is ours, the lock held. */
inline settle() {
        load();
        do
        ::      ng = g & ~CLAIM; act = 0;
                if
                :: (g & LISTED) && u == 0 -> if :: act = 3 :: skip fi
                :: (g & LISTED) && u > 0 -> skip
                :: !(g & LISTED) && !(g & DETACHED) && u == 0 -> if :: act = 2 :: act = 1 fi
                :: !(g & LISTED) && !(g & DETACHED) && u > 0 && u < OBJECTS -> act = 1
                :: !(g & LISTED) && ((g & DETACHED) || u == OBJECTS) -> skip
                fi;
                if
                :: act == 1 -> ng = ng | LISTED
                :: act > 1 -> ng = RELEASING
                :: else
                fi;
#if BREAK == 3
                d_step { assert(alive); head = h; inuse = u; fresh = f; flags = ng; ok = true };
#else
                cas(h, u, f, ng);
#endif
                if :: ok -> break :: else -> load() fi
        od;
        if
        :: act == 1 -> assert(!onlist); onlist = true
        :: act == 2 -> dead = true
        :: act == 3 -> assert(onlist); onlist = false; dead = true
        :: else
        fi
}

inline settle_pending() {
        d_step { got = pending; pending = false };
        if :: got -> settle() :: else fi
}

inline try_lock() { d_step { if :: !lock -> lock = true; got = true :: else -> got = false fi } }

inline unhold() {
        do
        ::      lock = false;
#if BREAK == 4
                break;
#endif
                if :: !pending -> break :: else fi;
                try_lock();
                if :: !got -> break :: else fi;
                settle_pending()
        od;
        if
        :: dead -> d_step { assert(alive && flags == RELEASING && inuse == 0 && !onlist && !pending);
                            alive = false; dead = false }
        :: else
        fi
}

inline pend() {
        d_step { assert(!pending); pending = true };
#if BREAK != 5
        try_lock();
        if :: got -> settle_pending(); unhold() :: else fi
#endif
}

/* Wait for the lock, or be refused while it is held. */
inline settle_or_pend() {
        if
        :: atomic { !lock -> lock = true }; settle(); unhold()
        :: lock -> pend()
        fi
}

inline push(o) {
        owner[o] = 0;
        load();
        do
        ::      assert(!(g & RELEASING) && u > 0);
                ng = g;
                if
                :: g == 0 -> ng = CLAIM
                :: g == LISTED && u == 1 -> if :: ng = LISTED | CLAIM :: skip fi
                :: g != 0 && !(g == LISTED && u == 1) -> skip
                fi;
                claimed = (ng != g);
#if BREAK == 1
                ng = g;
#endif
                next[o] = h;
                cas(o, u - 1, f, ng);
                if :: ok -> break :: else -> load() fi
        od;
        if :: claimed -> settle_or_pend() :: else fi
}

/* Up to `want` objects of a detached slab; what is got becomes `me`'s, the last one stands in `mine`. */
inline take(me) {
        load();
        do
        ::      listed = f - u;
                if :: listed > want -> listed = want :: else fi;
                at = h; i = 0; t0 = NONE; t1 = NONE; t2 = NONE;
                do
                :: i < listed ->
                        assert(at < OBJECTS);
                        t2 = t1; t1 = t0; t0 = at;
                        at = next[at];
                        i++
                :: else -> break
                od;
                assert(listed < f - u || at == NONE);
                unused = OBJECTS - f;
                if :: unused > want - listed -> unused = want - listed :: else fi;
                left = (u + listed + unused < OBJECTS);
#if BREAK == 2
                ng = g;
#else
                ng = g;
                if :: !left -> ng = g & ~DETACHED :: else fi;
#endif
                cas(at, u + listed + unused, f + unused, ng);
                if :: ok -> break :: else -> load() fi
        od;
        skip;                           /* spin: no jump into a d_step */
        d_step {
                if :: t0 < NONE -> assert(owner[t0] == 0); owner[t0] = me; mine = t0 :: else fi;
                if :: t1 < NONE -> assert(owner[t1] == 0); owner[t1] = me :: else fi;
                if :: t2 < NONE -> assert(owner[t2] == 0); owner[t2] = me :: else fi;
                i = 0;
                do
                :: i < unused -> assert(owner[f + i] == 0); owner[f + i] = me; mine = f + i; i++
                :: else -> break
                od
        };
#if BREAK == 2
        if
        :: !left ->
                load();
                do
                ::      cas(h, u, f, g & ~DETACHED);
                        if :: ok -> break :: else -> load() fi
                od
        :: else
        fi
#endif
}

/* Lock held: fresh objects of the listed slab, where it stands. */
inline take_listed(me) {
        load();
        do
        ::      unused = 0;
#if BREAK != 9
                if :: f != u -> break :: else fi;
#endif
                if :: f == OBJECTS -> break :: else fi;
                unused = OBJECTS - f;
                left = unused > want;
                ng = g;
                if :: left -> unused = want :: else -> ng = g & ~LISTED fi;
                cas(h, u + unused, f + unused, ng);
                if :: ok -> break :: else -> load() fi
        od;
        skip;
        d_step {
                i = 0;
                do
                :: i < unused -> assert(owner[f + i] == 0); owner[f + i] = me; mine = f + i; i++
                :: else -> break
                od
        };
        if :: unused && !left -> assert(onlist); onlist = false :: else fi
}

/* A detached slab with free objects goes back. */
inline put_back() {
        if
        :: atomic { !lock -> lock = true };
                load();
                do
                ::
#if BREAK == 6
                        if :: u == 0 -> ng = RELEASING :: ng = (g & ~DETACHED) | LISTED fi;
#else
                        if :: u == 0 && !(g & CLAIM) -> ng = RELEASING :: ng = (g & ~DETACHED) | LISTED fi;
#endif
                        cas(h, u, f, ng);
                        if :: ok -> break :: else -> load() fi
                od;
                if :: ng == RELEASING -> dead = true :: else -> assert(!onlist); onlist = true fi;
                unhold()
        :: lock ->
                load();
                do
                ::
#if BREAK == 8
                        cas(h, u, f, g & ~DETACHED);
#else
                        cas(h, u, f, (g & ~DETACHED) | CLAIM);
#endif
                        if :: ok -> break :: else -> load() fi
                od;
                if :: !(g & CLAIM) -> pend() :: else fi
        fi
}

proctype pusher(byte o) {
        LOCALS;
        push(o);
        done++
}

proctype filler() {
        LOCALS;
        byte listed, unused, at, i, t0, t1, t2, want, mine = NONE;
        bool left, have;

        if :: want = 0 :: want = 1 :: want = 2 :: want = 3 fi;    /* 0: others had enough, the slab stays untouched */
        if
        :: atomic { !lock -> lock = true };
                settle_pending();
                if :: want && onlist -> take_listed(9) :: skip fi;
                if
                :: onlist && mine == NONE ->
                        load();
                        do
                        ::      assert(g & LISTED);
                                cas(h, u, f, (g & ~LISTED) | DETACHED);
                                if :: ok -> break :: else -> load() fi
                        od;
                        onlist = false;
                        have = true
                :: else
                fi;
                unhold()
        :: lock ->
                d_step { got = pending; pending = false };
                if
                :: got ->
                        load();
                        do
                        ::
#if BREAK != 7
                                if :: g & LISTED -> act = 1; break :: else fi;
#endif
                                have = !(g & DETACHED) && u < OBJECTS;
                                act = 0;
                                ng = g & ~CLAIM;
                                if :: have -> ng = ng | DETACHED :: else fi;
                                cas(h, u, f, ng);
                                if :: ok -> break :: else -> have = false; load() fi
                        od;
                        if :: act == 1 -> pend() :: else fi
                :: else
                fi
        fi;
        if
        :: have ->
                if :: want -> take(9) :: else -> left = true fi;
                if :: left -> put_back() :: else fi;
        :: else
        fi;
#if !SHRINK
        if :: mine < NONE -> push(mine) :: else fi;
#endif
        done++
}

proctype shrinker() {
        LOCALS;
        atomic { !lock -> lock = true };
        settle_pending();
        if
        :: onlist ->
                load();
                do
                :: g == LISTED && u == 0 ->
                        cas(h, u, f, RELEASING);
                        if :: ok -> onlist = false; dead = true; break :: else -> load() fi
                :: else -> break
                od
        :: else
        fi;
        unhold();
        done++
}

init {
        byte i, at, out;

        atomic {
                /* Objects 0 and 1 are with the pushers; the third is out for good, on the list, or fresh. */
                owner[0] = 1; owner[1] = 2; head = NONE; inuse = 2; fresh = 3;
                if
#if !SHRINK
                :: owner[2] = 3; inuse = 3
#endif
                :: head = 2; next[2] = NONE; flags = LISTED; onlist = true
                :: fresh = 2; flags = LISTED; onlist = true
                fi;
                run pusher(0); run filler();
#if FILLERS == 2
                run filler()
#else
                run pusher(1)
#endif
#if SHRINK
                ; run shrinker()
#endif
        }
        done == 3 + SHRINK;
        d_step {
                assert(!lock && !pending);
                out = 0; i = 0;
                do :: i < OBJECTS -> out = out + (owner[i] != 0); i++ :: else -> break od;
                if
                :: !alive -> assert(out == 0)
                :: else ->
                        assert(out == inuse && !(flags & (DETACHED | CLAIM | RELEASING)));
                        assert((inuse == OBJECTS && flags == 0 && !onlist) || (inuse < OBJECTS && flags == LISTED && onlist));
                        i = 0; at = head;
                        do
                        :: i < fresh - inuse -> assert(at < OBJECTS && owner[at] == 0); at = next[at]; i++
                        :: else -> break
                        od;
                        assert(at == NONE)
                fi
        }
}
