/*
 * Purpose: the buffers of a recording, and what each remembers of its block. For src/record alone.
 */
#ifndef STOOK_RECORD_BUFFER_H
#define STOOK_RECORD_BUFFER_H

#include <stook/layout.h>
#include "record/record.h"
#include "record/trace_format.h"
#include "stack/stack.h"

/* More than threads run at once on most machines; arbitrary beyond that. */
#define STOOK_RECORD_BUFFERS 64
/*
 * The most bytes that an event takes, with the records of its thread, cache and stack before it: a
 * stack of frames that are all in other files has 30 paths.
 */
#define STOOK_RECORD_EVENT_MAX ((size_t)9 << 10)
#define STOOK_RECORD_STACKS    512      /* a power of two; arbitrary */

struct stook_record_buffer {
        uint32_t busy;                  /* atomic: 1 while a call has the buffer (I1) */
        uint32_t bytes;                 /* of the block so far; 0: none is begun */
        uint64_t sequence;              /* blocks written */
        uint64_t begun_ns, at_ns, address; /* of the block; of the last event */
        uint64_t held_ns;               /* of a resize: from the event before to its begin */
        uint32_t held_stack;            /* of a resize */
        uint32_t thread, cpu;           /* of the last event; 0: the block has none yet */
        /* `thread` is right for this thread record, until further threads enrol. */
        const void *self;
        uint32_t enrolled;
        /* By index: born and sequence of the block that names the cache; anything else: none. */
        uint64_t named[STOOK_CACHES_MAX];
        /* Stacks: number and sequence of the block that gives it, by the number's low bits: what
           has to make room for another one is given again. Files: sequence of the block. */
        uint64_t stacks[STOOK_RECORD_STACKS];
        uint32_t codes[STOOK_STACK_MODULES];
        union {
                struct stook_trace_block head;
                unsigned char bytes_of[STOOK_TRACE_BLOCK_BYTES];
                uint64_t      words[STOOK_TRACE_BLOCK_BYTES / 8];
        } block;
} STOOK_ALIGNED(STOOK_CACHELINE);

/* False: no memory. */
bool stook_record_buffers_start(void);
/*
 * A buffer with room for an event and its thread named, at_ns set to now, *@ns to the time since
 * the event before. NULL: nothing is recorded, or all are busy.
 */
struct stook_record_buffer *stook_record_take(uint64_t *ns);
void stook_record_give(struct stook_record_buffer *b);
/* Writes out what all buffers have, as far as they are not busy for long. */
void stook_record_flush_all(void);

/* ---- what a block is made of ---- */

void stook_record_put_byte(struct stook_record_buffer *b, unsigned byte);
void stook_record_put_number(struct stook_record_buffer *b, uint64_t number);
void stook_record_put_difference(struct stook_record_buffer *b, uint64_t difference);
/* The difference of @address to the last one, which it becomes. */
void stook_record_put_address(struct stook_record_buffer *b, const void *address);
void stook_record_put_name(struct stook_record_buffer *b, const char *name);
void stook_record_put_bytes(struct stook_record_buffer *b, const void *bytes, size_t n);

#endif
