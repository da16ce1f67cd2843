/*
 * Purpose: the STOOK_* variables.
 * Place: called at start. The environment is walked by ourselves: getenv may be another library's,
 * and early calls come before libc is ready for it. A start asks for many variables and most
 * programs have none, so one walk finds the first.
 * Concurrency: M1: the release of `walked` pairs with its acquire: what was found is stored before.
 *  Threads that walk at once store the same.
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

char **stook_os_env_instead;

char **stook_os_env_first(void)
{
        /* M1: `environ` as it was. Both are among the variables that the loader has written to. */
        static char *none[1], **found = none, **walked __attribute__((section(".data")));
        char **first = environ && !stook_os_is_secure() ? environ : none;

        if (stook_os_env_instead)
                return stook_os_env_instead;
        if (__atomic_load_n(&walked, __ATOMIC_ACQUIRE) == environ)
                return __atomic_load_n(&found, __ATOMIC_RELAXED);
        while (*first && strncmp(*first, STOOK_ENV_PREFIX, sizeof(STOOK_ENV_PREFIX) - 1))
                first++;
        __atomic_store_n(&found, first, __ATOMIC_RELAXED);
        __atomic_store_n(&walked, environ, __ATOMIC_RELEASE);
        return first;
}

const char *stook_os_env(const char *name)
{
        size_t n = strlen(name);

        for (char **e = stook_os_env_first(); *e; e++)
                if (!strncmp(*e, name, n) && (*e)[n] == '=')
                        return *e + n + 1;
        return NULL;
}

/* One line and one write. What comes from outside is cut where it ends being printable. */
static void tell(const char *const *words, unsigned n, unsigned foreign, size_t foreign_bytes)
{
        struct iovec parts[WORDS_MAX];
        size_t shown = 0, most = foreign_bytes < VALUE_SHOWN ? foreign_bytes : VALUE_SHOWN;

        for (unsigned i = 0; i < n; i++)
                parts[i] = (struct iovec){ (char *)words[i], strlen(words[i]) };
        while (shown < most && (unsigned char)words[foreign][shown] >= ' ')
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
