/*
 * Purpose: say beforehand whether the drop-in will reach a program: what the dynamic linker would do with
 * LD_PRELOAD is read from the program's file. Scripts are followed to their interpreter.
 */
#ifndef STOOK_CLI_ELF_CHECK_H
#define STOOK_CLI_ELF_CHECK_H

#include <limits.h>
#include <stdbool.h>

enum reach {
        REACH_YES,
        REACH_PARTLY,                   /* plain malloc calls reach the drop-in, others do not */
        REACH_NO,
        REACH_HARM,                     /* REACH_NO, and preloaded it would keep the program from starting */
        REACH_UNKNOWN,                  /* the file cannot be read, or is neither ELF nor script */
};

struct elf_check {
        enum reach reach;
        char       note[PATH_MAX + 400];        /* one sentence without its stop; empty: nothing to say */
};

void elf_check(const char *path, struct elf_check *check);

#endif
