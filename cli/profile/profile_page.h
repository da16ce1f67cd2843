/*
 * Purpose: a heap profile as one page of HTML, which needs nothing from elsewhere: a flame graph
 * that can be searched and zoomed, tables of stacks, lifetimes and suspects, and the caches of a
 * process.
 */
#ifndef STOOK_CLI_PROFILE_PAGE_H
#define STOOK_CLI_PROFILE_PAGE_H

#include "cli/heap/heap.h"
#include "cli/profile/profile_text.h"

/* @name: of the file or process. @heap: NULL: none is known. Return: 0; -errno. */
int profile_page(const struct profile_view *view, const char *name, const struct heap *heap,
                 FILE *out);

#endif
