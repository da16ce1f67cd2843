/*
 * Purpose: call stacks with values, as a tree: what each function and the functions below it have.
 * It is drawn as a flame graph: an SVG picture without scripts, which shows by itself.
 */
#ifndef STOOK_CLI_FLAME_H
#define STOOK_CLI_FLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct flame {
        char    *name;
        uint64_t value;                 /* with all that is below */
        struct flame **children;
        size_t   count;
};

/* A stack's value goes to each of its functions. @names: the outermost first. False: no memory. */
bool flame_add(struct flame *root, const char *const *names, size_t count, uint64_t value);
/* Of the children, not of @root itself. */
void flame_release(struct flame *root);
/* @unit_is_bytes: values are shown as bytes, else as counts. */
void flame_draw(struct flame *root, const char *title, bool unit_is_bytes, FILE *out);

#endif
