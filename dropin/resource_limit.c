/*
 * Purpose: libc's calls that set limits, which tell the page layer of a limit of address space
 * (pages/space_limit.c): what is reserved ahead of use is counted against it, so the heap has to
 * let go of that before the program maps anything else, such as the stack of a thread.
 * Place: in front of libc's names, in the shared drop-in alone, and with glibc alone.
 * Concurrency: any thread. A child of vfork has limits of its own and its parent's heap, so it
 *  tells nothing.
 * Failure: a limit that was set past these names (from outside, or by a system call) is not seen.
 */
#undef _FILE_OFFSET_BITS                /* it would give setrlimit the name of setrlimit64 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/thread.h"
#include "os/system_call.h"
#include "pages/span.h"

#ifdef __GLIBC__
_Static_assert(sizeof(struct rlimit) == sizeof(struct rlimit64), "one form serves both");

static int set(pid_t pid, int resource, const void *limit, void *before)
{
        long done = stook_call(SYS_prlimit64, pid, resource, limit, before);

        if (done < 0) {
                errno = (int)-done;
                return -1;
        }
        if (limit && resource == RLIMIT_AS && (!pid || pid == getpid()) && !stook_self_is_barred())
                stook_space_limit_changed();
        return 0;
}

STOOK_API int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
        return set(0, (int)resource, limit, NULL);
}

STOOK_API int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
        return set(0, (int)resource, limit, NULL);
}

STOOK_API int prlimit(pid_t pid, enum __rlimit_resource resource, const struct rlimit *limit,
                      struct rlimit *before)
{
        return set(pid, (int)resource, limit, before);
}

STOOK_API int prlimit64(pid_t pid, enum __rlimit_resource resource, const struct rlimit64 *limit,
                        struct rlimit64 *before)
{
        return set(pid, (int)resource, limit, before);
}
#endif
