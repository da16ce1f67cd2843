/*
 * A library behind the drop-in, in front of libc: says which handlers libc was given, in which
 * order, and how many of them before the first fork.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <sys/types.h>
#include "fork_recorder.h"

struct recorded recorded;

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *library);
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *library)
{
        int (*next)(void (*)(void), void (*)(void), void (*)(void), void *);

        if (recorded.count < RECORDED_MOST)
                recorded.prepare[recorded.count] = prepare;
        recorded.count++;
        *(void **)&next = dlsym(RTLD_NEXT, "__register_atfork");
        return next(prepare, parent, child, library);
}

pid_t fork(void);
pid_t fork(void)
{
        pid_t (*next)(void);

        if (!__atomic_fetch_add(&recorded.forks, 1, __ATOMIC_RELAXED))
                recorded.count_before_fork = recorded.count;
        *(void **)&next = dlsym(RTLD_NEXT, "fork");
        return next();
}
