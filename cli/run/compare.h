/*
 * Purpose: the measurements of repeated runs, side by side: the spread of each side, and ratios of
 * runs made in turn.
 * Runs go A B B A, so that what changes with time (clock speed, caches, other load) meets both
 * alike, and neither is always the later one. The spread of the ratio is taken pair by pair for the
 * same reason. A difference is told only if there are six pairs or more, and the 95 % interval of
 * the median ratio does not contain 1. The interval is the one of order statistics, so this is the
 * sign test. bench/measure/interval.py has the same rule.
 */
#ifndef STOOK_CLI_COMPARE_H
#define STOOK_CLI_COMPARE_H

#include <stdbool.h>
#include <stdio.h>
#include "cli/program/run_program.h"
#include "cli/text/json.h"

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
        struct side stook, rival;       /* rival.count 0: repeated on Stook only */
        const char *the;                /* what stands before the rival's name in a sentence */
        unsigned    room;
};

/* Room for @repeat runs of each side. @rival: its name; NULL: system malloc. Return: 0; -ENOMEM. */
int  comparison_init(struct comparison *comparison, unsigned repeat, const char *rival);
void comparison_add(struct side *side, const struct run_result *result);
void comparison_release(struct comparison *comparison);

struct spread spread_of(const double *values, unsigned count);
/*
 * Of stook / rival: the medians' ratio, and least and largest ratio of a pair. False: no pairs, or
 * a zero.
 */
bool comparison_ratio(const struct comparison *comparison, enum measure measure,
                      struct spread *ratio);

enum verdict { VERDICT_NO_DIFFERENCE, VERDICT_LESS, VERDICT_MORE };

/*
 * How many pairs fell to which side, how often chance is at least so one-sided (1: always), and
 * what that allows to say.
 */
struct signs {
        unsigned pairs, less, more;     /* less: Stook took less; those of neither are equal */
        double   chance;
        double   ratio;                 /* the pairs' median */
        double   low, high;             /* 95 % interval of the median ratio; of fewer than six
                                           pairs: the ends */
        enum verdict verdict;
};
/* False: no pairs, or a zero. */
bool comparison_signs(const struct comparison *comparison, enum measure measure,
                      struct signs *signs);

/* The table, then a few sentences. @program: how to call what ran. */
void comparison_print(const struct comparison *comparison, const char *program, FILE *out);
void comparison_json(const struct comparison *comparison, struct json *json);

#endif
