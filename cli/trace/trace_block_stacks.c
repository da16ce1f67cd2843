/*
 * Purpose: see trace_block_stacks.h.
 */
#include <stdio.h>
#include <string.h>
#include "cli/trace/trace_block_stacks.h"

#define BUILD_MOST 64                   /* bytes of a build id that are looked at */

int trace_block_take_code(struct trace_block_stacks *b, struct trace_stacks *all,
                          struct trace_cursor *c)
{
        uint64_t number, start, bytes;
        const unsigned char *build, *path;
        char name[STOOK_TRACE_PATH_MAX + 1], hex[2 * BUILD_MOST + 1] = "";
        size_t build_bytes, path_bytes;
        uint32_t code;

        if (!trace_take_number(c, &number) || !trace_take_number(c, &start) ||
            !trace_take_number(c, &bytes) ||
            !trace_take_bytes(c, STOOK_TRACE_PATH_MAX, &build, &build_bytes) ||
            !trace_take_bytes(c, STOOK_TRACE_PATH_MAX, &path, &path_bytes) || !number ||
            number >= STOOK_TRACE_CODES_MOST || !bytes ||
            bytes > UINT64_C(1) << TRACE_CODE_SHIFT || start + bytes < start)
                return 0;
        for (size_t i = 0; i < build_bytes && i < BUILD_MOST; i++)
                snprintf(hex + 2 * i, 3, "%02x", build[i]);
        memcpy(name, path, path_bytes);
        name[path_bytes] = '\0';
        code = trace_stacks_code(all, name, hex, bytes);
        if (code == UINT32_MAX)
                return -1;
        b->codes[number].start = start;
        b->codes[number].end = start + bytes;
        b->codes[number].code = code;
        return 1;
}

/* Return addresses may lie at the very end. */
static uint64_t place_of(const struct trace_block_stacks *b, uint64_t code, uint64_t address)
{
        if (!code || address <= b->codes[code].start || address > b->codes[code].end)
                return address & ((UINT64_C(1) << TRACE_CODE_SHIFT) - 1);
        return ((uint64_t)b->codes[code].code + 1) << TRACE_CODE_SHIFT |
               (address - b->codes[code].start);
}

/* Where it is, or would be put. */
static size_t find(const struct trace_block_stacks *b, uint32_t number)
{
        size_t i = number * UINT32_C(0x9e3779b1) % TRACE_BLOCK_PLACES;

        while (b->places[i].stack && b->places[i].number != number)
                i = (i + 1) % TRACE_BLOCK_PLACES;
        return i;
}

int trace_block_take_stack(struct trace_block_stacks *b, struct trace_stacks *all,
                           struct trace_cursor *c)
{
        uint64_t frames[STOOK_TRACE_FRAMES_MOST], number, count, code, address = 0;
        uint32_t stack;
        size_t i;

        if (!trace_take_number(c, &number) || number > UINT32_MAX ||
            !trace_take_number(c, &count) || !count || count > STOOK_TRACE_FRAMES_MOST)
                return 0;
        for (i = 0; i < count; i++) {
                if (!trace_take_number(c, &code) || code >= STOOK_TRACE_CODES_MOST ||
                    (code && !b->codes[code].end) || !trace_take_difference(c, &address))
                        return 0;
                frames[i] = place_of(b, code, address);
        }
        stack = trace_stacks_add(all, frames, (uint32_t)count);
        if (stack == UINT32_MAX)
                return -1;
        i = find(b, (uint32_t)number);
        b->places[i].number = (uint32_t)number;
        b->places[i].stack = stack + 1;
        return 1;
}

bool trace_block_stack(const struct trace_block_stacks *or_null, struct trace_cursor *c,
                       uint32_t *stack)
{
        uint64_t number;
        size_t i;

        if (!or_null || !trace_take_number(c, &number) || number > UINT32_MAX)
                return false;
        i = find(or_null, (uint32_t)number);
        *stack = or_null->places[i].stack - 1;
        return or_null->places[i].stack;
}
