/*
 * Purpose: what a process keeps falls when it has one thread again.
 */
#ifndef STOOK_LAST_THREAD_H
#define STOOK_LAST_THREAD_H

/* At start, after the slots. */
void stook_last_thread_start(void);
/* At the end of a thread that stook_threads_live counts. @self: its record; not used. */
void stook_last_thread_at_end(void *self);

#endif
