/*
 * Purpose: caches whose slabs need more than slabs do: memory in whole runs (runs.c), destructors
 * (destruct.c).
 * Place: called by cache when it makes a cache; by slab by way of a table (stook_slabs_special).
 */
#ifndef STOOK_SPECIAL_H
#define STOOK_SPECIAL_H

#include <stdbool.h>
#include <stddef.h>
#include "base/compiler.h"
#include "base/pending_stack.h"
#include "slab/slab.h"

/* Bytes of a run: what a huge page is on x86-64, and on aarch64 with small pages. */
#define STOOK_RUN_BYTES ((size_t)2 << 20)

/* What the program does with the memory of one cache. Const but for `gone`. */
struct stook_slabs_memory {
        int    (*in)(void *start, size_t bytes, void *data);    /* NULL: it does nothing */
        void   (*out)(void *start, size_t bytes, void *data);   /* or NULL */
        void    *data;
        struct stook_pending_stack gone;        /* spans of a run that is leaving */
};

/* What is special in the slabs of a cache. Kept for the next cache of these slabs. */
struct stook_special {
        struct stook_slabs_special does;        /* what slab calls */
        bool   huge;                            /* runs ask for huge pages */
        struct stook_slabs_memory memory;
};

STOOK_INLINE struct stook_special *stook_special_of(const struct stook_slabs *slabs)
{
        return stook_container_of(slabs->special, struct stook_special, does);
}

/*
 * stook_slabs_init() of a cache that may have huge pages, or memory of the program's, or a
 * destructor (@args->dtor). @args->give_later is NULL where @memory->in is not.
 */
int stook_special_init(struct stook_slabs *slabs, struct stook_slabs_args *args, bool huge,
                       const struct stook_slabs_memory *memory);

/* ---- destruct.c ---- */

/* Runs the destructor for the objects of empty slabs that are not reserved. */
void stook_special_destruct_empty(struct stook_slabs *slabs);
/* Held: no destructor has to run before the slab, which is empty, is released. */
bool stook_special_may_go(struct stook_slab *slab);

#endif
