/*
 * Purpose: libc is asked to call life/fork.c around fork at the first fork beside other threads, or
 * before others register handlers, not at start. Few programs do either, and to register makes
 * 128 KiB of libc's file resident.
 * Place: in front of libc's names, in the shared drop-in alone, and with glibc alone. Elsewhere the
 *  constructor registers (life/start.c): a static program has libc's __register_atfork already.
 * Invariants:
 *  I1 our handlers are registered before all others. So libc calls prepare behind all others, and
 *     none of theirs runs while this thread has the heap's locks: it may wait for a lock whose
 *     holder allocates.
 *  I2 nothing is registered inside an allocation. So it is never inside a registration or a
 *     handler, where libc has a lock that it would take again. fork takes that lock next, anyway.
 * Concurrency: any thread. Threads that come at once wait for the first (pthread_once). The child
 *  of a fork in between begins anew. A handler that forks on top of the first call waits for
 *  itself, as it does on top of libc's registration.
 * Failure: where libc's definitions of these names are found first (this library was opened by
 *  dlopen), the constructor registers. A fork past the names before the first call (__fork, daemon,
 *  a raw clone, a fork of the program's own) is repaired as one of _Fork is.
 */
#include <stdbool.h>
#include "base/compiler.h"
#include "foreign.h"
#include "life/life.h"

#ifdef __GLIBC__
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <pty.h>
#include <stdint.h>
#include <unistd.h>
#include "base/alone.h"
#include "base/thread.h"

const bool stook_fork_registers_late = true;

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *library);

typedef int register_call(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                          void *library);

/* The definitions behind ours. All that write store the same. */
static struct {
        pid_t         (*fork)(void);
        register_call *register_atfork;
} next;

void stook_fork_look_up(void)
{
        *(void **)&next.fork = dlsym(RTLD_NEXT, "fork");
        *(void **)&next.register_atfork = dlsym(RTLD_NEXT, "__register_atfork");
        stook_foreign_look_up();
}

/* Of no library: it stays when this one is at its end. */
static int register_next(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
        return next.register_atfork(prepare, parent, child, NULL);
}

static void begin(void)
{
        if (!next.fork || !next.register_atfork)
                stook_fork_look_up();
        if (next.register_atfork)
                stook_fork_register(register_next);
}

static void register_ours(void)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        pthread_once(&once, begin);
}

/*
 * Do libraries find our names before those of libc? At the start the loader gives thread-local
 * storage in that order: from the thread pointer down on x86-64, up elsewhere. What is opened later
 * has what is left behind. To ask the loader itself costs a tenth of what we add to a process.
 */
static bool stands_in_front(void)
{
        uintptr_t ours = (uintptr_t)stook_self, of_libc = (uintptr_t)&errno;

#ifdef __x86_64__
        return ours > of_libc;
#else
        return ours < of_libc;
#endif
}

__attribute__((constructor(101))) static void construct(void)
{
        if (!stands_in_front() &&
            (dlsym(RTLD_DEFAULT, "fork") != (void *)fork ||
             dlsym(RTLD_DEFAULT, "__register_atfork") != (void *)__register_atfork))
                register_ours();
}

/* What pthread_atfork calls, which each library has a copy of. */
STOOK_API int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                                void *library)
{
        register_ours();
        if (!next.register_atfork)
                return ENOMEM;
        return next.register_atfork(prepare, parent, child, library);
}

/* Before a fork. While the process has one thread the handlers would do nothing. */
static void get_ready(void)
{
        if (!stook_has_one_thread() || stook_fork_is_marked())
                register_ours();
        else if (!next.fork)
                stook_fork_look_up();
}

STOOK_API pid_t fork(void)
{
        get_ready();
        if (next.fork)
                return next.fork();
        errno = ENOSYS;
        return -1;
}

/*
 * libc's forkpty calls fork by another name. So does daemon, which is not here: a library may have
 * something else of that name, which would then be this.
 */
STOOK_API pid_t forkpty(int *end, char *name, const struct termios *settings,
                        const struct winsize *size)
{
        pid_t (*call)(int *, char *, const struct termios *, const struct winsize *);

        get_ready();
        *(void **)&call = dlsym(RTLD_NEXT, "forkpty");
        if (call)
                return call(end, name, settings, size);
        errno = ENOSYS;
        return -1;
}
#endif
