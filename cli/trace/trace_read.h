/*
 * Purpose: read a trace (docs/TRACE.md, record/trace_format.h): all its events in the order of
 * their times, whichever process and buffer wrote them, with a small number for each object.
 *
 *      struct trace *trace = trace_open(path, message, sizeof message);
 *      struct trace_event event;
 *      int got;
 *
 *      if (!trace)
 *              say(message);                           // one line, without its newline
 *      while ((got = trace_next(trace, &event)) > 0)
 *              use(&event);
 *      if (got < 0)
 *              say(trace_message(trace));
 *      trace_close(trace);
 *
 * trace_open reads the whole file and checks each block. What is damaged is left out, up to the
 * next whole block, and trace_damage says so. What a killed program left, or a full disk, is no
 * damage: the last block may end early. It is left out, and trace_is_cut says so.
 * Failure: one line. No input makes the reader crash or hang.
 */
#ifndef STOOK_CLI_TRACE_READ_H
#define STOOK_CLI_TRACE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trace_kind { TRACE_ALLOC, TRACE_FREE, TRACE_RESIZE };

/* A free of what was allocated before the trace, before a fork, or in a lost block. */
#define TRACE_NO_OBJECT UINT64_MAX
/* A cache that is none: of such a free, too. */
#define TRACE_NO_CACHE  UINT32_MAX
/* It is not known. */
#define TRACE_NO_STACK  UINT32_MAX

struct trace_event {
        enum trace_kind kind;
        uint64_t at_ns;                 /* since the first event of the trace */
        /* ALLOC, FREE, RESIZE: the lowest number that no living object of the trace had. It is of
           all processes: two objects that live at once never share one. A RESIZE keeps it. */
        uint64_t object;
        uint64_t bytes;                 /* ALLOC, RESIZE: as wanted; FREE: as it had */
        uint32_t cache;                 /* trace_cache() */
        uint32_t process;               /* trace_process() */
        uint32_t thread, cpu;           /* the kernel's numbers */
        uint32_t stack;                 /* ALLOC, RESIZE: in trace_stacks(), of the call */
        bool     by_rcu;                /* FREE: the object waited for readers */
        /* FREE: the trace has none. The address was handed out again, so there was one. */
        bool     implied;
};

struct trace_cache {
        char     name[65];              /* printable; "large" for large objects of malloc */
        uint64_t object_bytes;          /* 0: of large objects */
        uint64_t stride;                /* bytes from one object to the next */
};

struct trace_process {
        char     program[65];           /* printable */
        uint32_t pid, parent;
        bool     forked;                /* it began by a fork; else by an exec */
        uint64_t began_ns;              /* since 1970 */
        uint64_t missed;                /* events that found no buffer */
        uint64_t blocks;
};

struct trace;
struct trace_stacks;

/* NULL: @message, of @bytes, says why in one line. */
struct trace *trace_open(const char *path, char *message, size_t bytes);
void trace_close(struct trace *trace);

/* Return: 1: *@event; 0: the end; -1: trace_message says why. */
int trace_next(struct trace *trace, struct trace_event *event);
const char *trace_message(const struct trace *trace);

/* What of the file makes no sense, and was left out. */
struct trace_damage {
        uint64_t    bytes;              /* 0: nothing */
        uint64_t    at;                 /* where in the file the first of it is */
        const char *what;               /* is wrong there; static text */
};
/* Complete once trace_next has given all events. */
const struct trace_damage *trace_damage(const struct trace *trace);
/* The last block ends early: how many bytes were left out. 0: it does not. */
uint64_t trace_is_cut(const struct trace *trace);
size_t trace_process_count(const struct trace *trace);
const struct trace_process *trace_process(const struct trace *trace, uint32_t process);
/* Caches that events so far have named; a number stays valid. */
size_t trace_cache_count(const struct trace *trace);
const struct trace_cache *trace_cache(const struct trace *trace, uint32_t cache);
/* Call stacks that events so far have; a number stays valid. */
const struct trace_stacks *trace_stacks(const struct trace *trace);

#endif
