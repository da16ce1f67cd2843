/*
 * Purpose: words on stderr, and the end of the process.
 * Failure: what stderr does not take (closed, full and non-blocking) is lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/os.h"
#include "os/system_call.h"

/* Of a descriptor that programs do not count on. Arbitrary. */
#define KEPT_LEAST 200

void stook_os_write(const char *text, size_t bytes)
{
        int before = errno;

        while (bytes) {
                ssize_t n = write(STDERR_FILENO, text, bytes);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;
                text += n;
                bytes -= (size_t)n;
        }
        errno = before;
}

int stook_os_keep_stderr(void)
{
        long fd = stook_call(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, KEPT_LEAST);

        return stook_call_failed(fd) ? -1 : (int)fd;
}

void stook_os_restore_stderr(int kept)
{
        if (kept >= 0)
                stook_call(SYS_dup3, kept, STDERR_FILENO, 0);
}

void stook_os_append(const char *path, const char *text, size_t bytes)
{
        long fd = stook_call(SYS_openat, AT_FDCWD, path,
                             O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);

        if (stook_call_failed(fd))
                return;
        stook_call(SYS_write, fd, text, bytes);
        stook_call_close((int)fd);
}

_Noreturn void stook_os_abort(void)
{
        abort();
}
