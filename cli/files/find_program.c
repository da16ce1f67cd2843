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
#include "cli/files/find_program.h"

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

/* The folder of this command; "": not to be told. */
static void own_folder(char folder[PATH_MAX])
{
        ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);

        folder[n < 0 ? 0 : n] = 0;
        /* Without /proc: as it was called. */
        if (n < 0 && !realpath((const char *)getauxval(AT_EXECFN), folder))
                folder[0] = 0;
        if (strrchr(folder, '/'))
                *strrchr(folder, '/') = 0;
}

/* The first of @places that is a file. "%s" in one is this command's folder. */
static bool find_in(const char *const *places, size_t count, const char *name, const char *folder,
                    char path[PATH_MAX])
{
        char candidate[2 * PATH_MAX];

        for (size_t i = 0; i < count; i++) {
                const char *place = places[i];

                if (place[0] == '%' && !folder[0])
                        continue;
                snprintf(candidate, sizeof candidate, "%s%s/%s", place[0] == '%' ? folder : "",
                         place[0] == '%' ? place + 2 : place, name);
                if (realpath(candidate, path))
                        return true;
        }
        return false;
}

int find_drop_in(char path[PATH_MAX], char *message, size_t message_bytes)
{
        /* Beside the command; where it was installed; in an installation that was moved. */
        static const char *const places[] = { "%s",
#ifdef STOOK_LIBDIR
                                              STOOK_LIBDIR,
#endif
#ifdef STOOK_LIBDIR_FROM_BINDIR
                                              "%s/" STOOK_LIBDIR_FROM_BINDIR,
#endif
                                              "%s/../lib" };
        char folder[PATH_MAX];

        own_folder(folder);
        if (!find_in(places, sizeof places / sizeof places[0], DROP_IN, folder, path)) {
                snprintf(message, message_bytes,
                         "there is no %s beside the command (%s) or in its library folder", DROP_IN,
                         folder[0] ? folder : "which cannot be told without /proc");
                return -ENOENT;
        }
        if (strpbrk(path, " :\t\n")) {
                snprintf(message, message_bytes,
                         "%s: LD_PRELOAD cannot name a file with a space or colon in its path",
                         path);
                return -EINVAL;
        }
        return 0;
}

bool find_helper(const char *name, char path[PATH_MAX], char *message, size_t message_bytes)
{
        static const char *const places[] = { "%s",
#ifdef STOOK_LIBEXECDIR
                                              STOOK_LIBEXECDIR "/stook",
#endif
                                              "%s/../libexec/stook" };
        char folder[PATH_MAX];

        own_folder(folder);
        if (find_in(places, sizeof places / sizeof places[0], name, folder, path) &&
            !executable(path))
                return true;
        snprintf(message, message_bytes,
                 "there is no %s beside the command (%s) or in the folder of its helpers", name,
                 folder[0] ? folder : "which cannot be told without /proc");
        return false;
}
