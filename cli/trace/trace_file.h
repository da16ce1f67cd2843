/*
 * Purpose: the blocks of a trace: where they lie, which stream and process each is of, and whether
 * they are whole. For trace_read.c.
 */
#ifndef STOOK_CLI_TRACE_FILE_H
#define STOOK_CLI_TRACE_FILE_H

#include <limits.h>
#include "cli/trace/trace_read.h"
#include "record/trace_format.h"

struct trace_block_at {
        uint64_t offset;                /* in the file */
        uint64_t at_ns;
        uint32_t bytes;
        uint32_t next;                  /* block of the stream; TRACE_NO_BLOCK: the last */
};
#define TRACE_NO_BLOCK UINT32_MAX

/* The blocks of one buffer of a process. */
struct trace_stream {
        uint32_t process, buffer;
        uint32_t first, last;           /* blocks */
        uint64_t sequence;              /* of the last block */
};

struct trace_file {
        int      fd;
        char     path[PATH_MAX];
        char    *message;               /* of so many bytes, for the first failure */
        size_t   message_bytes;
        uint64_t cut;                   /* bytes left out at the end */
        struct trace_damage damage;
        struct trace_block_at *blocks;
        size_t   block_count, block_room;
        struct trace_stream *streams;
        size_t   stream_count, stream_room;
        struct trace_process *processes;
        uint64_t *images;               /* of the processes */
        size_t   process_count, process_room;
};

/*
 * Reads and checks all of it, and leaves out what is damaged. False: file->message says why;
 * release it all the same.
 */
bool trace_file_open(struct trace_file *file, const char *path, char *message, size_t bytes);
void trace_file_release(struct trace_file *file);
/* A block, checked once more, into @words of STOOK_TRACE_BLOCK_BYTES. False: as above. */
bool trace_file_load(struct trace_file *file, uint32_t block, uint64_t *words);
/* Notes damage. @what: static text. */
void trace_file_leave_out(struct trace_file *file, uint64_t at, uint64_t bytes, const char *what);
/* Always false. */
bool trace_file_no_memory(struct trace_file *file);

/* ---- what a block is made of ---- */

struct trace_cursor {
        const unsigned char *at, *end;
};
/* False: it does not end within the block, or has more than 64 bits. */
bool trace_take_number(struct trace_cursor *c, uint64_t *number);
bool trace_take_difference(struct trace_cursor *c, uint64_t *from);
/* At most STOOK_TRACE_NAME_MAX bytes; what is not printable becomes '?'. */
bool trace_take_name(struct trace_cursor *c, char name[STOOK_TRACE_NAME_MAX + 1]);
/* A number of bytes, at most @most, and the bytes, which stay where they are. */
bool trace_take_bytes(struct trace_cursor *c, size_t most, const unsigned char **bytes, size_t *n);

#endif
