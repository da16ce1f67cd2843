/*
 * Purpose: start a thread of the library's own: detached, with all signals blocked, so that no
 * handler of the program runs on its stack.
 * Place: called by life and by epoch, never inside an allocation: making a thread allocates.
 * Failure: no thread; nothing changed.
 */
#include <pthread.h>
#include <signal.h>

#include "os/os.h"

int stook_os_own_thread(void *(*run)(void *unused), size_t stack_bytes)
{
        pthread_attr_t attributes;
        pthread_t thread;
        sigset_t all, before;
        int error = pthread_attr_init(&attributes);

        if (error)
                return -error;
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        if (stack_bytes)
                pthread_attr_setstacksize(&attributes, stack_bytes);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&thread, &attributes, run, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
        return -error;
}
