/*
 * Purpose: a heap profile as text: stacks by a type of their values, lifetimes, suspects.
 */
#ifndef STOOK_CLI_PROFILE_TEXT_H
#define STOOK_CLI_PROFILE_TEXT_H

#include <stdio.h>
#include "cli/profile/profile_names.h"
#include "cli/profile/profile_type.h"

struct profile_view {
        struct profile_names *names;    /* of a profile whose samples are sorted by `type` */
        int         type;
        unsigned    top;                /* stacks that are shown */
        bool        all;                /* those, too, that stand on too few samples */
};

/* "1.2 MiB", "17 objects" */
const char *profile_amount(const struct pprof *p, int type, int64_t value, char *text,
                           size_t bytes);
/* Of all samples. *@spread: the standard deviation; below 0: not known. */
int64_t profile_total(const struct pprof *p, int type, double *spread);

void profile_text_stacks(const struct profile_view *view, FILE *out);
void profile_text_lifetimes(const struct profile_view *view, FILE *out);
/* Return: how many there are. */
size_t profile_text_suspects(const struct profile_view *view, FILE *out);
/* Each line a stack: functions from the outermost on, then the value. Those above 0. */
void profile_text_folded(const struct profile_view *view, FILE *out);

#endif
