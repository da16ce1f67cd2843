/*
 * Purpose: time for ages and decay: coarse, so that it costs a few nanoseconds and no system call;
 * fine time for recordings alone. Sleep while a word has a value, or alone, for a bounded time;
 * wake sleepers; compare a word that may be unreadable.
 * Concurrency: any thread, any instruction. A sleep may end early (signal, spurious wake): callers
 *  look again.
 */
#include <errno.h>
#include <limits.h>
#include <time.h>

#include "os/os.h"
#include "os/system_call.h"

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

#define FUTEX_WAIT_PRIVATE (0 | 128)
#define FUTEX_WAKE_PRIVATE (1 | 128)
#define FUTEX_CMP_REQUEUE_PRIVATE (4 | 128)

void stook_os_futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
        struct timespec time = { .tv_sec = (time_t)(ns / 1000000000),
                                 .tv_nsec = (long)(ns % 1000000000) };

        stook_call(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0);
}

void stook_os_pause(uint64_t ns)
{
        static uint32_t never;

        stook_os_futex_wait(&never, 0, ns);
}

void stook_os_futex_wake(uint32_t *word)
{
        stook_call(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void stook_os_futex_wake_all(uint32_t *word)
{
        stook_call(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* It wakes no thread and moves none: all it does is the comparison, with 0. */
bool stook_os_word_is_set(uint32_t *word)
{
        return stook_call(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, word, 0) == -EAGAIN;
}
