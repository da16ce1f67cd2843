/*
 * Purpose: whether this code runs on the alternate signal stack of its thread, where addresses of
 * frames say nothing about those it interrupted.
 * Place: called by base/lock.c, once there is something to heal.
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
