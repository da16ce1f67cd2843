/*
 * What is proved of src/epoch/readers.c: an object is not reused while a reader that could see it
 * is in its section, though a reader has no barrier: its store of its word may be seen late.
 *
 * Two readers have two sections each. A section loads the epoch and stores it into the reader's
 * word, which goes through a buffer of one store. Then it reads the pointer, and looks at what the
 * pointer leads to. The end of a section is a store of 0 through the same buffer, behind the other.
 * A writer replaces the pointer twice, and reuses the old object after a grace period: a membarrier
 * that empties the buffers, a new epoch, and a look at each word until it is 0 or not earlier.
 * Buffers are emptied at any time, in order: a store waits until the one before it is out. The
 * object that is reused first is published again, so that a section that lasts too long is told
 * from one that began anew.
 *
 * check: holds
 * BREAK=1: no membarrier
 * check: breaks -DBREAK=1
 * BREAK=2: a grace period begins with the epoch that readers have already
 * check: breaks -DBREAK=2
 * BREAK=3: the pointer is replaced after the membarrier
 * check: breaks -DBREAK=3
 * BREAK=4: a reader reads the pointer before it stores its word
 * check: breaks -DBREAK=4
 */
#ifndef BREAK
#define BREAK 0
#endif

#define READERS 2
#define NONE 255

byte epoch = 1;
byte word[READERS];                     /* in memory: 0, or the epoch of a section */
byte buffer[READERS] = NONE;            /* a store on its way there */
byte pointer = 0;                       /* the object that readers find */
bool reused[2];                         /* the object is another's */

inline store(value)
{
        atomic { buffer[me] == NONE -> buffer[me] = value }
}

/* By the reader's processor, at any time. */
proctype flush(byte me)
{
end:    do
        :: atomic { buffer[me] != NONE -> word[me] = buffer[me]; buffer[me] = NONE }
        od
}

proctype reader(byte me)
{
        byte now, at, section = 0;

        do
        :: section < 2 ->
#if BREAK == 4
                at = pointer;
#endif
                now = epoch;
                store(now);
#if BREAK != 4
                at = pointer;
#endif
                assert(!reused[at]);
                skip;                           /* the section lasts */
                assert(!reused[at]);
                store(0);
                section++
        :: else -> break
        od
}

inline barrier()
{
        d_step {
                i = 0;
                do
                :: i < READERS ->
                        if
                        :: buffer[i] != NONE -> word[i] = buffer[i]; buffer[i] = NONE
                        :: else
                        fi;
                        i++
                :: else -> break
                od;
                i = 0
        }
}

proctype writer()
{
        byte i, mine, old, turn = 0;

        do
        :: turn < 2 ->
                old = pointer;
#if BREAK != 3
                pointer = 1 - old;
#endif
#if BREAK != 1
                barrier();
#endif
#if BREAK == 3
                pointer = 1 - old;
#endif
#if BREAK != 2
                epoch++;
#endif
                mine = epoch;
                i = 0;
                do
                :: i < READERS ->
                        (word[i] == 0 || word[i] >= mine);
                        i++
                :: else -> break
                od;
                reused[old] = true;
                skip;                           /* another's for a while */
                reused[old] = false;
                turn++
        :: else -> break
        od
}

init {
        atomic {
                run flush(0);
                run flush(1);
                run reader(0);
                run reader(1);
                run writer()
        }
}
