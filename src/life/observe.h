/*
 * Purpose: starts what observes the heap from inside, if the environment asks for it:
 *   STOOK_RECORD=FILE                                   a trace (src/record)
 *   STOOK_PROFILE=FILE[,interval=BYTES][,signal=N]      a heap profile (src/profile)
 */
#ifndef STOOK_OBSERVE_H
#define STOOK_OBSERVE_H

/* After the options were read, before the first cache is made. */
void stook_observe_start(void);

#endif
