/*
 * Purpose: see against.h. The library is tried: this command runs itself with it, and asks the
 * dynamic linker there which file malloc is from.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/program/against.h"
#include "cli/program/on_drop_in.h"
#include "cli/text/plain_text.h"

#define HIDDEN_COMMAND "malloc-from"

int cmd_malloc_from(int argc, char **argv)
{
        Dl_info info;
        void   *at = dlsym(RTLD_DEFAULT, "malloc");

        (void)argc, (void)argv;
        if (!at || !dladdr(at, &info) || !info.dli_fname)
                return 1;
        puts(info.dli_fname);
        return fflush(stdout) ? 1 : 0;
}

/* In the child: this command again, quietly, with a preload. */
static void ask(const char *preload, int answer)
{
        if (dup2(answer, STDOUT_FILENO) < 0 || setenv("LD_PRELOAD", preload, 1) ||
            !freopen("/dev/null", "w", stderr))
                _exit(1);
        execl("/proc/self/exe", "stook", HIDDEN_COMMAND, (char *)NULL);
        _exit(1);
}

/* The file that malloc is from in a program with this preload. False: it did not say. */
static bool malloc_from(const char *preload, char file[PATH_MAX])
{
        ssize_t n, length = 0;
        int     ends[2], status = 1;
        pid_t   child;

        if (pipe(ends))
                return false;
        child = fork();
        if (!child) {
                close(ends[0]);
                ask(preload, ends[1]);
        }
        close(ends[1]);
        while (child > 0 && length < PATH_MAX - 1 &&
               (n = read(ends[0], file + length, (size_t)(PATH_MAX - 1 - length))) != 0) {
                if (n > 0)
                        length += n;
                else if (errno != EINTR)
                        break;
        }
        close(ends[0]);
        while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
                ;
        file[length] = 0;
        file[strcspn(file, "\n")] = 0;
        return child > 0 && !status && *file;
}

static bool is_same_file(const char *a, const char *b)
{
        struct stat one, other;

        return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev &&
               one.st_ino == other.st_ino;
}

/* Whether @file is what @library names: by a path, or by a name that the dynamic linker found. */
static bool is_named_by(const char *library, const char *file)
{
        return strchr(library, '/') ? is_same_file(library, file)
                                    : !strcmp(name_of_program(file), library);
}

bool against_find(const char *library, struct against *against)
{
        const char *before = getenv("LD_PRELOAD");
        char path[PATH_MAX], file[PATH_MAX];
        bool is_path = strchr(library, '/');

        if (!*library) {
                fputs("stook run: --against takes a library, not ''\n", stderr);
                return false;
        }
        if (is_path && !realpath(library, path)) {
                say(stderr, "stook run: --against '%s': %s\n", library, strerror(errno));
                return false;
        }
        if (strpbrk(is_path ? path : library, " :\t\n")) {
                say(stderr, "stook run: --against '%s': LD_PRELOAD cannot name a file with a "
                    "space or colon in its path\n", library);
                return false;
        }
        against->name = name_of_program(library);
        if (asprintf(&against->preload, "%s%s%s", is_path ? path : library,
                     before && *before ? ":" : "", before ? before : "") < 0) {
                against->preload = NULL;
                fputs("stook: no memory\n", stderr);
                return false;
        }
        if (malloc_from(against->preload, file) && is_named_by(library, file))
                return true;
        say(stderr, "stook run: --against '%s': it cannot be preloaded, or has no malloc\n",
            library);
        free(against->preload);
        against->preload = NULL;
        return false;
}
