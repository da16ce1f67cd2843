/*
 * A free of an object that was freed already, beside the release of its slab and what its memory
 * serves after that, as stook_part_free of src/slab/slab_state.h (S7). The object's slab has a
 * descriptor D, whose parts lie in a cell: A or B. When a slab is gone, its cell may serve the slab
 * of another descriptor, and D may be born again: as a slab of the same address with either cell,
 * or as a slab elsewhere. Each cell has a generation and the bits of two objects. Both generations
 * begin alike, as those of blocks that were not used before do.
 * Two threads free object 0, one of them wrongly, and one frees object 1. The thread that sets the
 * last bit releases.
 * Not shown, as it cannot be told: a wrong free of an object that was handed out again before the
 * free began to look.
 * Shown: a compare-and-swap that succeeds changes the part of the slab that the object lies in,
 * while it lives.
 * NEAR=1: the cell lies in D, and serves it alone. So does the key, which tells where D's slab was
 * born. There are three objects, one freer of each, and, with WRONG=1, a wrong one. Where some
 * objects are free and the freed one leaves some out, the key is looked at, and only the bits are
 * compared (S9). Shown: the same as long as no free is wrong; and of a wrong one, that it changes
 * the part of some slab that lives.
 *
 * FAR=1: the same with cells that change their slabs, as blocks do. Where D's slab was born at the
 * object's page, it has cell A. Cell B has no room for the part in question: D has it elsewhere
 * only. One of the three objects is free from the start. With WRONG=1 only one has freers, a right
 * one and a wrong one. Shown as with NEAR, and that no free goes by a cell without room.
 *
 * check: holds
 * check: holds -DNEAR=1
 * check: holds -DNEAR=1 -DWRONG=1
 * check: holds -DFAR=1
 * check: holds -DFAR=1 -DWRONG=1
 * BREAK=1: a new life has the generation of the last one.
 * check: breaks -DBREAK=1
 * BREAK=2: the pagemap is not read again after the part.
 * check: breaks -DBREAK=2
 * BREAK=3: where the parts are is read again for the compare-and-swap.
 * check: breaks -DBREAK=3
 * BREAK=4: it is not compared whether the parts are still where they were.
 * check: breaks -DBREAK=4
 * BREAK=5: the pagemap and the place are not looked at again after a compare-and-swap that failed.
 * check: breaks -DBREAK=5
 * BREAK=6: it is claimed that a wrong free, too, changes no other life, with only bits compared.
 * check: breaks -DBREAK=6 -DNEAR=1 -DWRONG=1
 * check: breaks -DBREAK=6 -DFAR=1 -DWRONG=1
 * BREAK=7: a cell that serves no slab has a link in the word of the bits.
 * check: breaks -DBREAK=7 -DFAR=1 -DWRONG=1
 * BREAK=8: the room is not read together with the place.
 * check: breaks -DBREAK=8 -DFAR=1 -DWRONG=1
 */
#ifndef BREAK
#define BREAK 0
#endif
#ifndef NEAR
#define NEAR 0
#endif
#ifndef FAR
#define FAR 0
#endif
#ifndef WRONG
#define WRONG 0
#endif

#define A 0
#define B 1
#define D 0                             /* descriptors */
#define E 1
#define NOTHING 2
#if FAR
#define ALL 7
#define FREERS 2
#elif NEAR
#define ALL 7
#define FREERS (3 + WRONG)
#else
#define ALL 3
#define FREERS 3
#endif
#define LIVES 3

byte generation[2], bits[2];            /* the cells */
bool released[2];
byte user[2] = NOTHING;                 /* ghost: the descriptor that a cell serves */
byte parts = A;                         /* of D: its cell */
/* The pagemap, at the object's page: it is of D, of this cache. */
bool entry = true;
bool key = true;                        /* in D: its last slab was born at the object's page */
byte done;
bool empty_slab;

/* By the bits alone (S9). */
inline by_bits(at) {
        b = bits[at];
        k = key;
        if
        :: k && !(b & mask) && (b | mask) != ALL && b ->
                d_step {
                        if
                        :: bits[at] == b ->
                                assert(user[at] != NOTHING && !released[at]);
#if FAR
                                assert(at == A);
#endif
#if !WRONG || BREAK == 6
                                assert(entry && user[at] == D);
#endif
                                bits[at] = b | mask; ok = true
                        :: else
                        fi
                };
                if :: ok -> goto gone :: else fi
        :: else
        fi
}

proctype freer(byte mask) {
        byte cell, g, b;
        bool r, ok, k;

end_look:
        entry;                          /* looked up. Without an entry nothing would be freed */
#if FAR
        cell = parts;
#if BREAK == 8
        if :: parts == B -> goto any :: else fi;
#else
        if :: cell == B -> goto any :: else fi;
#endif
        by_bits(cell);
any:
#endif
        cell = parts;
        if :: !entry -> goto gone :: else fi;
#if FAR
        if :: cell == B -> goto gone :: else fi;
#endif
#if NEAR
        by_bits(cell);
#endif
again:  d_step { g = generation[cell]; r = released[cell] };
        b = bits[cell];
        do
        ::
#if BREAK != 2
                if :: !entry -> goto gone :: else fi;
#endif
#if BREAK != 4
                if :: parts != cell -> goto gone :: else fi;
#endif
#if BREAK == 5
retry:          skip;
#endif
                if :: r -> goto gone :: else fi;
                if :: b & mask -> goto gone :: else fi;         /* reported */
#if BREAK == 3
                cell = parts;
#endif
                d_step {
                        if
                        :: generation[cell] == g && released[cell] == r && bits[cell] == b ->
                                assert(entry && user[cell] == D && parts == cell &&
                                       !released[cell]);
                                bits[cell] = b | mask;
                                b = bits[cell];
                                ok = true
                        :: else ->
                                ok = false;
                                g = generation[cell]; r = released[cell]; b = bits[cell]
                        fi
                };
                if :: ok -> break :: else fi;
#if BREAK == 5
                goto retry
#endif
        od;
        if :: b == ALL -> empty_slab = true :: else fi;
gone:   done++
}

/* Releases slab D, and gives its cell and its descriptor other lives. */
proctype lives() {
        byte n, c, d;

end_lives:
        do
        :: n < LIVES && user[A] == D && bits[A] == ALL && !released[A] -> c = A; goto release
        :: n < LIVES && user[B] == D && bits[B] == ALL && !released[B] -> c = B; goto release
        :: done == FREERS -> break
        /* The users of a later life free by themselves. */
        :: n < LIVES && entry && user[parts] == D && n ->
                atomic { c = parts; bits[c] = ALL }; goto release
        :: n < LIVES && user[A] == E -> atomic { c = A; bits[c] = ALL }; goto release
        :: n < LIVES && user[B] == E -> atomic { c = B; bits[c] = ALL }; goto release
#if FAR
        :: n < LIVES && !entry && user[parts] == D ->
                atomic { c = parts; bits[c] = ALL }; goto release
#if WRONG
        /* The object that has no freer here. */
        :: !n && bits[A] == 5 -> atomic { c = A; bits[c] = ALL }; goto release
#endif
#endif
        :: n < LIVES && user[A] == NOTHING && n -> c = A; goto birth
#if !NEAR
        :: n < LIVES && user[B] == NOTHING && n -> c = B; goto birth
#endif
release:        released[c] = true;
                if :: user[c] == D -> entry = false :: else fi;
                user[c] = NOTHING;
#if BREAK == 7
                bits[c] = 2;
#endif
                n++;
                c = 0;
                goto next_life
birth:
#if FAR
                if
                :: user[1 - c] != D -> key = (c == A); parts = c; d = D
                :: user[1 - c] != D -> key = false; parts = c; d = D
                :: user[1 - c] != E -> d = E
                fi;
#elif NEAR
                if :: key = true :: key = false fi;
#endif
                bits[c] = ALL;
                d_step {
                        released[c] = false;
#if BREAK != 1
                        generation[c]++
#endif
                };
#if FAR
                user[c] = d;
                if
                :: bits[c] = 0
                :: d == E || !key -> bits[c] = 2                        /* one is free */
                fi;
                if :: d == D && key -> entry = true :: else fi;
                d = 0;
#else
                if
                :: user[1 - c] != D && key -> atomic { user[c] = D; parts = c }; bits[c] = 0;
                        entry = true
                /* Elsewhere. */
#if NEAR
                :: !key -> atomic { user[c] = D; parts = c }; bits[c] = 0
                :: !key -> atomic { user[c] = D; parts = c }; bits[c] = 2       /* one is free */
#else
                :: user[1 - c] != D -> atomic { user[c] = D; parts = c }; bits[c] = 0
                :: user[1 - c] != E -> user[c] = E; bits[c] = 0
#endif
                fi;
#endif
                c = 0;
next_life:      skip
        od
}

init {
        atomic {
                user[A] = D;
                released[B] = true;
                run freer(1);
#if !FAR || !WRONG
                run freer(2);
#endif
#if NEAR
                run freer(4);
#endif
#if FAR
                bits[A] = 4;
#endif
#if !NEAR && !FAR || WRONG
                run freer(1);
#endif
                run lives()
        }
}
