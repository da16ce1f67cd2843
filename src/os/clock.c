/*
 * Purpose: time for ages and decay: coarse, so that it costs a few nanoseconds and no system call.
 */
#include <time.h>

#include "os/os.h"

uint64_t stook_os_clock_ms(void)
{
        struct timespec now = { 0 };

        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
