/*
 * Purpose: the reasons why a preloaded library does not reach a program, in words; see elf_check.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "cli/files/elf_file.h"
#include "cli/files/find_program.h"
#include "cli/program/elf_check.h"

#define SCRIPT_DEPTH 5                  /* the kernel's limit of interpreters of interpreters */

#define LINE_MAX_BYTES (PATH_MAX + 4)

/* First line of a script: its interpreter, and in *@rest what is behind it, maybe ""; or NULL. */
static char *first_line(const char *path, char line[LINE_MAX_BYTES], char **rest)
{
        int  fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, line, LINE_MAX_BYTES - 1);
        char *word;

        if (fd >= 0)
                close(fd);
        if (n < 3 || memcmp(line, "#!", 2))
                return NULL;
        line[n] = 0;
        line[strcspn(line, "\n")] = 0;
        word = line + 2 + strspn(line + 2, " \t");
        *rest = word + strcspn(word, " \t");
        if (**rest)
                *(*rest)++ = 0;
        return word;
}

/* `#!/usr/bin/env NAME` is followed to NAME, which env looks up in PATH. */
static bool script_interpreter(const char *path, char interpreter[PATH_MAX])
{
        char line[LINE_MAX_BYTES], *rest, *base, *word = first_line(path, line, &rest);

        if (!word)
                return false;
        base = strrchr(word, '/');
        if (base && !strcmp(base, "/env")) {
                char *name = rest + strspn(rest, " \t");

                if (!strncmp(name, "-S", 2))
                        name += 2 + strspn(name + 2, " \t");
                name[strcspn(name, " \t")] = 0;
                if (*name && *name != '-' && !strchr(name, '=') && !find_program(name, interpreter))
                        return true;
        }
        return (size_t)snprintf(interpreter, PATH_MAX, "%s", word) < PATH_MAX && *word;
}

/* The kernel starts it in secure mode, in which LD_PRELOAD is ignored. NULL: no. */
static const char *privileged(const char *path)
{
        struct stat st;
        struct statvfs fs;

        if (stat(path, &st) || (!statvfs(path, &fs) && (fs.f_flag & ST_NOSUID)))
                return NULL;
        if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
                return "set-user-ID";
        if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid())
                return "set-group-ID";
        if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
                return "marked with file capabilities";
        return NULL;
}

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* A shared library is made for one C library; programs say theirs by their dynamic linker. */
static bool same_c_library(const struct elf_file *program)
{
        struct elf_file self;
        bool same = true;

        if (elf_file_open("/proc/self/exe", &self))
                return true;
        if (self.interpreter)
                same = !strcmp(base_name(self.interpreter), base_name(program->interpreter));
        elf_file_close(&self);
        return same;
}

static bool is_dynamic_linker(const struct elf_file *f)
{
        const char *soname = elf_file_soname(f);

        return soname && (!strncmp(soname, "ld-", 3) || !strncmp(soname, "ld.so", 5) ||
                          strstr(soname, "ld-musl"));
}

static const char *needed_allocator(const struct elf_file *f)
{
        static const char *const allocators[] = {
                "libjemalloc", "libtcmalloc", "libmimalloc", "libsnmalloc", "librpmalloc",
                "libhoard", "libtbbmalloc_proxy", "libclang_rt.scudo",
        };
        const char *library;

        for (unsigned i = 0; (library = elf_file_needed(f, i)); i++)
                for (size_t k = 0; k < sizeof allocators / sizeof allocators[0]; k++)
                        if (!strncmp(library, allocators[k], strlen(allocators[k])))
                                return library;
        return NULL;
}

/* ---- sanitizers ---- */

static const struct {
        const char *word, *name;
} sanitizers[] = {
        { "asan", "AddressSanitizer" }, { "tsan", "ThreadSanitizer" }, { "lsan", "LeakSanitizer" },
        { "hwasan", "HWAddressSanitizer" }, { "msan", "MemorySanitizer" },
        { "nsan", "NumericalStabilitySanitizer" }, { "memprof", "MemProf" },
};
#define SANITIZERS (sizeof sanitizers / sizeof sanitizers[0])

/* Which sanitizer's it is: libtsan.so.2 of gcc, libclang_rt.tsan-x86_64.so of clang; or NULL. */
static const char *sanitizer_library(const char *library)
{
        static const char clang[] = "libclang_rt.";
        const char *base = base_name(library);
        bool of_clang = !strncmp(base, clang, sizeof clang - 1);

        if (strncmp(base, "lib", 3))
                return NULL;
        base += of_clang ? sizeof clang - 1 : 3;
        for (size_t i = 0; i < SANITIZERS; i++) {
                size_t n = strlen(sanitizers[i].word);

                if (!strncmp(base, sanitizers[i].word, n) && base[n] &&
                    strchr(of_clang ? "-._" : ".", base[n]))
                        return sanitizers[i].name;
        }
        return NULL;
}

/* The one a program was built with, or NULL: by its library, or, linked in, by its start. */
static const char *sanitizer(const struct elf_file *f)
{
        const char *library, *name;
        char start[32];

        for (unsigned i = 0; (library = elf_file_needed(f, i)); i++)
                if ((name = sanitizer_library(library)))
                        return name;
        if (!elf_file_defines(f, "malloc"))
                return NULL;
        for (size_t i = 0; i < SANITIZERS; i++) {
                snprintf(start, sizeof start, "__%s_init", sanitizers[i].word);
                if (elf_file_contains(f, start))
                        return sanitizers[i].name;
        }
        return NULL;
}

/* One that LD_PRELOAD brings. */
static const char *preloaded_sanitizer(const char *preload)
{
        const char *name = NULL;
        char item[PATH_MAX];

        while (preload && *preload && !name) {
                size_t n = strcspn(preload, " :");

                if (n < sizeof item) {
                        memcpy(item, preload, n);
                        item[n] = 0;
                        name = sanitizer_library(item);
                }
                preload += n + (preload[n] != 0);
        }
        return name;
}

/* In words, behind "is". False: it is of this one. */
static bool of_other_machine(const struct elf_file *f, char *words, size_t bytes)
{
        char machine[64], own[64] = "another one";
        struct elf_file self;

        if (f->native)
                return false;
        if (!elf_file_open("/proc/self/exe", &self)) {
                elf_file_machine(&self, own, sizeof own);
                elf_file_close(&self);
        }
        snprintf(words, bytes, "a program for %s, Stook here is for %s",
                 elf_file_machine(f, machine, sizeof machine), own);
        return true;
}

static void judge(const char *path, const struct elf_file *f, const char *preload,
                  struct elf_check *check)
{
        const char *why, *library;
        char foreign[160];

        check->reach = REACH_NO;
        if (of_other_machine(f, foreign, sizeof foreign)) {
                snprintf(check->note, sizeof check->note,
                         "%s is %s: it runs on its own malloc", path, foreign);
        } else if ((why = privileged(path))) {
                snprintf(check->note, sizeof check->note,
                         "%s is %s, and such programs ignore LD_PRELOAD: "
                         "it runs on its own malloc",
                         path, why);
        } else if (!f->interpreter && !is_dynamic_linker(f)) {
                snprintf(check->note, sizeof check->note,
                         "%s is statically linked: it runs on its own malloc", path);
        } else if (f->interpreter && !same_c_library(f)) {
                check->reach = REACH_HARM;
                snprintf(check->note, sizeof check->note,
                         "%s uses another C library (%s) than Stook here: "
                         "it runs without the drop-in, on its own malloc",
                         path, f->interpreter);
        } else if ((why = sanitizer(f))) {
                check->reach = REACH_HARM;
                snprintf(check->note, sizeof check->note, "%s is built with %s, which needs a "
                         "malloc of its own: it runs without the drop-in, on that", path, why);
        } else if ((why = preloaded_sanitizer(preload))) {
                check->reach = REACH_HARM;
                snprintf(check->note, sizeof check->note, "LD_PRELOAD brings %s, which needs a "
                         "malloc of its own: %s runs without the drop-in, on that", why, path);
        } else if (elf_file_defines(f, "malloc")) {
                snprintf(check->note, sizeof check->note,
                         "%s brings its own malloc, which comes before any "
                         "library's: it runs on that",
                         path);
        } else if ((library = needed_allocator(f))) {
                check->reach = REACH_PARTLY;
                snprintf(check->note, sizeof check->note,
                         "%s is linked with %s: its malloc calls go to Stook, "
                         "calls by that library's own names do not",
                         path, library);
        } else {
                check->reach = REACH_YES;
        }
}

void elf_check(const char *path, const char *preload, struct elf_check *check)
{
        char current[PATH_MAX], next[PATH_MAX];
        struct elf_file file;

        check->reach = REACH_UNKNOWN;
        check->note[0] = 0;
        snprintf(current, sizeof current, "%s", path);
        for (unsigned depth = 0; depth <= SCRIPT_DEPTH; depth++) {
                int error = elf_file_open(current, &file);

                if (!error) {
                        judge(current, &file, preload, check);
                        elf_file_close(&file);
                        return;
                }
                if (error != -ENOEXEC && error != -EINVAL)
                        return;
                if (!script_interpreter(current, next))
                        return;
                memcpy(current, next, sizeof current);
        }
}

bool elf_check_excludes(const char *path, char *why, size_t bytes)
{
        struct elf_file f;
        bool out = true;

        if (elf_file_open(path, &f))
                return false;
        if (of_other_machine(&f, why, bytes))
                out = true;
        else if (!f.interpreter && !is_dynamic_linker(&f))
                snprintf(why, bytes, "statically linked, and not with it");
        else if (f.interpreter && !same_c_library(&f))
                snprintf(why, bytes, "a program of another C library (%.99s)", f.interpreter);
        else
                out = false;
        elf_file_close(&f);
        return out;
}

bool elf_check_interpreter(const char *path, char interpreter[PATH_MAX])
{
        char line[LINE_MAX_BYTES], *rest;
        const char *name = first_line(path, line, &rest);
        struct elf_file file = { 0 };

        if (!name && !elf_file_open(path, &file))
                name = file.interpreter;
        if (name)
                snprintf(interpreter, PATH_MAX, "%s", name);
        elf_file_close(&file);
        return name != NULL;
}
