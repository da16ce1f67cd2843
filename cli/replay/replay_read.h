/*
 * Purpose: the readers of replay_list_read, one for each input.
 * Failure: false, and one line in @message that names the file and the position in it. No input
 * makes them crash or hang.
 */
#ifndef STOOK_CLI_REPLAY_READ_H
#define STOOK_CLI_REPLAY_READ_H

#include <stdio.h>
#include "cli/replay/replay_list.h"

/* The kernel's kmem_cache_alloc, kmem_cache_free, kmalloc and kfree as text: replay_kmem.c. */
bool replay_read_kmem(struct replay_list *list, FILE *in, const char *path, char *message,
                      size_t bytes);
/* A trace of `stook record` (trace_read.h). */
bool replay_read_trace(struct replay_list *list, const char *path, char *message, size_t bytes);

#endif
