/*
 * Purpose: what a run left, as text for people and as JSON.
 */
#ifndef STOOK_CLI_REPORT_H
#define STOOK_CLI_REPORT_H

#include <stdio.h>
#include "cli/program/run_program.h"
#include "cli/run/figures.h"
#include "cli/text/json.h"

/*
 * One table for each process if they are few; else a line for each of the biggest, and the table of
 * the biggest one.
 */
void report_print(const struct figures *figures, const struct run_result *root, const char *program,
                  FILE *out);

/*
 * Of group limits: what was refused, and a process that used far more than was counted.
 * @after_print: report_print came before; what its tables have is left out.
 */
void report_group(const struct figures *figures, bool after_print, FILE *out);

/* "run", "processes" and what belongs to them. */
void report_json(const struct figures *figures, const struct run_result *root, struct json *json);

#endif
