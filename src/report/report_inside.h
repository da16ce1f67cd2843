/*
 * Purpose: what the files of report ask of each other.
 */
#ifndef STOOK_REPORT_INSIDE_H
#define STOOK_REPORT_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include "report/report.h"
#include "report/text.h"

/* report.c: "double free". */
const char *stook_report_fault_words(enum stook_fault fault);

/*
 * report_tell.c: writes @line, @bytes with its newline, and what follows it. @found: the result of
 * a search, of which there may be many; the program is named only if more is known, too.
 */
void stook_report_tell(const struct stook_report_about *about, const char *line, size_t bytes,
                       bool found);

/* report_body.c: the indented lines but for stacks. */
void stook_report_put_program(struct stook_text *text);
void stook_report_put_object(struct stook_text *text, const struct stook_report_about *about);
void stook_report_put_dump(struct stook_text *text, const struct stook_report_about *about);

#endif
