/*
 * What a refill does not want of a slab's free objects, and how it stays in the slab. Two protocols
 * are beside each other: Stook's, and the one that public texts describe of the Linux kernel.
 *
 * There is one slab of three objects: two are free and it is listed, one is out. A refiller wants
 * one object. A freer frees the one that is out, and another filler wants all that it finds.
 *
 * KERNEL=0, Stook's (src/slab/slab_fill.c, slab_state.h): a taker holds the list's lock and clears
 * the bits of what it wants, no more, by a compare-and-swap. The others stay free in the slab,
 * which stays listed as long as it has any. So nothing is ever returned. A free sets a bit; of a
 * slab without a free object it takes the claim in the same step, and lists the slab under the
 * lock.
 * KERNEL=1: the refiller takes the slab off its list under the lock. Outside of it, it takes all
 * free objects in one step, and has the slab for itself no more: others see a full slab, so the
 * next free of its objects lists it. What the refiller does not want it returns, under the lock, by
 * a compare-and-swap that expects a slab without a free object. If that fails, it frees them one
 * after the other.
 * Each step is one change that others can see; memory is sequentially consistent here.
 * Shown: at the end each object is free in the slab or in one thread's hands; the slab is listed
 * exactly if it has free objects, and once.
 *
 * check: holds
 * check: holds -DKERNEL=1
 * BREAK=1: the kernel's mistake: the return looks whether the slab has free objects before it has
 * the lock, and stores what it has under it.
 * check: breaks -DKERNEL=1 -DBREAK=1
 * BREAK=2: the return is not made under the lock, and lists the slab after it as its own.
 * check: breaks -DKERNEL=1 -DBREAK=2
 * BREAK=3: a return that fails is forgotten.
 * check: breaks -DKERNEL=1 -DBREAK=3
 * BREAK=4: Stook's taker stores the bits that it leaves: no compare-and-swap.
 * check: breaks -DBREAK=4
 * BREAK=5: Stook's free of a full slab takes no claim, so nobody lists it.
 * check: breaks -DBREAK=5
 */
#ifndef BREAK
#define BREAK 0
#endif
#ifndef KERNEL
#define KERNEL 0
#endif

#define ALL 7
#define REFILLER 0
#define FREER    1
#define FILLER   2

byte bits = 3;                          /* free in the slab */
bool claim;                             /* Stook: with the bits, in one word pair */
byte listed = 1;                        /* how often: under the lock */
bool lock;
byte held[3];                           /* ghost: objects in a thread's hands */
byte done;

inline acquire() { atomic { !lock -> lock = true } }
inline release() { lock = false }

/* Of as many objects as wanted: @n of @from, lowest first. */
inline choose(from, n, out) {
        d_step {
                out = 0;
                if :: n > 0 && (from & 1) -> out = out | 1; n-- :: else fi;
                if :: n > 0 && (from & 2) -> out = out | 2; n-- :: else fi;
                if :: n > 0 && (from & 4) -> out = out | 4; n-- :: else fi
        }
}

/* ---- Stook ---- */

/* Under the lock: @n objects of a listed slab. */
inline take(me, n) {
        acquire();
        if
        :: listed ->
                do
                :: seen = bits;
                   want = n;
                   choose(seen, want, chosen);
                   atomic {
                        if
#if BREAK == 4
                        :: true ->
#else
                        :: bits == seen ->
#endif
                                bits = seen & ~chosen;
                                held[me] = held[me] | chosen;
                                break
                        :: else
                        fi
                   }
                od;
                /* LISTED goes in that step; the list is changed behind it, under the lock. */
                if
                :: chosen == seen -> listed = 0
                :: else
                fi
        :: else
        fi;
        release()
}

inline give(me, object) {
        d_step {
                held[me] = held[me] & ~object;
                assert(!(bits & object));
                /* no list and no claim: this thread's */
                mine = !bits && !claim;
#if BREAK == 5
                mine = false;
#endif
                bits = bits | object;
                if :: mine -> claim = true :: else fi
        };
        if
        :: mine ->
                acquire();
                d_step { claim = false; if :: bits && !listed -> listed = 1 :: else fi };
                release()
        :: else
        fi
}

/* ---- the kernel ---- */

/*
 * The lock is taken before the step where it may be needed: the slab was full. What is off the list
 * and has free objects is in a refiller's hands, and left alone.
 */
inline kernel_free(me, object) {
        do
        :: seen = bits;
           if
           :: !seen -> acquire()
           :: else
           fi;
           atomic {
                ok = (bits == seen);
                if
                :: ok -> held[me] = held[me] & ~object; bits = bits | object
                :: else
                fi
           };
           if
           :: ok && !seen -> listed++; assert(listed == 1)
           :: else
           fi;
           if
           :: !seen -> release()
           :: else
           fi;
           if
           :: ok -> break
           :: else
           fi
        od
}

inline put_back(me, rest) {
        atomic {
                ok = (bits == 0);
                if
                :: ok -> bits = rest; held[me] = held[me] & ~rest
                :: else
                fi
        }
}

/* Back into a slab that has no free object; else the ordinary way. */
inline kernel_return(me, rest) {
#if BREAK == 2
        put_back(me, rest);
        acquire();
        listed++;
        release();
#else
#if BREAK == 1
        ok = (bits == 0);
        acquire();
        if
        :: ok -> atomic { bits = rest; held[me] = held[me] & ~rest }
        :: else
        fi;
#else
        acquire();
        put_back(me, rest);
#endif
        if
        :: ok -> listed++; assert(listed == 1)
        :: else
        fi;
        release();
#endif
#if BREAK == 3
        d_step { if :: !ok -> held[me] = held[me] & ~rest :: else fi }
#else
        if
        :: !ok && (rest & 1) -> kernel_free(me, 1); ok = false
        :: else
        fi;
        if
        :: !ok && (rest & 2) -> kernel_free(me, 2); ok = false
        :: else
        fi;
        if
        :: !ok && (rest & 4) -> kernel_free(me, 4)
        :: else
        fi
#endif
}

inline kernel_take(me, n) {
        acquire();
        if
        :: listed -> listed--; mine = true
        :: else -> mine = false
        fi;
        release();
        if
        :: mine ->
                d_step { rest = bits; bits = 0; held[me] = held[me] | rest };
                want = n;
                choose(rest, want, chosen);
                rest = rest & ~chosen;
                if
                :: rest -> kernel_return(me, rest)
                :: else
                fi
        :: else
        fi
}

#define LOCALS byte seen, chosen, rest, want; bool ok, mine

proctype refiller() {
        LOCALS;

#if KERNEL
        kernel_take(REFILLER, 1);
#else
        take(REFILLER, 1);
#endif
        done++
}

proctype filler() {
        LOCALS;

#if KERNEL
        kernel_take(FILLER, 3);
#else
        take(FILLER, 3);
#endif
        done++
}

proctype freer() {
        LOCALS;

#if KERNEL
        kernel_free(FREER, 4);
#else
        give(FREER, 4);
#endif
        done++
}

init {
        atomic {
                held[FREER] = 4;
                run refiller();
                run filler();
                run freer()
        }
        done == 3;
        assert((bits | held[0] | held[1] | held[2]) == ALL);
        assert(!(bits & held[0]) && !(bits & held[1]) && !(bits & held[2]));
        assert(!(held[0] & held[1]) && !(held[0] & held[2]) && !(held[1] & held[2]));
        assert(listed == (bits -> 1 : 0))
}
