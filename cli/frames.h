/*
 * Purpose: the frames of a call stack as lines of text, the library's own left out.
 *   FUNCTION FILE:LINE           FUNCTION FILE:LINE (inlined)
 *   FUNCTION in MODULE+0xN       0xADDRESS in MODULE+0xN        0xADDRESS
 */
#ifndef STOOK_CLI_FRAMES_H
#define STOOK_CLI_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "symbols.h"

#define FRAMES_MOST 64

struct frames {
        char    *lines;                 /* each with its newline; to be freed by frames_release */
        unsigned count;
};

/* Reads addresses in hexadecimal. Return: how many, at most FRAMES_MOST. */
size_t frames_read(char *line, uint64_t *addresses);

/* Return addresses, innermost first. Return: 0, or -ENOMEM. */
int  frames_of(struct symbols *symbols, const uint64_t *addresses, size_t count,
               struct frames *frames);
void frames_release(struct frames *frames);

/* Does the function of a line match @pattern, whose last character may be '*'? */
bool frames_have_function(const struct frames *frames, const char *pattern);

#endif
