/*
 * Purpose: see packed.h.
 */
#include "cli/files/packed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *packed_by(const char *begin, size_t bytes)
{
        static const struct {
                const char *program;
                size_t      bytes;
                const char *begins;
        } packed[] = {
                { "xz", 6, "\xfd" "7zXZ\0" },
                { "gzip", 2, "\x1f\x8b" },
                { "zstd", 4, "\x28\xb5\x2f\xfd" },
        };

        for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++)
                if (bytes >= packed[i].bytes && !memcmp(begin, packed[i].begins, packed[i].bytes))
                        return packed[i].program;
        return NULL;
}

/* The child. What the program would say of the file, packed_close says. */
static _Noreturn void unpack(const char *program, int from, int to)
{
        int silence = open("/dev/null", O_WRONLY | O_CLOEXEC);

        if (dup2(from, STDIN_FILENO) >= 0 && dup2(to, STDOUT_FILENO) >= 0 &&
            (silence < 0 || dup2(silence, STDERR_FILENO) >= 0))
                execlp(program, program, "-dc", (char *)NULL);
        _exit(127);
}

FILE *packed_open(const char *program, int fd, pid_t *pid)
{
        int ends[2];
        FILE *in;

        *pid = -1;
        if (!pipe2(ends, O_CLOEXEC)) {
                *pid = fork();
                if (!*pid)
                        unpack(program, fd, ends[1]);
                close(ends[1]);
                if (*pid < 0)
                        close(ends[0]);
        }
        close(fd);
        if (*pid < 0)
                return NULL;
        in = fdopen(ends[0], "r");
        if (in)
                return in;
        close(ends[0]);
        waitpid(*pid, NULL, 0);
        return NULL;
}

bool packed_close(FILE *in, pid_t pid, const char *program, const char *path, char *message,
                  size_t bytes)
{
        int status = 0;

        fclose(in);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (!status)
                return true;
        if (message)
                snprintf(message, bytes, WIFEXITED(status) && WEXITSTATUS(status) == 127 ?
                         "%s: it is packed, and there is no %s to unpack it" :
                         "%s: %s cannot unpack it", path, program);
        return false;
}
