/*
 * Purpose: write a trace of the process (docs/TRACE.md): every allocation and every free of caches
 * that are watched for it, and of large objects of malloc.
 * Place: called by watch, with the object in hand; started by life. It calls os, and stack for the
 *  calls that allocate, where they are asked for; never the heap.
 *
 * Events go into buffers. A buffer is not a thread's own: each event takes one for itself, first
 * the one that the thread's record hashes to. So a handler on top of an event takes another one, a
 * thread that ends leaves nothing behind, and 64 buffers do for any number of threads. A full
 * buffer is a block of the trace, and is written out by the call that filled it.
 * Invariants:
 *  I1 a buffer has one writer: the call that set `busy`.
 *  I2 times in a buffer do not go back: the clock is read while the buffer is held.
 *  I3 an allocation is written down after it is made, a free before it is made.
 *  I4 the buffers lie in memory that a fork wipes. A child has empty ones; what was in them is the
 *     parent's, which writes it.
 * Concurrency: any thread, any instruction.
 * Failure: a file that takes no more ends the recording with one line, and the program goes on. An
 *  event that finds all buffers busy is counted, not written.
 */
#ifndef STOOK_RECORD_H
#define STOOK_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"

/* What a trace says of a cache. */
struct stook_record_cache {
        uint32_t    index;              /* STOOK_TRACE_LARGE: none */
        uint32_t    object_bytes, stride;
        uint64_t    born;               /* differs for caches of one index */
        const char *name;
};

/* Const after the start: is there a recording? */
extern bool stook_recording STOOK_HIDDEN;
/* The same: has it the stacks of allocations, from stook_stack_start on? */
extern bool stook_recording_stacks STOOK_HIDDEN;

/* Appends to the file @path from now on. False: it cannot; one line on stderr says why. */
bool stook_record_start(const char *path, bool stacks);
/* Writes out what buffers have. Nothing is recorded any more. */
void stook_record_end(void);

/* @bytes: as wanted. */
void stook_record_alloc(const struct stook_record_cache *cache, const void *object, size_t bytes);
void stook_record_free(const void *object, bool by_rcu);
/*
 * Around a resize of a large object. What it leaves behind may be another thread's before the
 * resize returns, so the buffer is held from the begin to the end. @or_null: what begin returned.
 */
struct stook_record_buffer;
struct stook_record_buffer *stook_record_resize_begin(void);
/* @to NULL: it failed. */
void stook_record_resize_end(struct stook_record_buffer *or_null, const void *from, const void *to,
                             size_t bytes);

#endif
