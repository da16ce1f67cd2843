/*
 * Purpose: what the kernel knows of the signal handlers that this code may be in: whether it runs
 * on the alternate signal stack of its thread, where addresses of frames say nothing about those it
 * interrupted; and whether a handler may be running at all.
 * Place: called by base/lock.c, once there is something to heal; and by cache, before a failed
 * malloc calls functions of the program.
 * Concurrency: any thread, any instruction. The kernel answers by the stack pointer of this call.
 * Failure: where the kernel does not say, there is no such stack. The kernel does not show a stack
 * with SS_AUTODISARM while it is in use.
 */
#include <signal.h>

#include "os/os.h"
#include "os/system_call.h"

bool stook_os_same_stack(uintptr_t address)
{
        stack_t stack = { .ss_flags = SS_DISABLE };

        if (stook_call_failed(stook_call(SYS_sigaltstack, NULL, &stack)) ||
            !(stack.ss_flags & SS_ONSTACK))
                return true;
        return address - (uintptr_t)stack.ss_sp <= stack.ss_size;
}

static bool has_handler(int signal)
{
        struct sigaction action;

        return !sigaction(signal, NULL, &action) && action.sa_handler != SIG_DFL &&
               action.sa_handler != SIG_IGN;
}

bool stook_os_may_be_in_handler(void)
{
        stack_t stack = { .ss_flags = SS_DISABLE };
        uint64_t blocked = 0;
        int before = errno;
        bool found;

        found = stook_call_failed(stook_call(SYS_sigaltstack, NULL, &stack)) ||
                (stack.ss_flags & SS_ONSTACK) ||
                stook_call_failed(stook_call(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked,
                                             sizeof(blocked)));
        for (; blocked && !found; blocked &= blocked - 1)
                found = has_handler(__builtin_ctzll(blocked) + 1);
        errno = before;
        return found;
}
