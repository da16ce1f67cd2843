/*
 * Purpose: a file that takes its name when it is whole.
 * Place: called by profile.
 * Concurrency: any thread, any instruction; one struct stook_output has one caller.
 * Failure: -errno, nothing is left behind. errno is preserved, and no SIGXFSZ is sent.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "os/os.h"
#include "os/system_call.h"

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
                        append_number(o->path, &bytes, stook_os_pid());
                        path++;
                } else {
                        append(o->path, &bytes, *path);
                }
        if (!bytes || bytes > STOOK_OUTPUT_PATH - 32)
                return false;
        memcpy(o->temporary, o->path, bytes + 1);
        for (const char *c = ".part-"; *c; c++)
                append(o->temporary, &bytes, *c);
        append_number(o->temporary, &bytes, stook_os_pid());
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
                long n = stook_call_write_quietly(o->fd, o->buffer + done, o->bytes - done);

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
