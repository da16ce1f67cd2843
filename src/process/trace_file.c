/*
 * Purpose: the one file that a recording appends to, also from a forked child and from another
 * program that continues it.
 * Place: called by record.
 * Concurrency: any thread, any instruction. A block is one write; the kernel appends it whole.
 *
 * The descriptor has a high number, so that a program that counts on low ones sees no difference.
 * The program may close it all the same, and open a file of its own at that number. So each write
 * asks first whether the file is the one that was opened, and opens it again if not.
 * Failure: false; errno is preserved, and no SIGXFSZ is sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"
#include "os/system_call.h"
#include "process/process.h"

#define HIGH_FD 200                     /* arbitrary: above what programs open, below limits */
#define PATH_BYTES 4096

static char path_of[PATH_BYTES] STOOK_MOSTLY_UNUSED;   /* const after the start, and the next two */
static dev_t device;
static ino_t inode;
static int fd = -1;                     /* atomic */

static bool is_it(int file)
{
        struct stat st;

        return file >= 0 && !fstat(file, &st) && st.st_dev == device && st.st_ino == inode;
}

static int open_high(const char *path, int flags)
{
        /* NONBLOCK: a fifo of that name must not hang. */
        int low = (int)stook_call(SYS_openat, AT_FDCWD, path,
                                  flags | O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
                                  stook_file_open_flags(path), 0666);
        int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, HIGH_FD);

        if (high < 0)
                return low;
        close(low);
        return high;
}

/* A new file, or one that begins with @magic. */
static bool is_ours(int file, uint64_t magic)
{
        struct stat st;
        uint64_t found;

        if (fstat(file, &st) || !S_ISREG(st.st_mode))
                return false;
        device = st.st_dev;
        inode = st.st_ino;
        return !st.st_size || (pread(file, &found, sizeof found, 0) == (ssize_t)sizeof found &&
                               found == magic);
}

/* The program may change its folder. */
static void note_path(const char *path)
{
        char link[32], number[12];
        size_t n = sizeof number - 1;
        ssize_t bytes;

        number[n] = '\0';
        for (unsigned left = (unsigned)fd; left || n == sizeof number - 1; left /= 10)
                number[--n] = (char)('0' + left % 10);
        strcpy(link, "/proc/self/fd/");
        strcat(link, number + n);
        bytes = readlink(link, path_of, sizeof path_of - 1);
        if (bytes < 0)
                memcpy(path_of, path, strnlen(path, sizeof path_of - 1));
}

int stook_trace_file_open(const char *path, uint64_t magic)
{
        int before = errno, file = open_high(path, O_CREAT), error = file < 0 ? file : 0;

        if (!error && !is_ours(file, magic)) {
                close(file);
                error = -EBADMSG;
        } else if (!error) {
                fd = file;
                note_path(path);
        }
        errno = before;
        return error;
}

static int opened(void)
{
        int file = __atomic_load_n(&fd, __ATOMIC_RELAXED);

        if (STOOK_LIKELY(is_it(file)))
                return file;
        file = open_high(path_of, 0);
        if (is_it(file)) {
                __atomic_store_n(&fd, file, __ATOMIC_RELAXED);
                return file;
        }
        if (file >= 0)
                close(file);
        return -1;
}

static const char *reason(long got)
{
        switch (got) {
        case -ENOSPC:
        case -EDQUOT:
                return "no space is left";
        case -EFBIG:
                return "it would be larger than the limit on files";
        case -EBADF:
                return "it was closed, and cannot be opened again";
        default:
                return got < 0 ? "it cannot be written" : "it takes no more";
        }
}

bool stook_trace_file_write(const void *bytes, size_t n)
{
        static uint32_t told;
        int before = errno, file = opened();
        long got = file < 0 ? -EBADF : stook_file_write_quietly(file, bytes, n);

        if (got != (long)n && !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
                stook_os_env_tell(path_of, strlen(path_of), ": the recording ends here: ",
                                  reason(got));
        errno = before;
        return got == (long)n;
}
