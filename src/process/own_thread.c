/*
 * Purpose: the threads of this process, as /proc lists them, and the CPUs that they may run on;
 * threads of the library's own: detached, with all signals blocked, so that no handler of
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
#include <sys/stat.h>

#include "base/compiler.h"
#include "os/system_call.h"
#include "process/process.h"

/*
 * Threads whose CPUs are asked for in a round of maintenance, at about 0.2 us each: of more
 * threads nothing is known. Arbitrary.
 */
#define THREADS_MOST 4096

struct entry {                          /* of a folder, as getdents64 writes it */
        uint64_t inode;
        int64_t  next;
        uint16_t bytes;
        uint8_t  type;
        char     name[];
};

/* 0: "." or "..". */
static uint32_t number(const char *digits)
{
        uint32_t n = 0;

        for (; *digits >= '0' && *digits <= '9'; digits++)
                n = n * 10 + (uint32_t)(*digits - '0');
        return n;
}

/*
 * Calls @visit for each thread until it returns false. @digits: @id as text. 1: all those, and no
 * others, are the threads that there are now, if none of them has ended meanwhile; 0: that is not
 * known; negative: the list cannot be read. The kernel cuts a list short where a thread on it ends
 * meanwhile. So what was visited is counted. How many threads there are is in the folder's number
 * of links, besides the usual two.
 */
static int each_thread(bool (*visit)(uint32_t id, const char *digits, void *data), void *data)
{
        char buffer[512] __attribute__((aligned(8)));
        int folder = stook_call_open("/proc/self/task");
        bool on = true;
        struct stat now;
        uint64_t links = 2;
        long n = 0;

        if (folder < 0)
                return folder;
        while (on && (n = stook_call(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0)
                for (long at = 0; on && at < n;) {
                        const struct entry *entry = (const void *)(buffer + at);
                        uint32_t id = number(entry->name);

                        at += entry->bytes;
                        links += id != 0;
                        on = !id || visit(id, entry->name, data);
                }
        on = on && !n && !fstat(folder, &now) && now.st_nlink == links;
        stook_call_close(folder);
        return on;
}

struct adding {
        struct stook_cpus *cpus;
        unsigned threads;
};

/* Its CPUs are added. One that has ended meanwhile has none. False: there are too many threads. */
static bool add_thread(uint32_t id, const char *digits, void *data)
{
        struct adding *adding = data;
        struct stook_cpus *cpus = adding->cpus;
        long n = stook_call(SYS_sched_getaffinity, id, sizeof(cpus->one), cpus->one);

        (void)digits;
        for (long i = 0; i < n / (long)sizeof(cpus->one[0]); i++)
                cpus->mask[i] |= cpus->one[i];
        return ++adding->threads <= THREADS_MOST;
}

void stook_process_allowed_cpus(struct stook_cpus *cpus)
{
        struct adding adding = { .cpus = cpus };
        bool all;

        memset(cpus->mask, 0, sizeof(cpus->mask));
        cpus->count = 0;
        all = each_thread(add_thread, &adding) > 0;
        for (size_t i = 0; all && i < STOOK_CPUS_MAX / 64; i++)
                cpus->count += (unsigned)__builtin_popcountll(cpus->mask[i]);
}

/* ---- threads of our own ---- */

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
        return !strcmp(name, STOOK_RCU_THREAD "\n") ||
               !strcmp(name, STOOK_MAINTENANCE_THREAD "\n");
}

bool stook_own_threads_are_alone(void)
{
        uint32_t first = stook_process_id();

        return first_is_gone(first) && each_thread(is_own, &first);
}

/* What exit() calls in the last thread finds the signals of a thread of the program. */
static void *begin(void *started)
{
        struct stook_own_thread thread = *(struct stook_own_thread *)started;

        stook_process_name_thread(thread.name);
        thread.run();
        if (stook_own_threads_are_alone())
                stook_call(SYS_rt_sigprocmask, SIG_SETMASK, &thread.signals, NULL, SET_BYTES);
        return NULL;
}

int stook_own_thread_start(struct stook_own_thread *thread)
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
