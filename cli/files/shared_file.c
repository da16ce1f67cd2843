/*
 * Purpose: see shared_file.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/files/shared_file.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u              /* Linux 6.3 */
#endif

/*
 * A file without a name: it is gone with its last user, even if this process is killed. Others of
 * this user open it through /proc, unless this process is not to be looked into ("dumpable").
 */
static int make_nameless(struct shared_file *file)
{
        file->fd = memfd_create("stook-run", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
        if (file->fd < 0 && errno == EINVAL)
                file->fd = memfd_create("stook-run", MFD_CLOEXEC);
        if (file->fd < 0)
                return -errno;
        snprintf(file->path, sizeof file->path, "/proc/%ld/fd/%d", (long)getpid(), file->fd);
        if (!fchmod(file->fd, 0600) && prctl(PR_GET_DUMPABLE) == 1 &&
            !access(file->path, R_OK | W_OK)) {
                file->nameless = true;
                return 0;
        }
        close(file->fd);
        file->fd = -1;
        return -EACCES;
}

static int make_in(struct shared_file *file, const char *folder)
{
        int n = snprintf(file->path, sizeof file->path, "%s/stook-run-XXXXXX", folder);

        if (n < 0 || (size_t)n >= sizeof file->path)
                return -ENAMETOOLONG;
        file->fd = mkostemp(file->path, O_CLOEXEC);     /* 0600 */
        return file->fd < 0 ? -errno : 0;
}

int shared_file_make(struct shared_file *file)
{
        const char *tmpdir = getenv("TMPDIR");
        int error;

        file->nameless = false;
        error = make_nameless(file);
        if (error)
                error = make_in(file, "/dev/shm");
        if (error && tmpdir && tmpdir[0] == '/')
                error = make_in(file, tmpdir);
        return error ? make_in(file, "/tmp") : 0;
}

void shared_file_remove(struct shared_file *file)
{
        if (file->fd >= 0) {
                if (!file->nameless)
                        unlink(file->path);
                close(file->fd);
        }
        file->fd = -1;
}
