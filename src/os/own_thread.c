/*
 * Purpose: threads of the library's own: detached, with all signals blocked, so that no handler of
 * the program runs on their stacks; and whether any other thread is left.
 *
 * A process ends as by exit(0) with its last thread (POSIX), and these do not count. libc does
 * that: it counts its threads, and the last one that returns runs exit(0). So each of these returns
 * when only its like are left, whichever copy of the library they are of. Considered besides:
 *  - a bare clone(), which libc does not count: the thread would have no TLS and no rseq area,
 *    which the library and the program's callbacks need;
 *  - a call of exit() here: two of these may call it, and a thread of the program besides;
 *  - destructors of thread-local values as the event: they run before their thread has ended, and
 *    not in threads that never called the library. So each of these threads looks when it wakes,
 *    twice a second. While the first thread lives the look is one futex call: no file is opened.
 *
 * Claim: if the look finds own threads alone, there is no other one any more: at the moment in
 * which the kernel counts them there is none, and only a thread makes one. But a callback of the
 * program, in an own thread, may make one, which takes over the name; or an own thread ends in the
 * middle of the look. Then own threads end too early: calls start them again, and the process goes
 * on, as libc counts its threads.
 *
 * Place: called by life and by epoch, never inside an allocation: making a thread allocates.
 * Failure: no thread; nothing changed. Without /proc they end soon after the first thread; those of
 *  epoch are made again by calls, as above. Without that futex call (ENOSYS) they stay.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "os/os.h"
#include "os/system_call.h"
#include "os/thread_list.h"

#define FUTEX_TRYLOCK_PI_PRIVATE (8 | 128)
#define NAME_BYTES 16                   /* with what ends it */
#define SET_BYTES  8                    /* of the kernel's set of signals */

/*
 * The first thread has ended; or it is this one, in the child of a fork in a callback. The word
 * says that the first thread holds a lock. To a thread that asks for the lock the kernel says that
 * the holder is gone, or is the caller.
 */
static bool first_is_gone(uint32_t id)
{
        long r = stook_call(SYS_futex, &id, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0);

        return r == -ESRCH || r == -EDEADLK;
}

/* libstook-urcu's are named as those of epoch are. */
static bool is_own(uint32_t id, const char *digits, void *first)
{
        static const char folder[] = "/proc/self/task/", file_name[] = "/comm";
        char path[64], name[NAME_BYTES] = { 0 };
        size_t length = strlen(digits);
        int file;

        if (id == *(uint32_t *)first)
                return true;
        memcpy(path, folder, sizeof(folder) - 1);
        memcpy(path + sizeof(folder) - 1, digits, length);
        memcpy(path + sizeof(folder) - 1 + length, file_name, sizeof(file_name));
        file = stook_call_open(path);
        if (file < 0)
                return false;
        stook_call(SYS_read, file, name, NAME_BYTES - 1);
        stook_call_close(file);
        return !strcmp(name, STOOK_OS_RCU_THREAD "\n") ||
               !strcmp(name, STOOK_OS_MAINTENANCE_THREAD "\n");
}

bool stook_os_only_own_threads(void)
{
        uint32_t first = stook_os_pid();

        return first_is_gone(first) && stook_thread_list(is_own, &first);
}

/* What exit() calls in the last thread finds the signals of a thread of the program. */
static void *begin(void *started)
{
        struct stook_own_thread thread = *(struct stook_own_thread *)started;

        stook_os_name_thread(thread.name);
        thread.run();
        if (stook_os_only_own_threads())
                stook_call(SYS_rt_sigprocmask, SIG_SETMASK, &thread.signals, NULL, SET_BYTES);
        return NULL;
}

int stook_os_own_thread(struct stook_own_thread *thread)
{
        pthread_attr_t attributes;
        pthread_t id;
        sigset_t all, before;
        int error = pthread_attr_init(&attributes);

        if (error)
                return -error;
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        sigfillset(&all);
        stook_call(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &thread->signals, SET_BYTES);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&id, &attributes, begin, thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
        return -error;
}
