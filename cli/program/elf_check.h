/*
 * Purpose: say beforehand whether the drop-in will reach a program. The program's file says what
 * the dynamic linker would do with LD_PRELOAD. Scripts are followed to their interpreter. A
 * sanitizer must have malloc for itself. Behind the drop-in, those in libraries of their own refuse
 * to start (ASan), crash (TSan) or see nothing (LSan).
 */
#ifndef STOOK_CLI_ELF_CHECK_H
#define STOOK_CLI_ELF_CHECK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum reach {
        REACH_YES,
        REACH_PARTLY,                   /* plain malloc calls reach the drop-in, others do not */
        REACH_NO,
        REACH_HARM,                     /* REACH_NO, and the program must run without it */
        REACH_UNKNOWN,                  /* the file cannot be read, or is neither ELF nor script */
};

struct elf_check {
        enum reach reach;
        char       note[PATH_MAX + 400];        /* one sentence without its stop, or "" */
};

/* @preload: LD_PRELOAD as it is now, or NULL. */
void elf_check(const char *path, const char *preload, struct elf_check *check);

/*
 * Why a process of the program at @path cannot have the drop-in, in plain text behind "it is".
 * False: it could, or the file cannot be read.
 */
bool elf_check_excludes(const char *path, char *why, size_t bytes);

/*
 * What the kernel starts first for it: named in a script's first line, or a program's dynamic
 * linker. Unprintable bytes become question marks. False: nothing.
 */
bool elf_check_interpreter(const char *path, char interpreter[PATH_MAX]);

#endif
