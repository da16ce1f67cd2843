/*
 * Purpose: the format of a trace: what a block looks like, and the numbers in it. docs/TRACE.md
 * explains it to readers of other languages.
 * Place: the library writes it (src/record), the command reads it (cli/trace/trace_read.c).
 *
 * A trace is a row of blocks, nothing else. A block has a header, and records of whole bytes. It
 * can be read by itself: numbers are differences to those before in the same block, and names and
 * stacks are given again in each block. So a damaged block takes nothing else with it.
 * Blocks of several processes, and of several buffers of a process, lie in the order in which they
 * were written. The blocks of one buffer are in the order of their times.
 * All numbers are little-endian. A `number` of a record is LEB128: seven bits a byte, lowest first,
 * the high bit set in all bytes but the last. A `difference` is a number whose lowest bit is the
 * sign: 0, -1, 1, -2, ... are 0, 1, 2, 3, ...
 */
#ifndef STOOK_TRACE_FORMAT_H
#define STOOK_TRACE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define STOOK_TRACE_MAGIC       UINT64_C(0x6372746b6f6f7473)    /* "stooktrc" */
#define STOOK_TRACE_VERSION     2       /* of blocks with stacks; of others 1, which lacks them */
#define STOOK_TRACE_BLOCK_BYTES ((size_t)64 << 10)              /* the largest; a multiple of 8 */

struct stook_trace_block {
        uint64_t magic;
        uint32_t version;
        uint32_t bytes;                 /* of the block, header included; a multiple of 8 */
        uint64_t checksum;              /* of the block, with 0 here */
        uint64_t image;                 /* a random number for a process, from its start or fork */
        uint32_t pid;
        uint32_t buffer;                /* of the process; its blocks are a stream */
        uint64_t sequence;              /* of the block in its stream: 0, 1, 2, ... */
        uint64_t at_ns;                 /* CLOCK_MONOTONIC: where the first difference starts */
        uint64_t missed;                /* events of the process so far that found no buffer */
};

/* The low three bits of a record's first byte; the others are flags. */
enum stook_trace_kind {
        /* No record: the rest of the block is zero. */
        STOOK_TRACE_END = 0,
        /* number: ns since the event before; difference: of addresses; number: cache; number: bytes
           wanted, 0: as many as the cache's objects have; with a stack, number: stack */
        STOOK_TRACE_ALLOC,
        /* number: ns; difference: of addresses */
        STOOK_TRACE_FREE,
        /* number: ns; difference: of the old address to the one before; difference: of the new one
           to the old one; number: bytes; with a stack, number: stack. Of a large object */
        STOOK_TRACE_RESIZE,
        /* number: thread; number: CPU. Of the events that follow in the block */
        STOOK_TRACE_THREAD,
        /* number: cache; number: bytes of its objects; number: bytes from one to the next;
           name: a number of bytes, and the bytes */
        STOOK_TRACE_CACHE,
        /* number: the parent's pid; number: ns since 1970 at the block's time; name of the
           program. The first record of each block */
        STOOK_TRACE_PROCESS,
        /* number: stack; number: frames, at most STOOK_TRACE_FRAMES_MOST; for each, innermost
           first, number: file of code, 0: none; difference: return address to the one before.
           A file of code (STOOK_TRACE_CODE) is instead: number: file, from 1 on; number: where its
           first byte is mapped; number: bytes from there to its end; build id and path, each a
           number of bytes and the bytes */
        STOOK_TRACE_STACK,
};
#define STOOK_TRACE_KIND   0x07
#define STOOK_TRACE_BY_RCU 0x08         /* FREE: the object waits for readers */
#define STOOK_TRACE_FORKED 0x08         /* PROCESS: it began by a fork, not by an exec */
#define STOOK_TRACE_STACKS 0x08         /* ALLOC, RESIZE: the call's stack is known */
#define STOOK_TRACE_CODE   0x08         /* STACK: a file, in which frames of stacks are */

/* A cache number that is none: objects of malloc above its largest class. */
#define STOOK_TRACE_LARGE 0
#define STOOK_TRACE_NAME_MAX 64         /* bytes of a name, at most */
#define STOOK_TRACE_FRAMES_MOST 64
#define STOOK_TRACE_CODES_MOST  1024    /* files of code of a process; their numbers are below */
#define STOOK_TRACE_PATH_MAX    4096    /* bytes of a path, or of a build id, at most */

/* Of whole 8 bytes, as they lie in memory. */
static inline uint64_t stook_trace_checksum(const uint64_t *words, size_t bytes)
{
        uint64_t sum = UINT64_C(0x9e3779b97f4a7c15);

        for (size_t i = 0; i < bytes / 8; i++) {
                sum = (sum ^ words[i]) * UINT64_C(0xd6e8feb86659fd93);
                sum ^= sum >> 32;
        }
        return sum;
}

_Static_assert(sizeof(struct stook_trace_block) == 64, "no holes");

#endif
