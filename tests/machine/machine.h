/*
 * Purpose: a machine that a seed decides: which thread takes the next step, on which CPU it goes
 * on, when a handler runs on top of it, when a thread forks, what the system refuses and what time
 * it is. The library's
 * own sources run on it: slot, barn, slab and pages, on the locked backend. They are compiled with
 * -fsanitize=thread, so that machine.c gets a call at each access that is atomic: there a thread
 * may be preempted. All threads are coroutines of one thread of the system, so a seed always makes
 * the same run. Memory is that of x86-64 without reorderings: orders are for tests/weak.
 */
#ifndef STOOK_TESTS_MACHINE_H
#define STOOK_TESTS_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#define MACHINE_THREADS 4
#define MACHINE_CPUS    3

/* Draws of the run. */
uint64_t machine_random(void);
static inline unsigned machine_below(unsigned n)
{
        return (unsigned)(machine_random() >> 33) % n;
}

/*
 * Runs @work in each thread until all have returned, by @seed. @handler: called on top of a thread
 * at any atomic access; it returns. Return: a sum over all that was decided.
 */
uint64_t machine_run(uint64_t seed, void (*work)(void), void (*handler)(void));

/*
 * A child that no handler of fork sees, as _Fork() makes one: it has the calling thread alone, and
 * goes on with the run. The parent waits for its end. Return: whether it ended well; in the child
 * true.
 */
bool machine_fork(void);
extern bool machine_is_child;

/* The thread that runs: 0 to MACHINE_THREADS - 1; MACHINE_THREADS: none, between runs. */
extern unsigned machine_me;
extern uint64_t machine_ms;             /* the clock */
/* Something happened that a seed should always make happen: it goes into the sum. */
void machine_note(uint64_t what);

#endif
