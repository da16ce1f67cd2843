/*
 * Purpose: see sample.h: sessions, and the share of samples that is kept.
 * The share is halved as soon as a window of time has seen twice its part of what may be kept, and
 * at the end of one that has seen more than its part; it is raised by a quarter at the end of one
 * that has seen clearly less. All threads have one share: what they do to it at once is at most one
 * step too many.
 */
#include "base/chance.h"
#include "malloc/malloc.h"
#include "os/os.h"
#include "profile/profile.h"
#include "sample/sample.h"

#define WINDOW_MS  64                   /* several updates of the coarse clock; arbitrary */
#define WHOLE      (UINT64_C(1) << 32)
#define SHARE_LEAST (WHOLE >> 24)

struct stook_sample_counts stook_sample_counts = { .share = WHOLE };

/* Atomic, relaxed. */
static struct {
        uint64_t most;                  /* kept in a window; 0: all */
        uint64_t seen;                  /* kept in this one */
        uint64_t window;                /* its number: the time / WINDOW_MS */
        uint64_t number;                /* of the session, 1 to 7 */
} now;

#define GET(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

bool stook_sample_start(const struct stook_sample_terms *terms)
{
        if (!stook_profile_table_start(terms->interval, terms->lifetimes))
                return false;
        stook_sample_stop();
        SET(now.most, terms->most ? (terms->most * WINDOW_MS + 999) / 1000 : 0);
        SET(now.seen, 0);
        SET(stook_sample_counts.share, WHOLE);
        SET(stook_sampling.interval, terms->interval);
        if (terms->guard)
                SET(stook_malloc_has_guarded, true);
        SET(stook_guarded_a_second, terms->guard);
        SET(now.number, GET(now.number) % 7 + 1);
        __atomic_store_n(&stook_sampling.session, GET(now.number) << STOOK_WORD_SESSION_SHIFT,
                         __ATOMIC_RELEASE);                     /* M1 of slot_trip.c */
        return true;
}

void stook_sample_stop(void)
{
        SET(stook_sampling.session, 0);
}

static void halve(void)
{
        uint64_t share = GET(stook_sample_counts.share) / 2;

        SET(stook_sample_counts.share, share > SHARE_LEAST ? share : SHARE_LEAST);
        SET(now.seen, 0);
}

/* What this sample's share is; then the coin is thrown. */
static uint64_t share_now(uint64_t most)
{
        uint64_t window = stook_os_clock_ms() / WINDOW_MS, before = GET(now.window);
        uint64_t seen = GET(now.seen), share;

        if (window == before) {
                if (seen >= 2 * most)
                        halve();
        } else if (__atomic_compare_exchange_n(&now.window, &before, window, false,
                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                share = GET(stook_sample_counts.share);
                if (seen > most)
                        share /= 2;
                else if (seen < most - most / 4)
                        share += share / 4;
                share = share < WHOLE ? share : WHOLE;
                SET(stook_sample_counts.share, share > SHARE_LEAST ? share : SHARE_LEAST);
                SET(now.seen, 0);
        }
        return GET(stook_sample_counts.share);
}

bool stook_sample_keep(uint64_t stride, double *weight)
{
        uint64_t most = GET(now.most), share = most ? share_now(most) : WHOLE;
        double p = stook_chance_share((double)stride / (double)GET(stook_sampling.interval));

        __atomic_fetch_add(&stook_sample_counts.marks, 1, __ATOMIC_RELAXED);
        if (share < WHOLE && stook_os_random() >> 32 >= share)
                return false;
        __atomic_fetch_add(&now.seen, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&stook_sample_counts.kept, 1, __ATOMIC_RELAXED);
        *weight = (double)WHOLE / (double)share / p;
        return true;
}
