/*
 * Purpose: words on stderr, and the end of the process.
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
        int before = errno;

        if (writev(STDERR_FILENO, parts, n) < 0 && (errno != EBADF || !is_kept() ||
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

int stook_os_append(const char *path, const char *text, size_t bytes)
{
        long fd = stook_call(SYS_openat, AT_FDCWD, path,
                             O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
        long done;

        if (stook_call_failed(fd))
                return (int)fd;
        done = stook_call_write_quietly((int)fd, text, bytes);
        stook_call_close((int)fd);
        return stook_call_failed(done) ? (int)done : 0;
}

/* May a file be made in the folder of @path? */
static int may_make(const char *path)
{
        const char *slash = strrchr(path, '/');
        size_t bytes = slash ? (size_t)(slash - path) + 1 : 1;
        char folder[512] = ".";

        if (bytes >= sizeof(folder))
                return -ENAMETOOLONG;
        if (slash)
                memcpy(folder, path, bytes);
        return (int)stook_call(SYS_faccessat, AT_FDCWD, folder, W_OK | X_OK);
}

int stook_os_may_append(const char *path)
{
        int before = errno, may = (int)stook_call(SYS_faccessat, AT_FDCWD, path, W_OK);
        struct stat st;

        if (!may && !stat(path, &st) && S_ISDIR(st.st_mode))
                may = -EISDIR;
        errno = before;
        return may == -ENOENT ? may_make(path) : may;
}

/* The kernel's set of signals is 8 bytes. */
long stook_call_write_quietly(int fd, const void *bytes, size_t n)
{
        uint64_t too_large = UINT64_C(1) << (SIGXFSZ - 1), blocked;
        struct timespec at_once = { 0 };
        long got;

        if (stook_call(SYS_rt_sigprocmask, SIG_BLOCK, &too_large, &blocked, 8))
                return -EINVAL;
        do
                got = stook_call(SYS_write, fd, bytes, n);
        while (got == -EINTR);
        if (got == -EFBIG && !(blocked & too_large))
                stook_call(SYS_rt_sigtimedwait, &too_large, NULL, &at_once, 8);
        stook_call(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, 8);
        return got;
}

_Noreturn void stook_os_abort(void)
{
        abort();
}
