/*
 * Purpose: starts a recording, if the environment asks for one.
 */
#ifndef STOOK_OBSERVE_H
#define STOOK_OBSERVE_H

/* After the options were read, before the first cache is made. */
void stook_observe_start(void);

#endif
