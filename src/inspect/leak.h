/*
 * Purpose: what the files of the search for leaks share.
 */
#ifndef STOOK_LEAK_H
#define STOOK_LEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stook_cache;
struct stook_debug_tail;

/* A live object of malloc's that is a span of its own. */
struct stook_leak_large {
        uintptr_t start, bytes;
        uint32_t  stack;                /* that allocated it; 0: not known */
        bool      reached, scanned;
};

/* A search, in the child that has this memory to itself. */
struct stook_leak {
        uintptr_t stack;                /* this thread's, from here up */
        char     *piece;                /* memory that the kernel copied, to be searched */
        void     *work;                 /* objects that were reached and not yet searched */
        struct stook_leak_large *large; /* by address */
        size_t    larges;
};

/* ---- leak_mark.c: all that the program can reach is marked ---- */

/* Marks. False: no memory, or the system does not let memory be read. */
bool stook_leak_mark(struct stook_leak *leak);
/* A live object that was not marked, of a cache that keeps tracks. */
bool stook_leak_is_lost(const struct stook_cache *cache, const void *object);
struct stook_debug_tail *stook_leak_tail(const struct stook_cache *cache, const void *object);

/* ---- leak_tell.c: groups of lost objects ---- */

struct stook_leak_group {
        uint32_t stack;
        uint32_t used;
        uint64_t objects, bytes;
};
#define STOOK_LEAK_GROUPS 4096          /* more are counted with those that have no stack */

struct stook_leaks {
        struct stook_leak_group *groups;        /* a hash table, then sorted */
        size_t   count;
        uint64_t live, objects, bytes;          /* all live objects; lost ones */
};

bool stook_leaks_start(struct stook_leaks *leaks);
void stook_leaks_add(struct stook_leaks *leaks, uint32_t stack, size_t bytes);
/* Writes what was found in the process @pid. Returns objects that no suppression left out. */
uint64_t stook_leaks_tell(struct stook_leaks *leaks, uint32_t pid);

/* ---- leak.c ---- */
const char *stook_leak_suppressions(void);      /* FUNCTION[,...]; NULL: none */

#endif
