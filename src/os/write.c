/*
 * Purpose: words on stderr, or to the program, which may take them; and the end of the process.
 * Failure: what stderr does not take (closed, full and non-blocking) is lost. If it was closed, a
 * descriptor that was kept of it takes it (STOOK_PRINT).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"
#include "os/system_call.h"

bool (*stook_os_output)(const char *text, size_t bytes);

static bool is_taken(const char *text, size_t bytes)
{
        bool (*to)(const char *, size_t) = __atomic_load_n(&stook_os_output, __ATOMIC_RELAXED);

        return to && to(text, bytes);
}

/* Const after start: a second descriptor of standard error, and which file that was. */
static struct {
        int   fd;                       /* 0: none */
        dev_t device;
        ino_t inode;
} kept;

/* The program may have closed the number, and opened another file under it. */
static bool is_kept(void)
{
        struct stat st;

        return kept.fd && !fstat(kept.fd, &st) && st.st_dev == kept.device &&
               st.st_ino == kept.inode;
}

void stook_os_keep_stderr(void)
{
        struct stat st;
        long fd;

        if (kept.fd || fstat(STDERR_FILENO, &st))
                return;
        /* Above the numbers that shells and scripts use. */
        fd = stook_call(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
        if (stook_call_failed(fd))
                return;
        kept.device = st.st_dev;
        kept.inode = st.st_ino;
        kept.fd = (int)fd;
}

void stook_os_write(const char *text, size_t bytes)
{
        int before = errno, fd = STDERR_FILENO;

        if (is_taken(text, bytes))
                return;
        while (bytes) {
                ssize_t n = write(fd, text, bytes);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EBADF && fd == STDERR_FILENO && is_kept()) {
                        fd = kept.fd;
                        continue;
                }
                if (n <= 0)
                        break;
                text += n;
                bytes -= (size_t)n;
        }
        errno = before;
}

void stook_os_write_line(const struct iovec *parts, int n)
{
        int before = errno, taken = 0;

        while (taken < n && is_taken(parts[taken].iov_base, parts[taken].iov_len))
                taken++;
        parts += taken;
        n -= taken;
        if (n && writev(STDERR_FILENO, parts, n) < 0 && (errno != EBADF || !is_kept() ||
                                                    writev(kept.fd, parts, n) < 0)) {
                /* there is nothing to report to */
        }
        errno = before;
}

void stook_os_restore_stderr(void)
{
        if (is_kept())
                stook_call(SYS_dup3, kept.fd, STDERR_FILENO, 0);
}

_Noreturn void stook_os_abort(void)
{
        abort();
}
