/*
 * Purpose: files that the user has named: one that takes its name when it is whole, one that is
 * added to, and what the system answered, in words: libc's strerror() may allocate.
 * Place: called by profile, report, record.
 * Concurrency: any thread, any instruction; one struct stook_output has one caller.
 * Failure: -errno, nothing is left behind. errno is preserved, and no SIGXFSZ is sent.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "os/system_call.h"
#include "process/process.h"

/* The kernel's set of signals is 8 bytes. */
long stook_file_write_quietly(int fd, const void *bytes, size_t n)
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

/* ---- a file that takes its name when it is whole ---- */

static void append(char *path, size_t *bytes, char c)
{
        if (*bytes < STOOK_OUTPUT_PATH - 1)
                path[(*bytes)++] = c;
        path[*bytes] = '\0';
}

static void append_number(char *path, size_t *bytes, uint32_t number)
{
        uint32_t unit = 1;

        while (number / unit >= 10)
                unit *= 10;
        for (; unit; unit /= 10)
                append(path, bytes, (char)('0' + number / unit % 10));
}

/* "%p" becomes the process number. False: too long. */
static bool make_paths(struct stook_output *o, const char *path)
{
        size_t bytes = 0;

        for (; *path; path++)
                if (path[0] == '%' && path[1] == 'p') {
                        append_number(o->path, &bytes, stook_process_id());
                        path++;
                } else {
                        append(o->path, &bytes, *path);
                }
        if (!bytes || bytes > STOOK_OUTPUT_PATH - 32)
                return false;
        memcpy(o->temporary, o->path, bytes + 1);
        for (const char *c = ".part-"; *c; c++)
                append(o->temporary, &bytes, *c);
        append_number(o->temporary, &bytes, stook_process_id());
        return true;
}

/* Its name would go to the new file: a device, a pipe or a link that is there stays what it is. */
static bool may_be_replaced(const char *path)
{
        struct stat st;
        bool there = !lstat(path, &st);

        return !there || S_ISREG(st.st_mode);
}

int stook_output_begin(struct stook_output *o, const char *path)
{
        int before = errno;
        bool may;

        if (!make_paths(o, path))
                return -ENAMETOOLONG;
        may = may_be_replaced(o->path);
        errno = before;
        if (!may)
                return -EEXIST;
        o->bytes = 0;
        o->error = 0;
        o->fd = (int)stook_call(SYS_openat, AT_FDCWD, o->temporary,
                                O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
        return o->fd < 0 ? o->fd : 0;
}

static void flush(struct stook_output *o)
{
        size_t done = 0;

        while (done < o->bytes && !o->error) {
                long n = stook_file_write_quietly(o->fd, o->buffer + done, o->bytes - done);

                if (n > 0)
                        done += (size_t)n;
                else
                        o->error = n ? (int)n : -ENOSPC;
        }
        o->bytes = 0;
}

void stook_output_put(struct stook_output *o, const void *bytes, size_t n)
{
        if (n > sizeof o->buffer - o->bytes)
                flush(o);
        memcpy(o->buffer + o->bytes, bytes, n);
        o->bytes += n;
}

int stook_output_end(struct stook_output *o, bool keep)
{
        flush(o);
        stook_call_close(o->fd);
        if (keep && !o->error)
                o->error = (int)stook_call(SYS_renameat2, AT_FDCWD, o->temporary, AT_FDCWD, o->path,
                                           0);
        if (!keep || o->error)
                stook_call(SYS_unlinkat, AT_FDCWD, o->temporary, 0);
        return o->error;
}

/* ---- a file that is added to ---- */

int stook_file_append(const char *path, const char *text, size_t bytes)
{
        long fd = stook_call(SYS_openat, AT_FDCWD, path,
                             O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY |
                             stook_file_open_flags(path), 0600);
        long done;

        if (stook_call_failed(fd))
                return (int)fd;
        done = stook_file_write_quietly((int)fd, text, bytes);
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

int stook_file_may_append(const char *path)
{
        int before = errno, may = (int)stook_call(SYS_faccessat, AT_FDCWD, path, W_OK);
        struct stat st;

        if (!may && !stat(path, &st) && S_ISDIR(st.st_mode))
                may = -EISDIR;
        errno = before;
        return may == -ENOENT ? may_make(path) : may;
}

const char *stook_file_error_words(int error)
{
        switch (error) {
        case ENOENT:
        case ENOTDIR:
                return "no such folder or file";
        case EACCES:
        case EPERM:
                return "permission denied";
        case EISDIR:
                return "it is a folder";
        case EROFS:
                return "the file system is read-only";
        case ENOSPC:
        case EDQUOT:
                return "no space is left";
        case EFBIG:
                return "the file would be larger than its limit";
        case EMFILE:
        case ENFILE:
                return "too many files are open";
        case ENAMETOOLONG:
                return "its name is too long";
        case EEXIST:
                return "it is there, and is no regular file";
        case ENOMEM:
                return "no memory";
        default:
                return "the system refuses";
        }
}
