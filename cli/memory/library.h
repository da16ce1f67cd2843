/*
 * Purpose: the copies of the library in a process: libstook-malloc.so, libstook.so, a static
 * program. Each has a heap of its own, which begins at its root (life/root.h).
 */
#ifndef STOOK_CLI_LIBRARY_H
#define STOOK_CLI_LIBRARY_H

#include "cli/memory/memory.h"
#include "life/root.h"

struct library {
        uint64_t address;               /* of the root */
        const struct memory_image *image; /* its file; as long as the memory is open */
        struct stook_root root;         /* a copy; valid if readable */
        bool     readable;              /* of this command's version and layout */
        char     refusal[160];          /* why not */
};

#define LIBRARIES_MAX 16

/* Finds the copies. Return: how many, 0 too. */
unsigned libraries_find(struct memory *memory, struct library libraries[LIBRARIES_MAX]);
/* Reads the root again, and checks it. Return: 0, or -errno; readable says the rest. */
int library_read(struct memory *memory, struct library *library);

#endif
