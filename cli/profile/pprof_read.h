/*
 * Purpose: read a heap profile: a file in pprof's format (the message Profile of profile.proto), as
 * src/profile/profile_write.c writes it. Of other programs' profiles what is not needed is skipped.
 * Failure: one line that says why. No input makes the reader crash or hang.
 */
#ifndef STOOK_CLI_PPROF_READ_H
#define STOOK_CLI_PPROF_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PPROF_VALUES_MAX 8

struct pprof_sample {
        uint64_t values[PPROF_VALUES_MAX];
        size_t   first, count;          /* in pprof.stacks: locations, innermost first */
};

struct pprof_location {
        uint64_t id, address;
        uint64_t function;              /* a function's id; 0: none is named */
};

struct pprof_mapping {
        uint64_t start, end, offset;
        uint64_t file;                  /* a string */
};

struct pprof_function {
        uint64_t id, name;              /* a string */
};

struct pprof {
        struct pprof_sample *samples;
        size_t    sample_count;
        uint64_t *stacks;               /* ids of locations */
        size_t    stack_count;
        struct pprof_location *locations;       /* by id */
        size_t    location_count;
        struct pprof_mapping *mappings;
        size_t    mapping_count;
        struct pprof_function *functions;
        size_t    function_count;
        char    **strings;
        size_t    string_count;
        uint64_t  types[PPROF_VALUES_MAX], units[PPROF_VALUES_MAX];     /* strings, of the values */
        size_t    type_count;
        uint64_t  period;
};

/* False: @message, of @bytes, says why; release it all the same. */
bool pprof_read(struct pprof *p, const char *path, char *message, size_t bytes);
void pprof_release(struct pprof *p);
/* NULL: there is none. */
const char *pprof_string(const struct pprof *p, uint64_t string);
const struct pprof_location *pprof_location(const struct pprof *p, uint64_t id);
/* The function that the profile itself names. NULL: none. */
const char *pprof_function_name(const struct pprof *p, uint64_t id);
/* Where among the values; -1: nowhere. */
int pprof_type(const struct pprof *p, const char *name);

#endif
