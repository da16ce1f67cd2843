/*
 * Purpose: one object of a heap that was looked at closely (heap.h, HEAP_SPANS): where it begins,
 * whose it is, who allocated it.
 */
#ifndef STOOK_CLI_HEAP_OBJECT_H
#define STOOK_CLI_HEAP_OBJECT_H

#include "cli/heap/heap.h"
#include "report/report.h"

enum heap_object_state {
        HEAP_LIVE,                      /* the program has it */
        HEAP_CACHED,                    /* free, in a sheaf */
        HEAP_FREE,                      /* free, in its slab */
        HEAP_WAITING,                   /* of a debugged cache: freed by RCU, readers may see it */
        HEAP_QUARANTINED,               /* likewise: in the quarantine */
        HEAP_ISOLATED,                  /* likewise: found at fault, or in a call's hands */
        HEAP_DAMAGED,                   /* likewise: what should say its state, says nothing */
        HEAP_NEVER,                     /* never handed out: it only has a red zone */
};

struct heap_object {
        const struct heap_cache *cache; /* NULL: a large object of malloc */
        const struct heap_slab *slab;   /* NULL: likewise */
        const struct heap_sheaf *sheaf; /* HEAP_CACHED: that has it */
        uint64_t start, bytes;          /* bytes: that its user may have */
        uint64_t requested;             /* 0: not known */
        uint32_t index;                 /* in the slab */
        enum heap_object_state state;
        bool     of_heap;               /* of a heap of the program, with which it ends */
        /* Zeros: not known. `at_ms` is of CLOCK_MONOTONIC. */
        struct stook_report_track allocated, freed;
};

/* The object that @address lies in. False: it lies in none. */
bool heap_object_at(struct heap *heap, uint64_t address, struct heap_object *object);
const char *heap_object_state_text(enum heap_object_state state);

/*
 * Return addresses of the stack @number, innermost first, and how many of the root's modules were
 * known then. Return: how many addresses; 0: it has none.
 */
unsigned heap_stack(struct memory *memory, const struct stook_root *root, uint32_t number,
                    uint64_t frames[STOOK_STACK_FRAMES_MOST], uint32_t *modules);

#endif
