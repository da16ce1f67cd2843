/*
 * Purpose: see rank.h. Empty without the option lock_ranks.
 * Concurrency: counts are this thread's own, plain arithmetic, as in lock.c.
 */
#include "base/rank.h"

#if STOOK_LOCK_RANKS

static const char *const names[STOOK_RANKS] = {
        [STOOK_RANK_LOCK] = "a lock",
        [STOOK_RANK_SERVING] = "RCU serving",
        [STOOK_RANK_CALLING] = "RCU calling",
        [STOOK_RANK_REGISTRY] = "registry",
        [STOOK_RANK_EVACUATE] = "evacuation",
        [STOOK_RANK_GROUPS] = "groups",
        [STOOK_RANK_REGIONS] = "regions",
        [STOOK_RANK_PARTIAL_LIST] = "partial list",
        [STOOK_RANK_BINS] = "bins",
};

/* A fork's prepare holds the lists of all caches at once. */
static __thread uint32_t held[STOOK_RANKS];
static void (*report)(const char *held, const char *wanted);    /* atomic, relaxed */

#define LAST_LEVEL STOOK_RANKS

/* Mutexes have a level each, in the order of their ranks. */
static unsigned level(enum stook_rank rank)
{
        return rank >= STOOK_RANK_SERVING && rank <= STOOK_RANK_EVACUATE ? rank : LAST_LEVEL;
}

void stook_rank_set_report(void (*to)(const char *held, const char *wanted))
{
        __atomic_store_n(&report, to, __ATOMIC_RELAXED);
}

void stook_rank_check(enum stook_rank wanted)
{
        void (*to)(const char *, const char *) = __atomic_load_n(&report, __ATOMIC_RELAXED);

        for (unsigned rank = 0; rank < STOOK_RANKS; rank++) {
                if (!held[rank] || level(rank) < level(wanted))
                        continue;
                if (to)
                        to(names[rank], names[wanted]);
                __builtin_trap();
        }
}

void stook_rank_hold(enum stook_rank rank)
{
        held[rank]++;
}

void stook_rank_let_go(enum stook_rank rank)
{
        if (held[rank])
                held[rank]--;
}

void stook_rank_hold_no_lock(void)
{
        for (unsigned rank = 0; rank < STOOK_RANKS; rank++)
                if (level(rank) == LAST_LEVEL)
                        held[rank] = 0;
}

#endif
