/*
 * Purpose: the measurements of repeated runs, side by side: the spread of each side, and ratios of
 * runs made in turn.
 * Runs go A B B A, so that what changes with time (clock speed, caches, other load) meets both
 * alike, and neither is always the later one. The spread of the ratio is taken pair by pair for the
 * same reason, and whether it can be chance goes by how many pairs fell to which side.
 */
#ifndef STOOK_CLI_COMPARE_H
#define STOOK_CLI_COMPARE_H

#include <stdbool.h>
#include <stdio.h>
#include "json.h"
#include "run_program.h"

struct spread {
        double min, median, max;
};

enum measure { MEASURE_WALL, MEASURE_CPU, MEASURE_PEAK, MEASURES };

struct side {
        const char *name;
        double     *runs[MEASURES];     /* [count] each */
        unsigned    count;
};

struct comparison {
        struct side stook, system;      /* system.count 0: repeated on Stook only */
        unsigned    room;
};

/* Room for @repeat runs of each side. Return: 0; -ENOMEM. */
int  comparison_init(struct comparison *comparison, unsigned repeat);
void comparison_add(struct side *side, const struct run_result *result);
void comparison_release(struct comparison *comparison);

struct spread spread_of(const double *values, unsigned count);
/*
 * Of stook / system: the medians' ratio, and least and largest ratio of a pair. False: no pairs, or
 * a zero.
 */
bool comparison_ratio(const struct comparison *comparison, enum measure measure,
                      struct spread *ratio);

/* How many pairs fell to which side, and how often chance is at least so one-sided (1: always). */
struct signs {
        unsigned pairs, less, more;     /* less: Stook took less; those of neither are equal */
        double   chance;
};
/* False: no pairs, or a zero. */
bool comparison_signs(const struct comparison *comparison, enum measure measure,
                      struct signs *signs);

/* The table, then a few sentences. @program: how to call what ran. */
void comparison_print(const struct comparison *comparison, const char *program, FILE *out);
void comparison_json(const struct comparison *comparison, struct json *json);

#endif
