/*
 * Purpose: forks for tests that stop at each instruction of a call, in turn by each way there is;
 * by another thread, too, while the call stands there. And what the parent hears of the child.
 */
#ifndef STOOK_TEST_FORKED_H
#define STOOK_TEST_FORKED_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * By fork, by _Fork or by a raw clone, by another of them each time. A child that hangs is ended,
 * and its parent hears of it.
 */
pid_t forked_by_turns(void);
/*
 * In a breakpoint's handler: the second thread (beside.h) does that. The child runs @check, which
 * ends it: by _exit(0) if all is well. True: it was.
 */
bool forked_beside(void (*check)(void));
/* In a child of another fork: the same for a hang. */
void forked_child_begins(void);
/* In the parent, of what a fork answered: waits for the child. True: it ended by _exit(0). */
bool forked_child_is_well(pid_t pid);

#endif
