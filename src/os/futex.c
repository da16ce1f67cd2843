/*
 * Purpose: sleep while a word has a value, for a bounded time; wake one sleeper.
 * Concurrency: any thread, any instruction. A wait may end early (signal, spurious wake): callers look again.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

#define FUTEX_WAIT_PRIVATE (0 | 128)
#define FUTEX_WAKE_PRIVATE (1 | 128)

void stook_os_futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
        struct timespec time = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
        int before = errno;

        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0);
        errno = before;
}

void stook_os_futex_wake(uint32_t *word)
{
        int before = errno;

        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        errno = before;
}
