/*
 * Purpose: which input a file is, told by its first bytes; packed ones come through a pipe from the
 * program that unpacks them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "record/trace_format.h"
#include "replay_read.h"

static const struct packed {
        const char *program;
        size_t      bytes;
        const char *begins;
} packed[] = {
        { "xz", 6, "\xfd" "7zXZ\0" },
        { "gzip", 2, "\x1f\x8b" },
        { "zstd", 4, "\x28\xb5\x2f\xfd" },
};

static const struct packed *packed_by(const char *begin, size_t bytes)
{
        for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++)
                if (bytes >= packed[i].bytes && !memcmp(begin, packed[i].begins, packed[i].bytes))
                        return &packed[i];
        return NULL;
}

/* `PROGRAM -dc` of @fd, which it takes. Return: its output, with *pid; NULL: errno. */
static FILE *unpack(const char *program, int fd, pid_t *pid)
{
        int ends[2];
        FILE *in;

        *pid = -1;
        if (!pipe2(ends, O_CLOEXEC)) {
                *pid = fork();
                if (!*pid) {
                        if (dup2(fd, STDIN_FILENO) >= 0 && dup2(ends[1], STDOUT_FILENO) >= 0)
                                execlp(program, program, "-dc", (char *)NULL);
                        _exit(127);
                }
                close(ends[1]);
                if (*pid < 0)
                        close(ends[0]);
        }
        close(fd);
        if (*pid < 0)
                return NULL;
        in = fdopen(ends[0], "r");
        if (!in)
                close(ends[0]);
        return in;
}

static bool read_packed(struct replay_list *list, const struct packed *by, int fd,
                        const char *path, char *message, size_t bytes)
{
        pid_t pid;
        FILE *in = unpack(by->program, fd, &pid);
        bool fine = in && replay_read_perf(list, in, path, message, bytes);
        int status = 0;

        if (!in)
                snprintf(message, bytes, "%s: %s", path, strerror(errno));
        else
                fclose(in);
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (fine && status) {
                snprintf(message, bytes, WIFEXITED(status) && WEXITSTATUS(status) == 127 ?
                         "%s: it is packed, and there is no %s to unpack it" :
                         "%s: %s cannot unpack it", path, by->program);
                return false;
        }
        return fine;
}

static bool read_plain(struct replay_list *list, int fd, const char *path, char *message,
                       size_t bytes)
{
        FILE *in = fdopen(fd, "r");
        bool fine = in && replay_read_perf(list, in, path, message, bytes);

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
        const struct packed *by;
        char begin[8];
        ssize_t n = pread(fd, begin, sizeof begin, 0);  /* of a pipe: nothing */

        by = n > 0 ? packed_by(begin, (size_t)n) : NULL;
        if (by)
                return read_packed(list, by, fd, path, message, bytes);
        if (n == (ssize_t)sizeof begin && !memcmp(begin, &magic, sizeof begin)) {
                close(fd);
                return replay_read_trace(list, path, message, bytes);
        }
        return read_plain(list, fd, path, message, bytes);
}

bool replay_list_read(struct replay_list *list, const char *path, char *message, size_t bytes)
{
        bool to_stdin = !strcmp(path, "-");
        int fd = to_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) :
                 open(path, O_RDONLY | O_CLOEXEC);
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
                return false;
        }
        if (!list->count && !list->other_events && !list->frees_before) {
                snprintf(message, bytes, "%s: no trace: it has no event", path);
                return false;
        }
        return true;
}
