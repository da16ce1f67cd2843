/*
 * One line of one slot, two sheaves' worth of capacity 1, and the code that changes it:
 * src/section/section_rseq.c, slot_get.c, slot_put.c, slot_bulk.c, evacuate.c and the stacks
 * of the barn.
 * Two threads run on the slot's CPU, at most one of them inside a section. A thread that gets the
 * CPU while the other one is inside sends it to its abort (`inside`). One frees and one allocates,
 * or both do the same. Every load and the commit is a step of its own. Or one of them borrows the
 * spare, takes an object from it and gives it back. An evacuation runs on another CPU. It changes
 * the generation and detaches the pair by a compare-and-swap. It asks for the barrier, which aborts
 * a section that is under way. Then it flushes what it has got.
 * ("Old generation" stands for an old capacity, too. A sheaf got under it may go on through the
 * barn. The thread that takes it from there may install it under the new generation.)
 * Memory is sequentially consistent here; the orders stand at the code.
 *
 * Sheaf 0 is the zero-capacity sheaf. Sheaves 1..SHEAVES are real ones; each knows where it is
 * (`place`), and what leaves a place must be there. Objects 1..OBJECTS: `owner` says where each is:
 * 0 the slabs, 9 a sheaf, else a thread.
 * Shown: no sheaf is in two places or lost, no object in two pairs of hands or lost, no word is
 * committed to by a section after the sheaf has got a sole owner, no sheaf got under an old
 * generation is in the slot after the evacuation, and main's size is what an exchange says it was.
 *
 * check: holds
 * check: holds -DSTART=1
 * check: holds -DSTART=2
 * check: holds -DSTART=3
 * check: holds -DSTART=4
 * check: holds -DSTART=5
 * TRIES=2: a call whose exchange fails looks at the slot once more, under the generation that it
 * read first. (TRIES=1 is as general where each call is followed by others, and searched faster.)
 * check: holds -DTRIES=2
 * check: holds -DTRIES=2 -DSTART=1
 * check: holds -DTRIES=2 -DSTART=3 -DCHANGE=1
 * An idle pair is taken by a thread on its CPU (slot_tick.c), beside a free, and beside an
 * allocation.
 * check: holds -DSTART=6
 * check: holds -DSTART=7
 * CHANGE=1: the evacuation is that of a change of configuration (cache_tune.c). Installs go on,
 * under the new generation.
 * check: holds -DCHANGE=1
 * check: holds -DCHANGE=1 -DSTART=1
 * check: holds -DCHANGE=1 -DSTART=3
 * check: holds -DCHANGE=1 -DSTART=5
 * check: holds -DCHANGE=1 -DSTART=7
 * SWAP=1: a call whose pop or push misses has main and spare change places, without a look at the
 * generation, and tries once more before it goes to its miss (the drop-in's malloc and free).
 * check: holds -DSWAP=1 -DSTART=2
 * check: holds -DSWAP=1 -DSTART=4
 * check: holds -DSWAP=1 -DSTART=7
 * check: holds -DSWAP=1 -DSTART=8
 * check: holds -DSWAP=1 -DSTART=9
 * check: holds -DSWAP=1 -DSTART=2 -DCHANGE=1
 * check: holds -DSWAP=1 -DSTART=8 -DCHANGE=1
 * check: holds -DSWAP=1 -DSTART=9 -DCHANGE=1
 * BREAK=10: the commit of that is a store of the pair, beside an evacuation.
 * check: breaks -DSWAP=1 -DBREAK=10 -DSTART=2
 * check: breaks -DSWAP=1 -DBREAK=10 -DSTART=8
 * BREAK=11: that section is not aborted: another thread's pop or push comes between its look and
 * its commit.
 * check: breaks -DSWAP=1 -DBREAK=11 -DSTART=9
 * MARK=1: each pop marks its sheaf, and a marked one is popped by nobody until a call whose pop
 * missed has taken the mark away, by a section (slot_trip.c). What comes from the barn may be
 * marked.
 * Each mark is taken away once, by the call whose section commits, or is left at the end.
 * check: holds -DMARK=1
 * check: holds -DMARK=1 -DSTART=2
 * check: holds -DMARK=1 -DSTART=7
 * check: holds -DMARK=1 -DSTART=10 -DTRIES=2
 * check: holds -DMARK=1 -DSTART=11 -DTRIES=2
 * check: holds -DMARK=1 -DSTART=10 -DCHANGE=1
 * BREAK=12: that section does not compare the word, which was read before.
 * check: breaks -DMARK=1 -DBREAK=12 -DSTART=10 -DTRIES=2
 * check: breaks -DMARK=1 -DBREAK=12 -DSTART=11 -DTRIES=2
 * BREAK=13: it does not compare main.
 * check: breaks -DMARK=1 -DBREAK=13 -DSTART=10 -DTRIES=2
 * BREAK=14: a pop does not look at the mark.
 * check: breaks -DMARK=1 -DBREAK=14 -DSTART=10
 * BREAK=1: the evacuation asks for no barrier.
 * check: breaks -DBREAK=1
 * BREAK=2: an exchange does not look at main's size.
 * check: breaks -DBREAK=2
 * BREAK=3: an exchange does not look at the generation.
 * check: breaks -DBREAK=3 -DTRIES=2
 * BREAK=4: a section that lost the CPU is not aborted (rseq_cs is not stored).
 * check: breaks -DBREAK=4
 * BREAK=5: the commit of an exchange is a store of the pair, not a compare-and-swap.
 * check: breaks -DBREAK=5
 * BREAK=6: no barrier between the new generation and the detaching.
 * check: breaks -DBREAK=6 -DSTART=3
 * BREAK=7: an object is taken from a borrowed sheaf after it was given back.
 * check: breaks -DBREAK=7 -DSTART=4
 * BREAK=8: a borrowed sheaf is put back as the spare of {main, any}, not of {main, none}.
 * check: breaks -DBREAK=8 -DSTART=5
 * BREAK=9: an idle pair is taken in no section, so that no thread is aborted.
 * check: breaks -DBREAK=9 -DSTART=6
 * BREAK=6: a change of configuration without a barrier before the detaching.
 * check: breaks -DBREAK=6 -DSTART=3 -DCHANGE=1
 */
#ifndef CHANGE
#define CHANGE 0
#endif
#ifndef BREAK
#define BREAK 0
#endif
#ifndef START
#define START 0
#endif

#ifndef SWAP
#define SWAP 0
#endif

#ifndef MARK
#define MARK 0
#endif

#ifndef TRIES
#define TRIES 1
#endif

#define ANY_GENERATION 255
#define SHEAVES 4
#define OBJECTS 4
#define NONE    15                      /* no spare */
/* places */
#define POOL  0
#define SLOT  1
#define FULL  2
#define EMPTY 3
#define DETACHED 4                      /* by the evacuation, whose barrier is still to come */
#define HANDS 5                         /* + the thread */

byte main_, spare = NONE;               /* the line */
/* Of capacity 1: 0 empty, else the object: word and array in one. */
byte obj[SHEAVES + 1];
byte place[SHEAVES + 1];
byte owner[OBJECTS + 1];
byte made[SHEAVES + 1];                 /* ghost: generation in which the sheaf was got */
#if MARK
bool marked[SHEAVES + 1];               /* the mark, in the same word as obj */
byte marks, trips;                      /* ghosts: marks set, and taken away */
#define READ_WORD(s) d_step { w = obj[s]; i = marked[s] }
#define MARK_IT(s) assert(!marked[s]); marked[s] = true; marks++
#if BREAK == 14
#define IS_MARKED false
#else
#define IS_MARKED (i == 1)
#endif
#else
#define READ_WORD(s) w = obj[s]
#define MARK_IT(s) skip
#define IS_MARKED false
#endif
byte generation;
byte inside;                            /* thread whose section is under way; 0: none */
byte done;

#define hands(me) (HANDS + me)

inline enter(me) {
#if BREAK != 4
        inside = me
#else
        skip
#endif
}

/* ---- sections: each yields `ok` ---- */

#if BREAK == 4
#define STILL(me) true
#else
#define STILL(me) (inside == me)
#endif

#if BREAK == 5
#define AS_SEEN true
#else
#define AS_SEEN (main_ == em && spare == es)
#endif

/* Pop: main, its word, the commit; o: what came. */
inline pop(me) {
        enter(me); o = 0; ok = false;
        m = main_;
        READ_WORD(m);
        if
        :: m == 0 || w == 0 || IS_MARKED -> skip
        :: else ->
                d_step {
                        if
                        :: STILL(me) ->
                                assert(place[m] == SLOT || place[m] == DETACHED);
                                assert(owner[w] == 9);
                                obj[m] = 0; owner[w] = me; o = w; ok = true; MARK_IT(m)
                        :: else
                        fi
                }
        fi
}

#if MARK
/* The word of em, which was `left` and marked, loses its mark, if it is main's, and still that. */
inline rearm(me) {
        enter(me); ok = false;
        m = main_;
        READ_WORD(em);
        if
#if BREAK != 13
        :: m != em -> skip
#endif
#if BREAK != 12
        :: w != left || i == 0 -> skip
#endif
        :: else ->
                d_step {
                        if
                        :: STILL(me) ->
                                assert(place[em] == SLOT || place[em] == DETACHED);
                                assert(marked[em] && obj[em] == left);
                                marked[em] = false; trips++; ok = true
                        :: else
                        fi
                }
        fi
}

inline trip(me) {
        d_step { left = obj[em]; i = marked[em] };
        if :: em != 0 && i == 1 && left != 0 -> rearm(me) :: else fi;
        left = 0
}
#else
#define trip(me) skip
#endif

inline push(me, x) {
        enter(me); ok = false;
        m = main_;
        w = obj[m];
        if
        :: m == 0 || w != 0 -> skip
        :: else ->
                d_step {
                        if
                        :: STILL(me) ->
                                assert(place[m] == SLOT || place[m] == DETACHED);
                                assert(owner[x] == me && obj[m] == 0);
                                obj[m] = x; owner[x] = 9; ok = true
                        :: else
                        fi
                }
        fi
}

/*
 * {em, es} becomes {tm, ts} if main's size is what was seen (`had`: 1 or 0) and the generation is
 * g.
 */
inline exchange(me) {
        enter(me); ok = false;
        w = (obj[em] != 0);
        n = generation;
        if
#if BREAK != 2
        :: em != 0 && w != had -> skip
#endif
#if BREAK != 3
        :: g != ANY_GENERATION && n != g -> skip
#endif
        :: else ->
                d_step {
                        if
                        :: STILL(me) && AS_SEEN ->
                                main_ = tm; spare = ts; ok = true;
                                /*
                                 * what was installed comes from our hands; what leaves goes there
                                 */
                                if
                                :: tm != 0 && tm != em && tm != es ->
                                        assert(place[tm] == hands(me)); place[tm] = SLOT
                                :: else
                                fi;
                                if
                                :: ts != NONE && ts != em && ts != es ->
                                        assert(place[ts] == hands(me)); place[ts] = SLOT
                                :: else
                                fi;
                                if
                                :: em != 0 && em != tm && em != ts ->
                                        assert(place[em] == SLOT); place[em] = hands(me)
                                :: else
                                fi;
                                if
                                :: es != NONE && es != tm && es != ts ->
                                        assert(place[es] == SLOT); place[es] = hands(me)
                                :: else
                                fi;
                                assert(em == 0 || (obj[em] != 0) == had)
                        :: else
                        fi
                }
        fi
}

#if BREAK == 10
#define SWAP_AS_SEEN true
#else
#define SWAP_AS_SEEN (main_ == em && spare == es)
#endif
#if BREAK == 11
#define SWAP_STILL(me) true
#else
#define SWAP_STILL(me) STILL(me)
#endif

/*
 * Main and spare change places if main's size is as `had` says, and the spare's the other one. No
 * generation.
 */
inline swap(me) {
        enter(me); ok = false;
        em = main_;
        es = spare;
        if
        :: em == 0 || es == NONE -> skip
        :: else ->
                w = (obj[em] != 0);
                n = (obj[es] != 0);
                if
                :: w != had || n == had -> skip
                :: else ->
                        d_step {
                                if
                                :: SWAP_STILL(me) && SWAP_AS_SEEN ->
                                        main_ = es; spare = em; ok = true;
                                        assert(place[em] == SLOT && place[es] == SLOT);
                                        assert((obj[em] != 0) == had && (obj[es] != 0) != had)
                                :: else
                                fi
                        }
                fi
        fi
}

#include "slot_misses.inc"

#define LOCALS byte m, w, o, em, es, tm, ts, left, got, g, n, i, t; bool ok, had
/* Or the search is ten times as long. */
#define FORGET d_step { m = 0; w = 0; em = 0; es = 0; tm = 0; ts = 0; left = 0; \
                        got = 0; g = 0; n = 0; i = 0; t = 0; ok = false; had = false }

/* Object `me` is its own from the start. */
proctype frees(byte me) {
        LOCALS;
        byte mine = me;

        push(me, mine);
#if SWAP
        if
        :: !ok -> FORGET; had = true; swap(me); if :: ok -> push(me, mine) :: else fi
        :: else
        fi;
#endif
        if :: !ok -> FORGET; free_miss(me, mine) :: else fi;
        FORGET;
        done++
}

proctype allocates(byte me) {
        LOCALS;

        pop(me);
#if SWAP
        if
        :: !ok -> FORGET; had = false; swap(me); if :: ok -> pop(me) :: else fi
        :: else
        fi;
#endif
        if :: !ok -> FORGET; alloc_miss(me) :: else fi;
        d_step { assert(o == 0 || owner[o] == me); o = 0 };
        FORGET;
        done++
}

/* Sole owner: no section. */
inline take_object(me) {
        if
        :: got != 0 ->
                w = obj[got];
                if
                :: w != 0 ->
                        d_step {
                                assert(place[got] == hands(me) && obj[got] == w && owner[w] == 9);
                                obj[got] = 0; owner[w] = me
                        }
                :: else
                fi
        :: else
        fi
}

/* A prefilled sheaf: the spare (slot_bulk.c), or nothing at all where there is no spare. */
proctype lends(byte me) {
        LOCALS;

        g = generation;
        look();
        got = 0; ok = false;
        if
        :: (g & 1) || es == NONE -> skip
        :: else -> tm = em; ts = NONE; exchange(me)
        fi;
        if :: ok -> got = es :: else fi;
#if BREAK != 7
        take_object(me);
#endif
        if
        :: got != 0 ->
                g = generation;
                look();
                ok = false;
                if
#if BREAK != 8
                :: es != NONE -> skip
#endif
                :: (g & 1) -> skip
                :: else -> tm = em; ts = got; d_step { made[got] = g }; exchange(me)
                fi;
#if BREAK == 7
                take_object(me);
#endif
                if :: !ok -> dispose(got, me) :: else fi
        :: else
        fi;
        FORGET;
        done++
}

/* An idle pair is taken, whatever the generation, and flushed. */
proctype reaps_idle(byte me) {
        LOCALS;

        look();
        tm = 0; ts = NONE; g = ANY_GENERATION;
        if
        :: em == 0 && es == NONE -> ok = false
        :: else ->
#if BREAK == 9
                d_step {
                        ok = AS_SEEN;
                        if
                        :: ok -> main_ = 0; spare = NONE;
                                if :: em != 0 -> place[em] = hands(me) :: else fi;
                                if :: es != NONE -> place[es] = hands(me) :: else fi
                        :: else
                        fi
                }
#else
                exchange(me)
#endif
        fi;
        if
        :: ok ->
                if :: em != 0 -> flush(em, me); dispose(em, me) :: else fi;
                if :: es != NONE -> flush(es, me); dispose(es, me) :: else fi
        :: else
        fi;
        FORGET;
        done++
}

/* One evacuation of the line, from another CPU. */
proctype evacuates() {
        byte a, b, i;

#if CHANGE
        generation = generation + 2;
#else
        generation++;                   /* odd: no installs at all */
#endif
#if BREAK != 6
        /* The barrier: installs that saw the old generation are over. */
        inside = 0;
#endif
        a = main_; b = spare;
        do
        :: a == 0 && b == NONE -> break
        :: else ->
                if
                :: d_step { main_ == a && spare == b -> main_ = 0; spare = NONE;
                            if
                            :: a != 0 -> assert(place[a] == SLOT); place[a] = DETACHED
                            :: else
                            fi;
                            if
                            :: b != NONE -> assert(place[b] == SLOT); place[b] = DETACHED
                            :: else
                            fi };
                        break
                :: d_step { !(main_ == a && spare == b) -> a = main_; b = spare }
                fi
        od;
        skip;                           /* spin: no jump into a d_step */
#if BREAK != 1
        inside = 0;
#endif
        d_step {
                if :: a != 0 -> place[a] = hands(3) :: else fi;
                if :: b != NONE -> place[b] = hands(3) :: else fi
        };
        if :: a != 0 -> flush(a, 3); d_step { place[a] = POOL } :: else fi;
        if :: b != NONE -> flush(b, 3); d_step { place[b] = POOL } :: else fi;
#if !CHANGE
        generation++;
#endif
        done++
}

init {
        byte i, count;

        atomic {
                owner[1] = 1; owner[2] = 2;
#if START == 10 || START == 11
                /* a full main, which is marked; a marked full sheaf in the barn */
                main_ = 1; place[1] = SLOT; obj[1] = 3; owner[3] = 9;
                place[2] = FULL; obj[2] = 4; owner[4] = 9;
                MARK_IT(1); MARK_IT(2);
#elif START < 2
                /* a full main, and an empty sheaf in the barn */
                main_ = 1; place[1] = SLOT; obj[1] = 3; owner[3] = 9;
                place[2] = EMPTY;
#elif START == 3
                /* nothing in the slot yet, a full sheaf in the barn */
                place[1] = FULL; obj[1] = 3; owner[3] = 9;
#elif START == 8 || START == 9
                /* a full main and an empty spare, a full sheaf in the barn */
                main_ = 1; place[1] = SLOT; obj[1] = 3; owner[3] = 9;
                spare = 2; place[2] = SLOT;
                place[3] = FULL; obj[3] = 4; owner[4] = 9;
#elif START == 5 || START == 6
                /* all full: one frees, one borrows or finds it idle */
                main_ = 1; place[1] = SLOT; obj[1] = 3; owner[3] = 9;
                spare = 2; place[2] = SLOT; obj[2] = 4; owner[4] = 9;
                place[3] = EMPTY;
#else
                /* an empty main and a full spare, a full sheaf in the barn */
                main_ = 1; place[1] = SLOT; spare = 2; place[2] = SLOT; obj[2] = 3; owner[3] = 9;
                place[3] = FULL; obj[3] = 4; owner[4] = 9;
#endif
#if START == 0 || START == 3
                run frees(1); run allocates(2);
#elif START == 1
                run frees(1); run frees(2);
#elif START == 8
                run frees(1); run frees(2);
#elif START == 9 || START == 11
                run frees(1); run allocates(2);
#elif START == 4
                run lends(1); run allocates(2);
#elif START == 5
                run lends(1); run frees(2);
#elif START == 6
                run reaps_idle(1); run frees(2);
#elif START == 7
                run reaps_idle(1); run allocates(2);
#else
                run allocates(1); run allocates(2);
#endif
                run evacuates()
        }
        done == 3;
        d_step {
                /* every sheaf is where it says */
                i = 1;
                do
                :: i <= SHEAVES ->
                        assert(place[i] < HANDS);
                        assert((place[i] == SLOT) == (main_ == i || spare == i));
                        assert(place[i] != SLOT || made[i] == generation);
                        assert(place[i] != FULL || obj[i] != 0);
                        assert((place[i] != EMPTY && place[i] != POOL) || obj[i] == 0);
                        if :: obj[i] != 0 -> assert(owner[obj[i]] == 9); count++ :: else fi;
                        i++
                :: else -> break
                od;
                i = 1;
                do
                :: i <= OBJECTS -> if :: owner[i] == 9 -> count-- :: else fi; i++
                :: else -> break
                od;
                assert(count == 0 && main_ != spare);
#if MARK
                i = 1;
                do
                :: i <= SHEAVES -> if :: marked[i] -> marks-- :: else fi; i++
                :: else -> break
                od;
                assert(marks == trips)
#endif
        }
}
