/*
 * Purpose: what a run left, as text for people and as JSON.
 */
#ifndef STOOK_CLI_REPORT_H
#define STOOK_CLI_REPORT_H

#include <stdio.h>
#include "figures.h"
#include "json.h"
#include "run_program.h"

/* One table for each process if they are few; else a line for each of the biggest and the biggest one's table. */
void report_print(const struct figures *figures, const struct run_result *root, const char *program, FILE *out);

/* "run", "processes" and what belongs to them. */
void report_json(const struct figures *figures, const struct run_result *root, struct json *json);

#endif
