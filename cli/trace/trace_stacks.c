/*
 * Purpose: see trace_stacks.h.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/trace/trace_stacks.h"

#define PLACES_FIRST 1024               /* a power of two */

/* Room for @more items. False: no memory. */
static bool room_for(void *array, size_t count, size_t more, size_t *room, size_t bytes)
{
        size_t wanted = *room ? *room : 64;
        void *grown;

        if (count + more <= *room)
                return true;
        while (wanted < count + more)
                wanted *= 2;
        grown = realloc(*(void **)array, wanted * bytes);
        if (!grown)
                return false;
        *(void **)array = grown;
        *room = wanted;
        return true;
}

uint32_t trace_stacks_code(struct trace_stacks *s, const char *path, const char *build,
                           uint64_t bytes)
{
        struct trace_code *code;

        for (size_t i = 0; i < s->code_count; i++)
                if (s->codes[i].bytes == bytes && !strcmp(s->codes[i].path, path) &&
                    !strcmp(s->codes[i].build, build))
                        return (uint32_t)i;
        if (s->code_count == TRACE_CODES_MOST ||
            !room_for(&s->codes, s->code_count, 1, &s->code_room, sizeof *s->codes))
                return UINT32_MAX;
        code = &s->codes[s->code_count];
        *code = (struct trace_code){ strdup(path), strdup(build), bytes };
        s->code_count++;
        return code->path && code->build ? (uint32_t)s->code_count - 1 : UINT32_MAX;
}

static uint32_t hash_of(const uint64_t *frames, uint32_t count)
{
        uint64_t hash = count;

        for (uint32_t i = 0; i < count; i++)
                hash = (hash ^ frames[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
        return (uint32_t)(hash >> 32);
}

static void put(struct trace_stacks *s, uint32_t stack)
{
        size_t i = s->stacks[stack].hash & (s->places - 1);

        while (s->table[i])
                i = (i + 1) & (s->places - 1);
        s->table[i] = stack + 1;
}

static bool grow(struct trace_stacks *s)
{
        size_t places = s->places ? 2 * s->places : PLACES_FIRST;
        uint32_t *table = calloc(places, sizeof *table);

        if (!table)
                return false;
        free(s->table);
        s->table = table;
        s->places = places;
        for (size_t i = 0; i < s->stack_count; i++)
                put(s, (uint32_t)i);
        return true;
}

uint32_t trace_stacks_add(struct trace_stacks *s, const uint64_t *frames, uint32_t count)
{
        uint32_t hash = hash_of(frames, count);

        if (2 * (s->stack_count + 1) > s->places && !grow(s))
                return UINT32_MAX;
        for (size_t i = hash & (s->places - 1); s->table[i]; i = (i + 1) & (s->places - 1)) {
                const struct trace_stack *stack = &s->stacks[s->table[i] - 1];

                if (stack->hash == hash && stack->count == count &&
                    !memcmp(s->frames + stack->first, frames, count * sizeof *frames))
                        return s->table[i] - 1;
        }
        if (s->stack_count == UINT32_MAX - 1 ||
            !room_for(&s->stacks, s->stack_count, 1, &s->stack_room, sizeof *s->stacks) ||
            !room_for(&s->frames, s->frame_count, count, &s->frame_room, sizeof *s->frames))
                return UINT32_MAX;
        s->stacks[s->stack_count] = (struct trace_stack){ s->frame_count, count, hash };
        memcpy(s->frames + s->frame_count, frames, count * sizeof *frames);
        s->frame_count += count;
        put(s, (uint32_t)s->stack_count);
        return (uint32_t)s->stack_count++;
}

void trace_stacks_release(struct trace_stacks *s)
{
        for (size_t i = 0; i < s->code_count; i++) {
                free(s->codes[i].path);
                free(s->codes[i].build);
        }
        free(s->codes);
        free(s->stacks);
        free(s->frames);
        free(s->table);
        memset(s, 0, sizeof *s);
}
