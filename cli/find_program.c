/*
 * Purpose: which file a command name stands for, and where the drop-in library is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include "find_program.h"

#define DROP_IN "libstook-malloc.so"

static int executable(const char *path)
{
        struct stat st;

        if (stat(path, &st))
                return -errno;
        return S_ISREG(st.st_mode) && !access(path, X_OK) ? 0 : -EACCES;
}

int find_program(const char *name, char path[PATH_MAX])
{
        const char *folders = getenv("PATH");
        int answer = -ENOENT;

        if (strchr(name, '/')) {
                if ((size_t)snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
                        return -ENAMETOOLONG;
                return executable(path);
        }
        if (!folders)
                folders = "/bin:/usr/bin";
        for (;;) {
                size_t length = strcspn(folders, ":");
                int    n = snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, folders,
                                    length ? "/" : "./", name);

                if (n > 0 && n < PATH_MAX) {
                        int found = executable(path);

                        if (!found)
                                return 0;
                        if (found == -EACCES)
                                answer = -EACCES;
                }
                if (!folders[length])
                        return answer;
                folders += length + 1;
        }
}

int find_drop_in(char path[PATH_MAX], char *message, size_t message_bytes)
{
        /* Beside the command; where it was installed; in an installation that was moved. */
        static const char *const places[] = { "%s/" DROP_IN,
#ifdef STOOK_LIBDIR
                                              STOOK_LIBDIR "/" DROP_IN,
#endif
#ifdef STOOK_LIBDIR_FROM_BINDIR
                                              "%s/" STOOK_LIBDIR_FROM_BINDIR "/" DROP_IN,
#endif
                                              "%s/../lib/" DROP_IN };
        char folder[PATH_MAX], candidate[2 * PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);

        folder[n < 0 ? 0 : n] = 0;
        /* Without /proc: as it was called. */
        if (n < 0 && realpath((const char *)getauxval(AT_EXECFN), folder))
                n = (ssize_t)strlen(folder);
        if (n < 0)
                n = 0;
        if (strrchr(folder, '/'))
                *strrchr(folder, '/') = 0;
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
                if (places[i][0] == '%') {
                        if (!n)
                                continue;
                        snprintf(candidate, sizeof candidate, "%s%s", folder, places[i] + 2);
                } else {
                        snprintf(candidate, sizeof candidate, "%s", places[i]);
                }
                if (!realpath(candidate, path))
                        continue;
                if (strpbrk(path, " :\t\n")) {
                        snprintf(message, message_bytes,
                                 "%s: LD_PRELOAD cannot name a file with a space or colon "
                                 "in its path",
                                 path);
                        return -EINVAL;
                }
                return 0;
        }
        snprintf(message, message_bytes,
                 "there is no %s beside the command (%s) or in its library folder", DROP_IN,
                 n ? folder : "which cannot be told without /proc");
        return -ENOENT;
}
