/*
 * Purpose: the functions of a heap profile's locations: those that the profile names itself; else
 * by the files that were mapped, if they are still the same (their build ids); else, where no file
 * was mapped, by the list that a JIT leaves in /tmp/perf-PID.map; else a file and an offset.
 */
#ifndef STOOK_CLI_PROFILE_NAMES_H
#define STOOK_CLI_PROFILE_NAMES_H

#include "cli/profile/pprof_read.h"
#include "cli/symbols/frames.h"

#define PROFILE_FRAMES_MOST 512         /* functions of a stack; outer ones are left out */

struct profile_function {
        char *name;                     /* plain text (plain_text.h) */
        char *file;                     /* NULL: not known; as the compiler was given it */
        int   line;
};

/* The functions at one location, the innermost first. */
struct profile_place {
        struct profile_function *functions;
        size_t count;                   /* 0: not looked up yet */
        size_t headers;                 /* so many, innermost ones, are of the library's headers */
        enum frames_owner owner;
        bool   is_named;                /* has more than an address */
};

struct profile_names {
        const struct pprof   *profile;
        struct symbols       *symbols[2];       /* what was mapped; closed files under others */
        struct profile_place *places;           /* of profile->locations */
        struct perf_map      *perf;
        const char           *changed;  /* a file that is another one now; NULL: none was met */
        bool                  no_memory;
};

/* @p stays the caller's. False: no memory. */
bool profile_names_open(struct profile_names *names, const struct pprof *p);
void profile_names_close(struct profile_names *names);

/* NULL: no such location. */
const struct profile_place *profile_names_at(struct profile_names *names, uint64_t location);
/*
 * The program's functions of a stack, the outermost first; those of the library are left out.
 * Return: how many.
 */
size_t profile_names_of(struct profile_names *names, const struct pprof_stack *stack,
                        const struct profile_function *functions[PROFILE_FRAMES_MOST]);

#endif
