/*
 * Purpose: the sums of each call stack, and the sampled objects in use. For src/profile alone.
 */
#ifndef STOOK_PROFILE_TABLE_H
#define STOOK_PROFILE_TABLE_H

#include "profile/profile.h"

/* What samples stand for, in parts of an object or byte: 1 << STOOK_PROFILE_PART_BITS make one. */
#define STOOK_PROFILE_PART_BITS 10

struct stook_profile_sums {
        uint64_t objects, bytes;        /* atomic, relaxed; in parts */
};

/* A call stack. It is never removed. */
struct stook_profile_bucket {
        struct stook_profile_bucket *next;      /* const; of the same hash */
        uint32_t stack;                 /* const; stack/stack.h; 0: not known */
        struct stook_profile_sums allocated, freed;
};

bool stook_profile_table_start(uint64_t interval);
/* The bucket of a stack. NULL: no memory. */
struct stook_profile_bucket *stook_profile_bucket(uint32_t stack);
/* A sampled object is in use from now on (I1). False: no room. */
bool stook_profile_enter(const void *object, struct stook_profile_bucket *bucket,
                         struct stook_profile_sums parts);
/* Calls @each for each bucket, with those of other threads as they are now. */
void stook_profile_for_each(void (*each)(const struct stook_profile_bucket *bucket, void *data),
                            void *data);
/* Samples that found no room. */
uint64_t stook_profile_lost(void);
void stook_profile_count_lost(void);

#endif
