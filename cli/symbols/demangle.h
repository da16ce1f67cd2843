/*
 * Purpose: names of C++ and of Rust as people write them, from those for the linker.
 */
#ifndef STOOK_CLI_DEMANGLE_H
#define STOOK_CLI_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the name to @out, cut where @size ends. False: @name is none that is known; @out is as it
 * was. Names of C++, and Rust's older ones, need libstdc++ on this system.
 */
bool demangle(const char *name, char *out, size_t size);

#endif
