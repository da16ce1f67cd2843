/*
 * Purpose: a second thread that does one thing while a first one stands at a breakpoint
 * (breakpoint.h). So a test can do at each instruction of a call what another thread may do there.
 */
#ifndef STOOK_TEST_BESIDE_H
#define STOOK_TEST_BESIDE_H

#include <stdbool.h>

/* Starts the thread. */
bool beside_start(void);
/*
 * In the breakpoint's handler: the second thread runs @act, from its begin to its end, or until it
 * seems to wait for the thread that stands here. True: to its end.
 */
bool beside_run(void (*act)(void));
/* The same for an act that waits for no other thread, however long it takes. */
void beside_run_whole(void (*act)(void));
/* After the interrupted call: until the second thread is done with what it was given. */
void beside_join(void);

#endif
