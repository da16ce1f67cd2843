/*
 * Purpose: a file shared with another process: mapped once, opened part by part; or marked.
 * Place: called by inspect/stats_page.c, at start and in a forked child; nothing else shares
 * memory. Marked by report, in any thread, at any instruction.
 * Failure: NULL or false, nothing changed. errno is preserved.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "os/os.h"
#include "os/system_call.h"
#include "process/process.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static bool in_proc(const char *path)
{
        return !strncmp(path, "/proc/", 6);
}

/*
 * /proc/PID/fd/N is a link to be followed; no other link is. By now that number may be another
 * process's, whose fifos and devices must not even be opened: only a file without a name is.
 */
static int open_shared(const char *path)
{
        /* NONBLOCK: a fifo of that name must not hang the start of a program. */
        int         flags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
        struct stat st;

        if (!in_proc(path))
                return open(path, flags | O_NOFOLLOW);
        if (stat(path, &st) || !S_ISREG(st.st_mode) || st.st_nlink)
                return -1;
        return open(path, flags);
}

void *stook_file_map(const char *path, size_t at_most, size_t *bytes)
{
        int         saved = errno;
        void       *base = MAP_FAILED;
        struct stat st;
        int         fd;

        fd = open_shared(path);
        if (fd >= 0) {
                if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
                        size_t whole = (size_t)st.st_size;

                        if (whole > at_most)
                                whole = at_most & ~(stook_os_page_bytes() - 1);
                        if (whole > 0)
                                base = mmap(NULL, whole, PROT_NONE, MAP_SHARED, fd, 0);
                        if (base != MAP_FAILED) {
                                madvise(base, whole, MADV_DONTDUMP);
                                *bytes = whole;
                        }
                }
                close(fd);
        }
        errno = saved;
        return base == MAP_FAILED ? NULL : base;
}

bool stook_file_open_part(void *addr, size_t bytes)
{
        int  saved = errno;
        bool done = !mprotect(addr, bytes, PROT_READ | PROT_WRITE);

        errno = saved;
        return done;
}

bool stook_file_populate_part(void *addr, size_t bytes)
{
        int  saved = errno;
        /* EINVAL: a kernel before 5.14; the pages then come as they are touched. */
        bool done = !madvise(addr, bytes, MADV_POPULATE_WRITE) || errno == EINVAL;

        errno = saved;
        return done;
}

void stook_file_mark(const char *path, uint64_t magic, unsigned n)
{
        int     saved = errno, fd = open_shared(path);
        uint8_t begin[sizeof magic + 8];
        size_t  bytes = sizeof magic + n;

        if (fd >= 0) {
                if (read(fd, begin, bytes) == (ssize_t)bytes &&
                    !memcmp(begin, &magic, sizeof magic))
                        stook_file_write_quietly(fd, "!", 1);
                close(fd);
        }
        errno = saved;
}
