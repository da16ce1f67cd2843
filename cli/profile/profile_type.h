/*
 * Purpose: what of a heap profile is looked at: one type of its values, or the lifetimes of its
 * pairs of stacks, as a profile of their own; which stacks are suspects.
 */
#ifndef STOOK_CLI_PROFILE_TYPE_H
#define STOOK_CLI_PROFILE_TYPE_H

#include "cli/profile/pprof_read.h"

#define PROFILE_SAMPLES_FEW 4           /* what stands on fewer is noise */

/* The peak, or what is in use; else the last type. */
int profile_type_default(const struct pprof *p);

/* Of a sample's value. False: the profile does not tell. */
bool profile_spread(const struct pprof *p, const struct pprof_sample *s, int type,
                    uint64_t *samples, double *variance);
/* Is a value an estimate by too few samples? */
bool profile_is_noise(const struct pprof *p, const struct pprof_sample *s, int type);
/* Sorts the samples by their values of a type, the largest first. */
void profile_sort(struct pprof *p, int type);

/*
 * The pairs as samples: freed_objects and freed_space, one sample for each pair and time, with the
 * stack of the allocation below that of the free. Objects in use are there, too: they live at least
 * as long as they are old. False: no memory. @to has strings and places of its own.
 */
bool profile_lifetimes(const struct pprof *p, struct pprof *to);
#define PROFILE_FREED_BY "[freed by]"
#define PROFILE_IN_USE   "[in use]"

/* ns of the least life in lives[i]. */
uint64_t profile_life_from(unsigned i);
/* What is in use of a stack, in parts, by the power of two of its age, as lives of a pair are. */
void profile_ages(const struct pprof *p, const struct pprof_sample *s,
                  uint64_t bytes[STOOK_PROFILE_LIVES]);

/*
 * Is more born than dies in each quarter of the time, and has less than a tenth of the oldest
 * quarter died? *@rate: bytes a minute.
 */
bool profile_is_suspect(const struct pprof *p, const struct pprof_sample *s, double *rate);

#endif
