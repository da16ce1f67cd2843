/*
 * What is proved of urcu/worker.c: a callback is called once, after a grace period that began after
 * it was queued, whosever that is. A barrier returns after all that was queued before it has
 * returned. Nothing stays in the queue or the batch while the thread sleeps. All this holds where
 * the thread comes late, or never, and where the program tells of grace periods of its own, or says
 * that one begins and nothing more.
 *
 * Two callers queue a callback each, and the first then has a barrier. The thread serves. The
 * program begins, waits for readers and tells. The queue is a set: one atomic step adds to it and
 * tells whether it was empty, and one takes it all, as a compare-and-swap and an exchange do. To
 * gather more is a pause of any length here. A futex wait looks at the word and sleeps in one step.
 *
 * check: holds
 * THREAD=0: there is no thread; what is left in the queue then waits for a barrier
 * check: holds -DTHREAD=0
 * TELLS=0: the program only begins
 * check: holds -DTELLS=0
 * BREAK=1: a caller that finds the queue empty does not wake the thread
 * check: breaks -DBREAK=1
 * BREAK=2: the thread reads `events` after it looked at the queue
 * check: breaks -DBREAK=2
 * BREAK=3: all of the batch is called, also what came after the grace period began
 * check: breaks -DBREAK=3
 * BREAK=4: the mutex is let go while a callback is called
 * check: breaks -DBREAK=4
 * BREAK=5: `events` is raised before the callback is in the queue
 * check: breaks -DBREAK=5
 * BREAK=6: `batched` is set after the queue was taken
 * check: breaks -DBREAK=6 -DTELLS=0
 * BREAK=7: the thread looks at `batched` before it looks at the queue
 * check: breaks -DBREAK=7 -DTELLS=0
 */
#ifndef BREAK
#define BREAK 0
#endif
#ifndef THREAD
#define THREAD 1
#endif
#ifndef TELLS
#define TELLS 1
#endif

byte queue = 0;                         /* a bit for each callback */
byte batch = 0;
byte number[2];                         /* of a callback in the batch, from 1 on */
byte taken = 0, called = 0;
bool batched = false;
byte events = 0;
bool calling = false;                   /* the mutex */
byte queued = 0;                        /* bits of all that was ever in the queue */
byte over = 0;                          /* bits: a grace period that began later is over */
byte calls[2];
bool returned[2];

inline lock()
{
        atomic { !calling -> calling = true }
}

inline give_number(i)
{
        if
        :: all & (1 << i) ->
                taken++;
                number[i] = taken
        :: else
        fi
}

inline begin(n, any)
{
        lock();
        if
        :: queue ->
#if BREAK != 6
                batched = true;
#endif
                d_step {
                        all = queue;
                        queue = 0
                }
#if BREAK == 6
                batched = true;
#endif
                d_step {
                        give_number(0);
                        give_number(1);
                        batch = batch | all
                }
        :: else
        fi;
        n = taken;
        any = batch != 0;
        calling = false
}

/* Begins, and ends some time later. */
inline synchronize(before)
{
        before = queued;
        over = over | before
}

inline call_next()
{
        d_step {
                called++;
                if
                :: number[0] == called -> one = 0
                :: else -> one = 1
                fi;
                assert(number[one] == called);
                batch = batch & ~(1 << one);
                if
                :: batch == 0 -> batched = false
                :: else
                fi
        }
#if BREAK == 4
        calling = false;
#endif
        d_step {
                assert(over & (1 << one));
                calls[one] = calls[one] + 1;
                assert(calls[one] == 1);
                returned[one] = true
        }
#if BREAK == 4
        lock()
#endif
}

inline passed(n)
{
        lock();
        do
#if BREAK == 3
        :: batch -> call_next()
        :: batch == 0 -> break
#else
        :: called < n -> call_next()
        :: called >= n -> break
#endif
        od;
        calling = false
}

inline serve(n, any, before)
{
        begin(n, any);
        if
        :: any ->
                synchronize(before);
                passed(n)
        :: else
        fi
}

proctype caller(byte me)
{
        byte n, before, one, all;
        bool was_empty, any;

#if BREAK == 5
        events++;
#endif
        d_step {
                was_empty = queue == 0;
                queue = queue | (1 << me);
                queued = queued | (1 << me)
        }
#if BREAK != 1 && BREAK != 5
        if
        :: was_empty -> events++
        :: else
        fi;
#endif
        if
        :: me == 0 ->
                serve(n, any, before);
                assert(returned[0])
        :: else
        fi
}

proctype program()
{
        byte n, before, one, all;
        bool any;

        begin(n, any);
#if TELLS
        synchronize(before);
        passed(n)
#endif
}

proctype worker()
{
        byte seen, n, before, one, all;
        bool nothing, any;

        do
        ::
#if BREAK == 7
                seen = events;
                nothing = !batched;
                nothing = nothing && queue == 0;
#elif BREAK == 2
                nothing = queue == 0;
                nothing = nothing && !batched;
                seen = events;
#else
                seen = events;
                nothing = queue == 0;
                nothing = nothing && !batched;
#endif
                if
                :: nothing ->
end:                    seen != events          /* asleep */
                :: else ->
                        serve(n, any, before)
                fi
        od
}

/* When no process can do a step. */
proctype monitor()
{
        timeout;
        assert((queue == 0 && batch == 0) || !THREAD);
        assert(calls[0] == 1);
        assert(calls[1] == 1 || !THREAD)
}

init {
        atomic {
                run caller(0);
                run caller(1);
                run program();
#if THREAD
                run worker();
#endif
                run monitor()
        }
}
