/*
 * Purpose: waits until another thread of this process sleeps in the kernel. A test that wants to
 * see that a call waits counts this event, and not time: a call that did not wait would have
 * returned by then.
 */
#ifndef STOOK_TESTS_ASLEEP_H
#define STOOK_TESTS_ASLEEP_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The thread @tid sleeps; false: it runs, or is not there. */
static inline bool is_asleep(pid_t tid)
{
        char path[64], text[256] = "";
        const char *state;
        ssize_t got;
        int file;

        snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
        file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0)
                return false;
        got = read(file, text, sizeof(text) - 1);
        close(file);
        state = got > 0 ? strrchr(text, ')') : NULL;
        return state && state[1] == ' ' && state[2] == 'S';
}

/* Until the thread whose id comes to be at @tid sleeps, or *@over is not 0. */
static inline void wait_until_asleep(const pid_t *tid, const unsigned *over)
{
        while (!__atomic_load_n(over, __ATOMIC_ACQUIRE) &&
               !(__atomic_load_n(tid, __ATOMIC_ACQUIRE) &&
                 is_asleep(__atomic_load_n(tid, __ATOMIC_ACQUIRE))))
                usleep(100);
}

/* At the beginning of that thread. */
static inline void tell_tid(pid_t *tid)
{
        __atomic_store_n(tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

#endif
