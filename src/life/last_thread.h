/*
 * Purpose: what a process keeps falls when it has one thread again.
 */
#ifndef STOOK_LAST_THREAD_H
#define STOOK_LAST_THREAD_H

/* At start, after the slots. */
void stook_last_thread_start(void);

#endif
