/*
 * Purpose: keeps a thread, and what it starts, on the CPU that it is on. Without a debug mode a
 * second free is known to be one on the slot of the first one alone.
 */
#ifndef STOOK_TEST_ONE_CPU_H
#define STOOK_TEST_ONE_CPU_H

#include <sched.h>

static inline void stay_on_one_cpu(void)
{
        cpu_set_t one;

        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof(one), &one);
}

#endif
