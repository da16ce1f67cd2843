/*
 * Purpose: all processes of this machine that use Stook, at one moment.
 */
#ifndef STOOK_CLI_FLEET_H
#define STOOK_CLI_FLEET_H

#include "cli/heap/heap.h"

/* Why a process was not looked at. */
enum fleet_reason {
        FLEET_NOT_PERMITTED,            /* another user's, or it hides its memory; ptrace_scope */
        FLEET_OTHER_VERSION,            /* of Stook */
        FLEET_GONE,                     /* it ended meanwhile, or its heap is damaged */
        FLEET_TOO_MANY,                 /* more than FLEET_MOST */
        FLEET_REASONS,
};
#define FLEET_MOST 1000                 /* processes; arbitrary */

struct fleet_process {
        struct memory   memory;
        struct library *libraries;      /* copies of the library, each with its heap */
        struct heap    *heaps;          /* HEAP_SLABS */
        size_t          count;          /* of heaps, at least 1 */
};

struct fleet {
        struct fleet_process *processes;        /* by number */
        size_t   count;
        unsigned refused[FLEET_REASONS];
};

/* False: no memory; what was found so far is there. Release it all the same. */
bool fleet_look(struct fleet *fleet);
void fleet_release(struct fleet *fleet);

const char *fleet_reason_key(enum fleet_reason reason);
const char *fleet_reason_text(enum fleet_reason reason);

#endif
