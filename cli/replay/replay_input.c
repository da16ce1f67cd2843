/*
 * Purpose: which input a file is, told by its first bytes; packed ones are unpacked (packed.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/files/file_kind.h"
#include "cli/files/packed.h"
#include "cli/replay/replay_read.h"
#include "record/trace_format.h"

static bool read_packed(struct replay_list *list, const char *program, int fd, const char *path,
                        char *message, size_t bytes)
{
        pid_t pid;
        FILE *in = packed_open(program, fd, &pid);
        bool fine;

        if (!in) {
                snprintf(message, bytes, "%s: %s", path, strerror(errno));
                return false;
        }
        fine = replay_read_kmem(list, in, path, message, bytes);
        if (!fine)
                message = NULL;
        return packed_close(in, pid, program, path, message, bytes) && fine;
}

static bool read_plain(struct replay_list *list, int fd, const char *path, char *message,
                       size_t bytes)
{
        FILE *in = fdopen(fd, "r");
        bool fine = in && replay_read_kmem(list, in, path, message, bytes);

        if (in) {
                fclose(in);
        } else {
                snprintf(message, bytes, "%s: %s", path, strerror(errno));
                close(fd);
        }
        return fine;
}

static bool read_opened(struct replay_list *list, int fd, const char *path, char *message,
                        size_t bytes)
{
        const uint64_t magic = STOOK_TRACE_MAGIC;
        const char *program;
        const char *kind;
        char begin[64];
        ssize_t n = pread(fd, begin, sizeof begin, 0);  /* of a pipe: nothing */

        program = n > 0 ? packed_by(begin, (size_t)n) : NULL;
        if (program)
                return read_packed(list, program, fd, path, message, bytes);
        if (n >= (ssize_t)sizeof magic && !memcmp(begin, &magic, sizeof magic)) {
                close(fd);
                return replay_read_trace(list, path, message, bytes);
        }
        kind = n > 0 ? file_kind(begin, (size_t)n) : NULL;
        if (kind) {
                snprintf(message, bytes, "%s: no trace, but %s", path, kind);
                close(fd);
                return false;
        }
        return read_plain(list, fd, path, message, bytes);
}

bool replay_list_read(struct replay_list *list, const char *path, char *message, size_t bytes)
{
        bool to_stdin = !strcmp(path, "-");
        int fd = to_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) :
                 open(path, O_RDONLY | O_CLOEXEC);
        char why[PATH_MAX + 128];
        struct stat st;

        memset(list, 0, sizeof *list);
        if (fd < 0 || fstat(fd, &st) || S_ISDIR(st.st_mode)) {
                snprintf(message, bytes, "%s: %s", path, strerror(fd < 0 ? errno : EISDIR));
                if (fd >= 0)
                        close(fd);
                return false;
        }
        if (!read_opened(list, fd, to_stdin ? "standard input" : path, message, bytes)) {
                replay_list_release(list);
                /* A trace whose first bytes are damaged is found by its other blocks. */
                if (to_stdin || !replay_read_trace(list, path, why, sizeof why)) {
                        replay_list_release(list);
                        return false;
                }
        }
        if (!list->count && !list->other_events && !list->frees_before) {
                snprintf(message, bytes,
                         "%s: no trace: it has no event of stook record, perf script, trace-cmd "
                         "or bpftrace", path);
                return false;
        }
        return true;
}
