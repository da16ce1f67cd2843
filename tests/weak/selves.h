/*
 * Purpose: thread records for the threads of weak.h, and what sources of src ask of the layers
 * below, for programs that include such a source. To be included first.
 */
#ifndef STOOK_TESTS_SELVES_H
#define STOOK_TESTS_SELVES_H

#include "weak.h"

#include <stook/layout.h>

extern struct stook_thread_v1 weak_selves[];
#define stook_self (&weak_selves[weak_me])
#include "base/thread.h"

struct stook_thread_v1 weak_selves[WEAK_THREADS + 1];

#endif
