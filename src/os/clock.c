/*
 * Purpose: time for ages and decay: coarse, so that it costs a few nanoseconds and no system call.
 * Fine time is for recordings alone.
 */
#include <time.h>

#include "os/os.h"

uint64_t stook_os_clock_ms(void)
{
        struct timespec now = { 0 };

        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t ns_of(clockid_t clock)
{
        struct timespec now = { 0 };

        clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t stook_os_clock_ns(void)
{
        return ns_of(CLOCK_MONOTONIC);
}

uint64_t stook_os_real_ns(void)
{
        return ns_of(CLOCK_REALTIME);
}
