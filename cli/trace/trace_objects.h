/*
 * Purpose: which objects of a trace live: from a process and an address to the object's number, its
 * cache and its bytes. A number is the lowest that no living object has.
 */
#ifndef STOOK_CLI_TRACE_OBJECTS_H
#define STOOK_CLI_TRACE_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_object {
        uint64_t address, bytes, number;
        uint32_t process, cache;
        bool     used;                  /* this place of the table */
};

struct trace_objects {
        struct trace_object *table;     /* open addressing, linear; at most half full */
        size_t    places, count;
        uint64_t *free;                 /* a heap of numbers below `next`: the lowest first */
        size_t    frees, frees_room;
        uint64_t  next;                 /* the lowest number that was never given */
};

/* NULL: no such object lives. Valid until the next add or remove. */
struct trace_object *trace_objects_find(struct trace_objects *o, uint32_t process,
                                        uint64_t address);
/* None lives there. False: no memory. */
bool trace_objects_add(struct trace_objects *o, const struct trace_object *object,
                       uint64_t *number);
/* The same object, number and all, at another address, where none lives. */
void trace_objects_move(struct trace_objects *o, struct trace_object *object, uint64_t address);
/* False: no memory. */
bool trace_objects_remove(struct trace_objects *o, struct trace_object *object);
void trace_objects_release(struct trace_objects *o);

#endif
