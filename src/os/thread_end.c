/*
 * Purpose: be called when a thread ends, without memory for that; and what the kernel knows of the
 * signal handlers that this code may be in: whether it runs on the alternate signal stack of its
 * thread, where addresses of frames say nothing about those it interrupted; and whether a handler
 * may be running at all.
 * Place: keys are for rseq.c, slot, group and epoch; base/lock.c asks for the stack, once there is
 * something to heal, and cache for handlers, before a failed malloc calls functions of the program.
 * Concurrency: any thread, any instruction. Arming is a store into the thread's own memory.
 * Failure: no key, or a value of a key that would need memory: the caller does without. Where the
 * kernel does not say, there is no such stack. It does not show a stack with SS_AUTODISARM that is
 * in use.
 */
#include <pthread.h>
#include <signal.h>

#include "base/compiler.h"
#include "os/os.h"
#include "os/system_call.h"

/* glibc keeps the first so many values in the thread itself; setting a later one may allocate. */
#define KEYS_INLINE 32

int stook_os_thread_end_key(void (*end)(void *value))
{
        pthread_key_t key;

        if (pthread_key_create(&key, end))
                return -1;
#ifdef __GLIBC__
        if (key >= KEYS_INLINE) {
                pthread_key_delete(key);
                return -1;
        }
#endif
        return (int)key;
}

void stook_os_thread_end_key_drop(int key)
{
        if (key >= 0)
                pthread_key_delete((pthread_key_t)key);
}

bool stook_os_thread_end_arm(int key, void *value)
{
        return key >= 0 && !pthread_setspecific((pthread_key_t)key, value);
}

bool stook_os_thread_end_is_armed(int key)
{
        return key >= 0 && pthread_getspecific((pthread_key_t)key);
}

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
