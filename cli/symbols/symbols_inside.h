/*
 * Purpose: what symbols.c and symbols_walk.c share.
 */
#ifndef STOOK_CLI_SYMBOLS_INSIDE_H
#define STOOK_CLI_SYMBOLS_INSIDE_H

#include "cli/symbols/symbols.h"

#ifdef STOOK_HAVE_DW

#include <elfutils/libdwfl.h>

#define SYMBOLS_FILES_MOST 1024

struct symbols {
        Dwfl *dwfl;
        char *files[SYMBOLS_FILES_MOST];        /* that were added; NULL: no more */
};

#endif
#endif
