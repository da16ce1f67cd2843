/*
 * Purpose: see slot_trip.h.
 * Concurrency: M1: the release of a session pairs with the acquire of a draw: its interval.
 */
#include "base/chance.h"
#include "os/os.h"
#include "slot/slot_pair.h"
#include "slot/slot_trip.h"

/* Another thread, or a signal, is in the way this often at most. */
#define TRIP_TRIES 16

struct stook_sampling stook_sampling;

static bool is_sample(uint64_t word)
{
        return (word & STOOK_WORD_SAMPLE) && stook_word_is_marked(word) &&
               (word & STOOK_WORD_SESSION) ==
                       __atomic_load_n(&stook_sampling.session, __ATOMIC_RELAXED);
}

/* The same word with a new count. @passes: so many pops come before the next trial. */
static uint64_t with_count(struct stook_front *front, uint64_t word, unsigned passes)
{
        uint64_t session = __atomic_load_n(&stook_sampling.session, __ATOMIC_ACQUIRE);  /* M1 */
        double pops;

        if (STOOK_LIKELY(!session))
                return stook_word_rearmed(word, STOOK_WORD_COUNTS);
        pops = passes + stook_chance_exponential(stook_os_random()) *
               (double)__atomic_load_n(&stook_sampling.interval, __ATOMIC_RELAXED) /
               front->barns->slabs->stride;
        if (pops >= STOOK_WORD_COUNTS)
                return stook_word_rearmed(word, STOOK_WORD_COUNTS) | session;
        return stook_word_rearmed(word, (unsigned)pops) | session | STOOK_WORD_SAMPLE;
}

static void fold(struct stook_front *front, uint64_t word)
{
        struct stook_counters *counters = front->barns->slabs->counters;

        if (STOOK_LIKELY(!stook_word_folds(word)))
                return;
        stook_count(counters, STOOK_STAT_alloc_fastpath, STOOK_WORD_FOLD);
        stook_count(counters, STOOK_STAT_free_fastpath, STOOK_WORD_FOLD);
}

STOOK_NOINLINE enum stook_trip stook_slot_trip(struct stook_front *front, bool in_place)
{
        const struct stook_section_ops *ops = stook_slot_ops_inlined();

        for (unsigned tries = 0; tries < TRIP_TRIES; tries++) {
                struct stook_sheaf *main = stook_slot_look(front).main;
                uint64_t word = __atomic_load_n(&main->word, __ATOMIC_RELAXED);
                bool sample = is_sample(word);

                if (!stook_word_is_marked(word) || !(word & 0xffff))
                        return STOOK_TRIP_NONE;
                if (STOOK_INJECT_EVERY(rearm_fail) ||
                    !ops->rearm(front->offset, main, word,
                                with_count(front, word, sample && in_place)))
                        continue;
                fold(front, word);
                return sample ? STOOK_TRIP_SAMPLE : STOOK_TRIP_AGAIN;
        }
        return STOOK_TRIP_NONE;
}

/* A count that has just begun is so long that one pop is next to nothing. */
void stook_slot_pass(struct stook_front *front)
{
        const struct stook_section_ops *ops = stook_slot_ops_inlined();

        for (unsigned tries = 0; tries < TRIP_TRIES; tries++) {
                struct stook_sheaf *main = stook_slot_look(front).main;
                uint64_t word = __atomic_load_n(&main->word, __ATOMIC_RELAXED);
                unsigned left = stook_word_to_mark(word);

                if (left == STOOK_WORD_COUNTS || !(word & 0xffff) ||
                    ops->rearm(front->offset, main, word, stook_word_set_left(word, left + 1)))
                        return;
        }
}

STOOK_NOINLINE bool stook_sheaf_trip(struct stook_front *front, struct stook_sheaf *sheaf)
{
        uint64_t word = sheaf->word;
        bool sample = is_sample(word);

        __atomic_store_n(&sheaf->word, with_count(front, word, sample), __ATOMIC_RELAXED);
        fold(front, word);
        return sample;
}
