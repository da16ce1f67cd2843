/*
 * Purpose: are large objects being replaced by others? One is freed, and the next one takes its
 * place. Between the two much less may be in use for a moment, if the objects are few. What is
 * purged then is faulted in again at once.
 * Place: span.c records takes and gives of 2 MiB and more, by the ledger. limit.c asks.
 * How: one give since the last take is a replacement: the next take is to come. With the second
 *  give in turn the process may be done, and make no more calls. So it may, where an eighth of
 *  what was in use since has been freed in small spans. What stays is bounded by what was in use
 *  with the last one taken: small spans that are freed between replacements are not replaced.
 * Concurrency: any thread, relaxed stores. A lost race costs a purge too many or too late.
 */
#ifndef STOOK_IN_TURN_H
#define STOOK_IN_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "policy/constants.h"

struct stook_in_turn {
        size_t least;           /* atomic: with fewer bytes in use it is over; 0: it is over */
        size_t with_last;       /* atomic: bytes in use with the last large span taken */
        uint32_t gives;         /* atomic: since the last take; more than one count as one */
};

static inline size_t stook_in_turn_least_of(size_t used)
{
        return used - used / STOOK_IN_TURN_PART;
}

/* A large span was taken. With it @used bytes are in use. */
static inline void stook_in_turn_taken(struct stook_in_turn *turn, size_t used)
{
        __atomic_store_n(&turn->gives, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&turn->with_last, used, __ATOMIC_RELAXED);
        __atomic_store_n(&turn->least, stook_in_turn_least_of(used), __ATOMIC_RELAXED);
}

/* One was given. Without it @used bytes are in use. */
static inline void stook_in_turn_given(struct stook_in_turn *turn, size_t used)
{
        uint32_t gives = __atomic_load_n(&turn->gives, __ATOMIC_RELAXED);

        __atomic_store_n(&turn->gives, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&turn->least, gives ? 0 : stook_in_turn_least_of(used),
                         __ATOMIC_RELAXED);
}

/* True: with @used bytes in use large objects are being replaced. */
static inline bool stook_in_turn_goes_on(const struct stook_in_turn *turn, size_t used)
{
        size_t least = __atomic_load_n(&turn->least, __ATOMIC_RELAXED);

        return least && used >= least;
}

/* So many bytes may stay at most while large objects are being replaced. */
static inline size_t stook_in_turn_most(const struct stook_in_turn *turn)
{
        return STOOK_IN_TURN_TIMES * __atomic_load_n(&turn->with_last, __ATOMIC_RELAXED);
}

#endif
