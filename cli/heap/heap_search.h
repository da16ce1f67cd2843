/*
 * Purpose: which words of a program's memory lead to objects of its heap (heap.h, HEAP_SPANS). Any
 * word that could be an address within an object leads to it.
 */
#ifndef STOOK_CLI_HEAP_SEARCH_H
#define STOOK_CLI_HEAP_SEARCH_H

#include "cli/heap/heap.h"

/* Neighbouring words. */
struct heap_words {
        const uint64_t *word;
        size_t   count;
        uint64_t address;               /* of the first; 0: registers */
        uint32_t thread;                /* whose registers or stack; 0: neither */
        const struct memory_range *range;       /* NULL: registers, or an object */
};
typedef void heap_each_words(const struct heap_words *words, void *data);

/*
 * Calls @each for all that the program has outside of the heap: writable memory that is not the
 * library's, small read-only mappings of files (pointers that the loader protected), and what
 * threads have in registers, as far as the system tells. Of a stack only the part in use counts.
 * Return: 0; -errno.
 */
int heap_each_root(struct heap *heap, heap_each_words *each, void *data);
/* The same for [@start, @start + @bytes), what is not there left out. */
void heap_each_of(struct heap *heap, uint64_t start, uint64_t bytes, heap_each_words *each,
                  void *data);

/* Objects in use that no root leads to. */
struct heap_lost {
        uint64_t start, bytes;          /* bytes: requested, if that is known */
        uint64_t at_ms;                 /* when it was allocated; 0: not known */
        uint32_t stack;                 /* that allocated it; 0: not known */
        uint16_t cache;                 /* index; 0: a large object */
};
struct heap_leaks {
        struct heap_lost *lost;         /* by start; the caller's to free */
        size_t   count;
        uint64_t live;                  /* objects in use */
};
/* Objects of heaps of the program are never lost. Return: 0; -errno. */
int heap_find_leaks(struct heap *heap, struct heap_leaks *leaks);

#endif
