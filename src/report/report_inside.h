/*
 * Purpose: what the files of report ask of each other.
 */
#ifndef STOOK_REPORT_INSIDE_H
#define STOOK_REPORT_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include "process/process.h"
#include "report/report.h"

/* report.c: "double free". */
const char *stook_report_fault_words(enum stook_fault fault);

/*
 * report_tell.c: writes @line, @bytes with its newline, and what follows it. @found: the result of
 * a search, of which there may be many; the program is named only if more is known, too.
 */
void stook_report_tell(const struct stook_report_about *about, const char *line, size_t bytes,
                       bool found);

/* report_tell.c: may one more report be written? *@left: so many were not, since the last one. */
bool stook_report_may_tell(uint64_t *left);
/* The line that says so. Returns its bytes, with the newline. */
size_t stook_report_put_left_out(char *line, size_t room, uint64_t left);

/* report_body.c: the process and the thread that a report names. */
uint32_t stook_report_pid(void);
uint32_t stook_report_thread(void);
/* The indented lines but for stacks. */
void stook_report_put_program(struct stook_text *text);
void stook_report_put_object(struct stook_text *text, const struct stook_report_about *about);
void stook_report_put_dump(struct stook_text *text, const struct stook_report_about *about);

/* ---- report_stack.c ---- */
enum {
        STOOK_REPORT_HERE, STOOK_REPORT_ALLOCATED, STOOK_REPORT_FREED,
        STOOK_REPORT_ALLOCATED_BEFORE, STOOK_REPORT_FREED_BEFORE, STOOK_REPORT_STACKS
};
#define STOOK_REPORT_FRAMES 30          /* as STOOK_STACK_FRAMES_USUAL */
#define STOOK_REPORT_STACK  32768       /* bytes that are copied; outer calls are not. Arbitrary */

/* The stacks of a report, and the lines that name their frames. */
struct stook_report_stacks {
        unsigned  count[STOOK_REPORT_STACKS];
        uint32_t  id[STOOK_REPORT_STACKS];      /* 0: not of the stack layer */
        uintptr_t frames[STOOK_REPORT_STACKS][STOOK_REPORT_FRAMES];
        char      stack[STOOK_REPORT_STACK];
        char      request[STOOK_REPORT_STACK +
                          STOOK_REPORT_STACKS * (STOOK_REPORT_FRAMES * 17 + 1) + 8192];
        char      lines[8192];          /* a line for each frame; an empty one behind each stack */
        struct stook_helper helper;
};

/* None. */
void stook_report_clear_stacks(struct stook_report_stacks *stacks);
/* Those of @about and of this call, after a clear. */
void stook_report_find_stacks(const struct stook_report_about *about,
                              struct stook_report_stacks *stacks);
/* The first line of a stack; the last one is before "\n", or the end. */
const char *stook_report_stack_lines(const struct stook_report_stacks *stacks, unsigned which);
const char *stook_report_next_line(const char *line);

/* ---- report_json.c ---- */
/* Is there a file for such lines? */
bool stook_report_wants_json(void);
/* Adds a line to it. @text: room to make it in, empty. */
void stook_report_tell_json(struct stook_text *text, const struct stook_report_about *about,
                            const char *line, size_t bytes,
                            const struct stook_report_stacks *stacks);

#endif
