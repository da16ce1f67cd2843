/*
 * Purpose: the STOOK_* variables.
 * Place: called at start. The environment is walked by ourselves: getenv may be another library's,
 * and early calls come before libc is ready for it.
 */
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>

#include "os/os.h"

#define VALUE_SHOWN 100                 /* bytes of a value or name that is refused; arbitrary */
#define WORDS_MAX   7

extern char **environ;

bool stook_os_is_secure(void)
{
        return getauxval(AT_SECURE);
}

const char *stook_os_env(const char *name)
{
        size_t n = strlen(name);

        if (!environ || stook_os_is_secure())
                return NULL;
        for (char **e = environ; *e; e++)
                if (**e == *name && !strncmp(*e, name, n) && (*e)[n] == '=')
                        return *e + n + 1;
        return NULL;
}

/* One line and one write. What comes from outside is cut where it ends being printable. */
static void tell(const char *const *words, unsigned n, unsigned foreign, size_t foreign_bytes)
{
        struct iovec parts[WORDS_MAX];
        size_t shown = 0;

        for (unsigned i = 0; i < n; i++) {
                parts[i].iov_base = (char *)words[i];
                if (i != foreign)
                        parts[i].iov_len = strlen(words[i]);
        }
        if (foreign_bytes > VALUE_SHOWN)
                foreign_bytes = VALUE_SHOWN;
        while (shown < foreign_bytes && (unsigned char)words[foreign][shown] >= ' ')
                shown++;
        parts[foreign].iov_len = shown;
        stook_os_write_line(parts, (int)n);
}

void stook_os_env_refuse(const char *name, const char *value, const char *takes)
{
        const char *words[WORDS_MAX] = { "stook: ", name, "=", value, ": takes ", takes, "\n" };

        tell(words, 7, 3, strlen(value));
}

void stook_os_env_fail(const char *name, const char *path, const char *why)
{
        const char *words[WORDS_MAX] = { "stook: ", name, ": ", path, ": ", why, "\n" };

        tell(words, 7, 3, strlen(path));
}

void stook_os_env_tell(const char *name, size_t n, const char *says, const char *more)
{
        const char *words[WORDS_MAX] = { "stook: ", name, says, more, "\n" };

        tell(words, 5, 1, n);
}
