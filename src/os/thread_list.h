/*
 * Purpose: the threads of this process, as /proc lists them.
 * Place: within the os layer.
 */
#ifndef STOOK_THREAD_LIST_H
#define STOOK_THREAD_LIST_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Calls @visit for each thread until it returns false. @digits: @id as text. 1: all those, and no
 * others, are the threads that there are now, if none of them has ended meanwhile; 0: that is not
 * known; negative: the list cannot be read.
 */
int stook_thread_list(bool (*visit)(uint32_t id, const char *digits, void *data), void *data);

#endif
