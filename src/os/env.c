/*
 * Purpose: the STOOK_* variables.
 * Place: called at start. The environment is walked by ourselves: getenv may be somebody else's, and early
 * calls come before libc is ready for it.
 */
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/os.h"

#define VALUE_SHOWN 100                 /* bytes of a value that is refused; arbitrary */

extern char **environ;

const char *stook_os_env(const char *name)
{
        size_t n = strlen(name);

        if (!environ || getauxval(AT_SECURE))
                return NULL;
        for (char **e = environ; *e; e++)
                if (!strncmp(*e, name, n) && (*e)[n] == '=')
                        return *e + n + 1;
        return NULL;
}

void stook_os_env_refuse(const char *name, const char *value, const char *takes)
{
        const char *words[] = { "stook: ", name, "=", value, ": takes ", takes, "\n" };
        struct iovec parts[sizeof(words) / sizeof(words[0])];
        unsigned n = sizeof(words) / sizeof(words[0]);
        int before = errno;
        size_t shown = 0;

        for (unsigned i = 0; i < n; i++) {
                parts[i].iov_base = (char *)words[i];
                parts[i].iov_len = strlen(words[i]);
        }
        /* One line, whatever the value is. */
        while (shown < VALUE_SHOWN && (unsigned char)value[shown] >= ' ')
                shown++;
        parts[3].iov_len = shown;
        if (writev(STDERR_FILENO, parts, (int)n) < 0) {
                /* nobody to tell */
        }
        errno = before;
}
