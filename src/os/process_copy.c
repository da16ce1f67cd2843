/*
 * Purpose: a child that is this process as it stands, with this thread alone, to look at its memory
 * while other threads go on. It is made by the system call, so no atfork handler runs, and it ends
 * without a signal to the program or a status for its waits.
 * Place: called by inspect, where no lock is held.
 * Failure: negative: no process can be made.
 */
#include <signal.h>
#include <sys/wait.h>

#include "os/checker.h"
#include "os/os.h"
#include "os/system_call.h"

#define MASK_BYTES 8                    /* of the kernel's signal sets */

int stook_os_process_copy(int *to_parent)
{
        uint64_t all = ~UINT64_C(0), before;
        int fds[2];
        long pid;

        if (stook_call_failed(stook_call(SYS_pipe2, fds, O_CLOEXEC)))
                return -1;
        for (unsigned i = 0; i < 2; i++)
                fds[i] = stook_call_above_standard(fds[i]);
        /* No handler of the program runs in the child. */
        stook_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, MASK_BYTES);
        pid = stook_call(SYS_clone, 0, 0, 0, 0, 0);
        if (pid)
                stook_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, MASK_BYTES);
        stook_call_close(fds[pid ? 1 : 0]);
        *to_parent = fds[pid ? 0 : 1];
        if (!stook_call_failed(pid))
                return (int)pid;
        stook_call_close(fds[0]);
        return -1;
}

void stook_os_process_copy_end(int to_parent, const void *answer, size_t bytes)
{
        stook_call(SYS_write, to_parent, answer, bytes);
        stook_checker_await_kill();
        for (;;)
                stook_call(SYS_exit_group, 0);
}

bool stook_os_process_copy_answer(int pid, int from_child, void *answer, size_t bytes)
{
        long n;
        int status;

        while ((n = stook_call(SYS_read, from_child, answer, bytes)) == -EINTR)
                ;
        stook_call_close(from_child);
        stook_checker_kill(pid);
        while (stook_call(SYS_wait4, pid, &status, __WALL, NULL) == -EINTR)
                ;
        return n == (long)bytes;
}
