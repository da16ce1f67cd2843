/*
 * Purpose: the frames of a call stack as lines of plain text (plain_text.h), the library's own left
 * out.
 *   FUNCTION FILE:LINE           FUNCTION FILE:LINE (inlined)
 *   FUNCTION in MODULE+0xN       0xADDRESS in MODULE+0xN        0xADDRESS
 */
#ifndef STOOK_CLI_FRAMES_H
#define STOOK_CLI_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "cli/symbols/symbols.h"

#define FRAMES_MOST 64

struct frames {
        char    *lines;                 /* each with its newline; to be freed by frames_release */
        unsigned count;
};

/*
 * Reads addresses in hexadecimal, also FILE+OFFSET, of a file that was closed: those are where
 * @symbols takes it to be. Return: how many, at most FRAMES_MOST.
 */
size_t frames_read(struct symbols *symbols, char *line, uint64_t *addresses);

/* Return addresses, innermost first. Return: 0, or -ENOMEM. */
int  frames_of(struct symbols *symbols, const uint64_t *addresses, size_t count,
               struct frames *frames);
void frames_release(struct frames *frames);

/* Whose a frame is. */
enum frames_owner {
        FRAMES_PROGRAM,
        FRAMES_INLINED,                 /* the program's, in a function of the library's headers;
                                         * the library is linked statically */
        FRAMES_NAMED,                   /* the library's, linked statically: by its name */
        FRAMES_LIBRARY,                 /* the library's, by its module */
};

struct frames_judgement {
        struct symbols   *symbols;
        uint64_t          at;           /* in the call's instruction */
        enum frames_owner owner;
        unsigned          count;        /* functions at the address */
        unsigned          headers;      /* so many, innermost ones, are of the library's headers */
};

/* Adds a function at @j->at, which symbols_find calls in this order. */
void frames_judge(struct frames_judgement *j, const struct symbol *symbol);

/* Return: the number of the program's first frame among @count; 0 if there is none. */
size_t frames_first(enum frames_owner (*owner_of)(size_t i, void *data), void *data, size_t count);

/* Does the function of a line match @pattern, whose last character may be '*'? */
bool frames_have_function(const struct frames *frames, const char *pattern);

#endif
