/*
 * Purpose: a heap profile in memory, and its reader: a file in pprof's format (the message Profile
 * of profile.proto), as src/profile/profile_write.c writes it, with Stook's own fields
 * (src/profile/profile_file.h). Of other programs' profiles what is not needed is skipped.
 * Failure: one line that says why. No input makes the reader crash or hang.
 */
#ifndef STOOK_CLI_PPROF_READ_H
#define STOOK_CLI_PPROF_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "profile/profile_file.h"

#define PPROF_VALUES_MAX 8

/* A call stack: so many, from there on, in pprof.stacks; innermost first. */
struct pprof_stack {
        size_t first, count;
};

struct pprof_sample {
        int64_t  values[PPROF_VALUES_MAX];
        struct pprof_stack stack;
        uint64_t life_ns;               /* 0: none; written as a label */
        bool     has_more;
        struct stook_profile_file_sample more;
};

struct pprof_pair {
        struct pprof_stack born, died;
        struct stook_profile_file_pair values;
};

struct pprof_location {
        uint64_t id, address;
        uint64_t mapping;               /* a mapping's id; 0: not said */
        size_t   first, count;          /* in pprof.lines, innermost first; 0: it has no names */
        uint32_t owner, headers;        /* struct profile_place's, of a file that has names */
};

struct pprof_line {
        uint64_t function, line;        /* function: an id */
};

struct pprof_mapping {
        uint64_t id, start, end, offset;
        uint64_t file, build;           /* strings */
};

struct pprof_function {
        uint64_t id, name, file;        /* strings */
};

struct pprof {
        struct pprof_sample *samples;
        size_t    sample_count;
        struct pprof_pair *pairs;
        size_t    pair_count;
        uint64_t *stacks;               /* ids of locations */
        size_t    stack_count;
        struct pprof_location *locations;       /* by id, once pprof_sort was called */
        size_t    location_count;
        struct pprof_line *lines;
        size_t    line_count;
        struct pprof_mapping *mappings;
        size_t    mapping_count;
        struct pprof_function *functions;       /* by id, likewise */
        size_t    function_count;
        char    **strings;
        size_t    string_count;
        uint64_t  types[PPROF_VALUES_MAX], units[PPROF_VALUES_MAX];     /* strings, of the values */
        size_t    type_count;
        uint64_t  period, time_ns, duration_ns;
        bool      has_session;
        struct stook_profile_file_session session;
};

/* False: @message, of @bytes, says why; release it all the same. */
bool pprof_read(struct pprof *p, const char *path, char *message, size_t bytes);
void pprof_release(struct pprof *p);
/* NULL: there is none. */
const char *pprof_string(const struct pprof *p, uint64_t string);
const struct pprof_location *pprof_location(const struct pprof *p, uint64_t id);
const struct pprof_function *pprof_function(const struct pprof *p, uint64_t id);
/* Where it lies; NULL: in no mapping. */
const struct pprof_mapping *pprof_mapping(const struct pprof *p, const struct pprof_location *at);
/* Where among the values; -1: nowhere. */
int pprof_type(const struct pprof *p, const char *name);
/* The kind of the values of a type: an enum stook_profile_kind; -1: none of ours. */
int pprof_kind(const struct pprof *p, int type);
bool pprof_is_bytes(const struct pprof *p, int type);

/* ---- to make one ---- */
/* Zeroed items at the end. NULL: no memory. */
struct pprof_sample *pprof_add_sample(struct pprof *p);
struct pprof_pair *pprof_add_pair(struct pprof *p);
struct pprof_mapping *pprof_add_mapping(struct pprof *p);
struct pprof_location *pprof_add_location(struct pprof *p);
struct pprof_function *pprof_add_function(struct pprof *p);
struct pprof_line *pprof_add_line(struct pprof *p);
/* Behind the stack that was added to last. */
bool pprof_add_to_stack(struct pprof *p, struct pprof_stack *stack, uint64_t location);
/* Its number; 0, which is the empty string's: no memory, or empty. */
uint64_t pprof_add_string(struct pprof *p, const char *text);
/* Types as STOOK_PROFILE_FILE_TYPES has them. */
bool pprof_add_types(struct pprof *p);
void pprof_sort(struct pprof *p);

#endif
