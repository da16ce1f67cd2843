/*
 * Purpose: the call stacks of a trace by number. Equal ones of all blocks and processes are one. An
 * address within a file of code is told by the file, which has a place of its own, the same one for
 * all processes: wherever it was mapped, and whatever was mapped there before.
 */
#ifndef STOOK_CLI_TRACE_STACKS_H
#define STOOK_CLI_TRACE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number k lies from (k + 1) << TRACE_CODE_SHIFT on, which is above all addresses of a process. */
#define TRACE_CODE_SHIFT 48
#define TRACE_CODES_MOST 16384

struct trace_code {
        char    *path, *build;          /* build: its build id in hexadecimal; free()d */
        uint64_t bytes;
};

struct trace_stack {
        size_t   first;                 /* of trace_stacks.frames; innermost first */
        uint32_t count, hash;
};

struct trace_stacks {
        struct trace_code  *codes;
        struct trace_stack *stacks;
        uint64_t *frames;
        size_t    code_count, stack_count, frame_count;
        size_t    code_room, stack_room, frame_room;
        uint32_t *table;                /* numbers + 1; open addressing, at most half full */
        size_t    places;
};

/* The number of a file, which may be new; @path and @build are copied. UINT32_MAX: no room. */
uint32_t trace_stacks_code(struct trace_stacks *s, const char *path, const char *build,
                           uint64_t bytes);
/* The number of a stack, likewise. */
uint32_t trace_stacks_add(struct trace_stacks *s, const uint64_t *frames, uint32_t count);
void trace_stacks_release(struct trace_stacks *s);

#endif
