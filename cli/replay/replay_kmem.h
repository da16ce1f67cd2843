/*
 * Purpose: the kernel's slab events between the lines of text that they were (replay_kmem.c) and
 * the allocations and frees that they mean (replay_kmem_use.c).
 */
#ifndef STOOK_CLI_REPLAY_KMEM_H
#define STOOK_CLI_REPLAY_KMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cli/replay/replay_list.h"

#define KMEM_NAME_BYTES 64

enum kmem_kind { KMEM_OTHER, KMEM_CACHE_ALLOC, KMEM_KMALLOC, KMEM_FREE };

struct kmem_line {
        enum kmem_kind kind;
        uint32_t cpu, name;             /* name: of names, from 1; 0: none */
        uint64_t at_ns, address, wanted, bytes;
        uint64_t number;                /* of the line, from 1 */
};

struct kmem_lines {
        struct kmem_line *lines;        /* in any order */
        size_t   count, room;
        char   (*names)[KMEM_NAME_BYTES];
        size_t   name_count, name_room;
};

/*
 * Adds what the lines mean to the list, and sorts them. False: no memory, or too many caches or
 * CPUs, and *@line is the number of the line at which it was.
 */
bool replay_use_kmem(struct replay_list *list, struct kmem_lines *lines, uint64_t *line);

#endif
