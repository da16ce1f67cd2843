/*
 * What is proved of urcu/worker.c: a callback is called once, after its grace period began. A
 * barrier returns after all that was queued before it. Nothing stays in the queue while the thread
 * sleeps. All this holds where the thread comes late, or never.
 *
 * Two callers queue a callback each, and the first then has a barrier. The thread serves. The queue
 * is a set: one atomic step adds to it and tells whether it was empty, and one takes it all, as a
 * compare-and-swap and an exchange do. To gather more is a pause of any length here. A futex wait
 * looks at the word and sleeps in one step.
 *
 * check: holds
 * THREAD=0: there is no thread; what is left in the queue then waits for a barrier
 * check: holds -DTHREAD=0
 * BREAK=1: a caller that finds the queue empty does not wake the thread
 * check: breaks -DBREAK=1
 * BREAK=2: the thread reads `events` after it looked at the queue
 * check: breaks -DBREAK=2
 * BREAK=3: a barrier takes the queue without the mutex
 * check: breaks -DBREAK=3
 * BREAK=4: the thread lets the mutex go before it has called all
 * check: breaks -DBREAK=4
 * BREAK=5: `events` is raised before the callback is in the queue
 * check: breaks -DBREAK=5
 */
#ifndef BREAK
#define BREAK 0
#endif
#ifndef THREAD
#define THREAD 1
#endif

byte queue = 0;                         /* a bit for each callback */
byte events = 0;
bool serving = false;                   /* the mutex */
byte calls[2];
bool begun[2];                          /* a grace period began since it was queued */

inline take(all)
{
        d_step {
                all = queue;
                queue = 0;
        }
        /* synchronize_rcu: begins, and ends some time later */
        d_step {
                if
                :: all & 1 -> begun[0] = true
                :: else
                fi;
                if
                :: all & 2 -> begun[1] = true
                :: else
                fi
        }
}

inline call_one(all, i)
{
        if
        :: all & (1 << i) ->
                d_step {
                        assert(begun[i]);
                        calls[i] = calls[i] + 1;
                        assert(calls[i] == 1)
                }
        :: else
        fi
}

inline lock()
{
        atomic { !serving -> serving = true }
}

inline serve(all, locked)
{
        if
        :: locked -> lock()
        :: else
        fi;
        take(all);
#if BREAK == 4
        if
        :: locked -> serving = false
        :: else
        fi;
#endif
        call_one(all, 0);
        call_one(all, 1);
#if BREAK != 4
        if
        :: locked -> serving = false
        :: else
        fi
#endif
}

proctype caller(byte me)
{
        byte all;
        bool was_empty;

#if BREAK == 5
        events++;
#endif
        d_step {
                was_empty = queue == 0;
                queue = queue | (1 << me)
        }
#if BREAK != 1 && BREAK != 5
        if
        :: was_empty -> events++
        :: else
        fi;
#endif
        if
        :: me == 0 ->
                serve(all, BREAK != 3);
                assert(calls[0] == 1)
        :: else
        fi
}

proctype worker()
{
        byte seen, all;
        bool nothing;

        do
        ::
#if BREAK == 2
                nothing = queue == 0;
                seen = events;
#else
                seen = events;
                nothing = queue == 0;
#endif
                if
                :: nothing ->
end:                    seen != events          /* asleep */
                :: else ->
                        serve(all, true)
                fi
        od
}

/* When no process can do a step. */
proctype monitor()
{
        timeout;
        assert(queue == 0 || !THREAD);
        assert(calls[0] == 1);
        assert(calls[1] == 1 || !THREAD)
}

init {
        atomic {
                run caller(0);
                run caller(1);
#if THREAD
                run worker();
#endif
                run monitor()
        }
}
