/*
 * Purpose: what symbols.c and symbols_walk.c share.
 */
#ifndef STOOK_CLI_SYMBOLS_INSIDE_H
#define STOOK_CLI_SYMBOLS_INSIDE_H

#include "cli/symbols/symbols.h"

#ifdef STOOK_HAVE_DW

#include <elfutils/libdwfl.h>

struct symbols {
        Dwfl *dwfl;
};

#endif
#endif
