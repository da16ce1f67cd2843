/*
 * Purpose: another allocator to compare with: whether a library can be preloaded, and programs then
 * have its malloc. A preload that fails is passed over by the dynamic linker, and the C library's
 * malloc would be measured in its stead.
 */
#ifndef STOOK_CLI_AGAINST_H
#define STOOK_CLI_AGAINST_H

#include <stdbool.h>

struct against {
        const char *name;               /* the library's, without its folder */
        char       *preload;            /* LD_PRELOAD of its runs; free() it */
};

/* @library: a path, or a name that the dynamic linker finds. False: a line said why not. */
bool against_find(const char *library, struct against *against);

/* The hidden command by which against_find looks: prints the file that malloc is from. */
int cmd_malloc_from(int argc, char **argv);

#endif
