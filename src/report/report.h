/*
 * Purpose: report misuse on stderr: stable text, without an allocation, in one write; then abort,
 * or go on where STOOK_ON_FAULT=log or isolate says so.
 * Text:  stook: FAULT: pointer 0x... (cache NAME, slab 0x... offset N)[: detail]
 * Parts that are not known (NULL) are left out. FAULT is one of
 *        foreign pointer, pointer to no live object, interior pointer, wrong cache, double free,
 *        objects left, corrupted, endless wait, deadlock, overrun, underrun, write after free,
 *        wrong size, leak, allocation made to fail, mismatched free, use after free
 * Lines that are indented follow, as far as something is known (report_body.c).
 * Concurrency: any thread, any instruction; each report is one write.
 */
#ifndef STOOK_REPORT_H
#define STOOK_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stook/debug.h>
#include "base/compiler.h"

/* Any of cache_name, slab, detail may be NULL. Returns only where reports do not abort. */
STOOK_COLD void stook_report_fault(enum stook_fault fault, const void *object,
                                   const char *cache_name, const void *slab, size_t offset,
                                   const char *detail);

/* The same for results of a search (validation, objects left at destroy). Always returns. */
STOOK_COLD void stook_report_found(enum stook_fault fault, const void *object,
                                   const char *cache_name, const void *slab, size_t offset,
                                   const char *detail);

/* Where a thread allocated or freed an object. */
struct stook_report_track {
        uint32_t thread;                /* the system's number; 0: not known */
        uint32_t stack;                 /* of stook_stack_here (stack/stack.h); 0: not known */
        uint64_t at_ms;                 /* of stook_os_clock_ms */
};

/* All that may be known of a misuse. What is not known is 0 or NULL. */
struct stook_report_about {
        enum stook_fault fault;
        const void *object;             /* the pointer that was passed, or that is at fault */
        const char *cache_name, *heap_name;     /* one of them at most */
        const void *slab;
        size_t      offset;             /* of `object` in the slab */
        size_t      object_bytes;       /* of the cache or class */
        size_t      requested_bytes;    /* by the program, of this object */
        const char *detail;
        const struct stook_report_track *allocated, *freed;
        const struct stook_report_track *allocated_before, *freed_before; /* last life */
        const uint8_t *dump;            /* memory to be shown; it may be unmapped */
        size_t      dump_bytes;
        const uint8_t *bad;             /* the first byte that is not as expected */
        uint8_t     expected, found;
};

/* Reports it, then does as the policy says (stook_report_fault), or always returns. */
STOOK_COLD void stook_report_about(const struct stook_report_about *about);
STOOK_COLD void stook_report_about_found(const struct stook_report_about *about);
/* Reports what happens here, with this thread's stack. Always returns. */
STOOK_COLD void stook_report_event(const struct stook_report_about *about);

/* ---- report_stack.c, report_json.c ---- */
/* Where call stacks come from (stack/stack.h). Set once, when the first mode that wants them is. */
struct stook_report_stack_source {
        uint32_t (*here)(unsigned skip);
        unsigned (*frames)(uint32_t id, uintptr_t *frames, unsigned most);
        /* The file that lay at @address and was closed since, and where it began. NULL: none. */
        const char *(*closed)(uint32_t id, uintptr_t address, uintptr_t *start);
};
void stook_report_set_stacks(const struct stook_report_stack_source *source);
/* ---- report_stack.c: where the command is ---- */
#define STOOK_REPORT_PATH 512
/* At start. The program `stook`, which names the addresses of stacks. NULL: found; "": none. */
void stook_report_set_symbolizer(const char *or_null);
/* Its path, in STOOK_REPORT_PATH bytes. False: there is none. */
bool stook_report_symbolizer(char *path);
/*
 * At start. A file that gets each report as a line of JSON. NULL or "": none. If no line can be
 * added to it now, a line on stderr says why.
 */
void stook_report_set_json(const char *path);

/*
 * At start. A file of `stook run` and `stook record` in which processes note what their exit status
 * does not say; NULL: none. It has the magic number, and a byte for each note, 0 until then.
 */
void stook_report_set_notes(const char *path);
enum stook_note {
        STOOK_NOTE_FOUND,               /* misuse or leaks were reported */
        STOOK_NOTE_CUT,                 /* the file of a trace or a profile took not all of it */
        STOOK_NOTE_UNUSED,              /* a term of STOOK_FAIL meant nothing in the program */
        STOOK_NOTES
};
void stook_report_note(enum stook_note note);
#define STOOK_NOTES_MAGIC UINT64_C(0x7365746f6e6b7473)  /* "stknotes" */

/*
 * Reports of this process name another one: it is a copy of that one, made to look at its memory.
 */
void stook_report_speak_for(uint32_t pid, uint32_t thread);

/* Is it the size of a caller's structure, its field @field? If not, a line on stderr says so. */
bool stook_report_size_is(size_t said, size_t bytes, const char *field);

/* An invariant of ours does not hold: file-independent label, e.g. "slab I2". Always aborts. */
STOOK_COLD _Noreturn void stook_report_impossible(const char *label);

/*
 * For stook_rank_set_report (base/rank.h): this thread waits for @wanted and holds @held. Aborts.
 */
#if STOOK_LOCK_RANKS
STOOK_COLD _Noreturn void stook_report_rank(const char *held, const char *wanted);
#endif

#define stook_assert(cond, label) \
        do { if (STOOK_UNLIKELY(!(cond))) stook_report_impossible(label); } while (0)

/* STOOK_ON_FAULT: LOG goes on. ISOLATE goes on, and the object is never handed out again. */
enum stook_on_fault { STOOK_ON_FAULT_ABORT, STOOK_ON_FAULT_LOG, STOOK_ON_FAULT_ISOLATE };
extern uint32_t stook_report_policy STOOK_HIDDEN;        /* atomic, enum stook_on_fault */
void stook_report_set_policy(enum stook_on_fault policy);

/* After a report of misuse the process lives on. */
STOOK_INLINE bool stook_report_goes_on(void)
{
        return __atomic_load_n(&stook_report_policy, __ATOMIC_RELAXED) != STOOK_ON_FAULT_ABORT;
}

STOOK_INLINE bool stook_report_isolates(void)
{
        return __atomic_load_n(&stook_report_policy, __ATOMIC_RELAXED) == STOOK_ON_FAULT_ISOLATE;
}

uint64_t stook_report_count(void);

/*
 * Formats into @buffer without libc: %s %p %u (uint64_t) %x (uint64_t) %%; always terminated.
 * Returns bytes written.
 */
size_t stook_report_format(char *buffer, size_t bytes, const char *format, ...);

/* ---- text.c: text into a buffer, without libc or an allocation; what does not fit is cut ---- */
struct stook_text {
        char  *buffer;
        size_t bytes, room;             /* written; at most, without the 0 at the end */
};

void stook_text_put(struct stook_text *text, char c);
void stook_text_words(struct stook_text *text, const char *words);
bool stook_text_is_plain(char c);       /* printable ASCII */
/* Names come from programs and files: what is not printable becomes '?'. */
void stook_text_plain(struct stook_text *text, const char *words);
void stook_text_number(struct stook_text *text, uint64_t n, unsigned base);
void stook_text_pointer(struct stook_text *text, const void *pointer);
/* Reads a hexadecimal number. Returns what follows it. */
const char *stook_text_read(const char *text, uintptr_t *number);
/* Two hexadecimal digits. */
void stook_text_byte(struct stook_text *text, uint8_t byte);

/*
 * report_stack.c: a frame of the stack @id as the helper takes it, and a blank: its address in
 * hexadecimal, or FILE+OFFSET of a file that was closed since. Where less than so much room is left
 * it is an address all the same: those of a report's stacks need less.
 */
#define STOOK_REPORT_FRAME_ROOM 3072
void stook_report_put_frame(struct stook_text *text, uint32_t id, uintptr_t address);
/* A line for each frame of a call stack, "    #0 0x... in MODULE+0x...". */
void stook_report_put_addresses(struct stook_text *text, uint32_t id, const uintptr_t *frames,
                                unsigned count);

#endif
