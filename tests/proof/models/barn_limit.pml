/*
 * How many full sheaves a barn gets, where several threads put at once what came back from readers.
 * Two protocols are beside each other: Stook's, and the one that public texts describe of the Linux
 * kernel.
 *
 * Two threads put two sheaves each, all of one size, as the callbacks of grace periods do; a third
 * gets one. The barn's limit is LIMIT sheaves.
 *
 * KERNEL=0, Stook's (src/barn/barn_inside.h): a put looks at the count, books the sheaf's bytes by
 * one atomic addition, and pushes by compare-and-swap. A get pops, and gives the bytes back. So the
 * look is a hint: each thread between its look and its push may pass the limit by one sheaf (I2 of
 * barn.h). The bytes are a bound: they are booked before the sheaf comes, so what all stacks have
 * together never exceeds BUDGET. A put that is refused gives back what it booked.
 * KERNEL=1: the limit is compared in the hold of the lock that pushes.
 * A compare-and-swap that fails is tried again, so it is one step here.
 * Shown, of Stook: the count exceeds the limit by one less than there are putting threads, at most;
 * the bytes in the barn never exceed the budget; at the end those are booked, and no others. Of the
 * kernel's: the count never exceeds the limit.
 *
 * check: holds
 * check: holds -DBUDGET=9
 * check: holds -DKERNEL=1
 * BREAK=1: the limit is compared before the lock is taken: callbacks pass it.
 * check: breaks -DKERNEL=1 -DBREAK=1
 * BREAK=2: one look for all sheaves that a thread has to put.
 * check: breaks -DBREAK=2 -DBUDGET=9
 * BREAK=3: the bytes are compared first and added after that.
 * check: breaks -DBREAK=3
 * BREAK=4: a put that is refused keeps what it booked.
 * check: breaks -DBREAK=4
 * BREAK=5: Stook's limit is taken for a bound: no thread may pass it.
 * check: breaks -DBREAK=5 -DBUDGET=9
 */
#ifndef BREAK
#define BREAK 0
#endif
#ifndef KERNEL
#define KERNEL 0
#endif
#ifndef BUDGET
#define BUDGET 2
#endif

#define LIMIT   2
#define PUTTERS 2
#define PUTS    2

byte sheaves = 1;                       /* full ones in the barn */
byte booked = 1;                        /* bytes, in sheaves */
bool lock;
byte done;

#define LOOK  (sheaves < LIMIT)

inline push() {
        sheaves++;
#if KERNEL
        assert(sheaves <= LIMIT)
#elif BREAK == 5
        assert(sheaves <= LIMIT)
#else
        assert(sheaves <= LIMIT + PUTTERS - 1 && sheaves <= BUDGET)
#endif
}

#if KERNEL

inline put() {
#if BREAK == 1
        room = LOOK;
        atomic { !lock -> lock = true };
#else
        atomic { !lock -> lock = true };
        room = LOOK;
#endif
        if
        :: room -> push()
        :: else                         /* to the slabs */
        fi;
        lock = false
}

inline get() {
        atomic { !lock -> lock = true };
        if
        :: sheaves > 0 -> sheaves--
        :: else
        fi;
        lock = false
}

#else

inline book() {
#if BREAK == 3
        room = (booked < BUDGET);
        if
        :: room -> booked++
        :: else
        fi
#else
        d_step { booked++; room = (booked <= BUDGET) };
#if BREAK != 4
        if
        :: !room -> booked--
        :: else
        fi
#endif
#endif
}

inline put() {
#if BREAK == 2
        room = looked;
#else
        room = LOOK;
#endif
        if
        :: room ->
                book();
                if
                :: room -> d_step { push() }
                :: else                 /* to the slabs */
                fi
        :: else
        fi
}

inline get() {
        atomic { ok = (sheaves > 0); if :: ok -> sheaves-- :: else fi };
        if
        :: ok -> booked--
        :: else
        fi
}

#endif

proctype callbacks() {
        bool room, looked;
        byte puts;

        looked = LOOK;
        do
        :: puts < PUTS -> put(); puts++
        :: else -> break
        od;
        done++
}

proctype getter() {
        bool ok;

        get();
        done++
}

init {
        atomic {
                run callbacks();
                run callbacks();
                run getter()
        }
        done == PUTTERS + 1;
#if !KERNEL
        assert(booked == sheaves)
#endif
}
