/*
 * An RCU whose grace periods end when the test says so, for one thread; and what the tests of
 * src/rcu ask of a cache.
 */
#ifndef TESTS_RCU_BY_HAND_H
#define TESTS_RCU_BY_HAND_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <stook/stook.h>
#include "barn/sheaf.h"
#include "base/compiler.h"
#include "base/inject.h"
#include "rcu/rcu_inside.h"

static struct pending {
        struct stook_rcu_head *head;
        void (*done)(struct stook_rcu_head *head);
} pending[100000];
static size_t n_pending, calls;
static int may_wait = 1;
static void (*on_call)(void);           /* called before a call notes anything; NULL: nothing */

/* Of what is pending, where another thread ends a grace period. */
static pthread_mutex_t by_hand_lock = PTHREAD_MUTEX_INITIALIZER;

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        if (on_call)
                on_call();
        pthread_mutex_lock(&by_hand_lock);
        pending[n_pending++] = (struct pending){ head, done };
        calls++;
        pthread_mutex_unlock(&by_hand_lock);
}

static void grace(void)
{
        size_t n = n_pending;

        for (size_t i = 0; i < n; i++) {
                /* These words are the implementation's: it may write there. */
                memset(pending[i].head, 0xee, sizeof(*pending[i].head));
                pending[i].done(pending[i].head);
        }
        memmove(pending, pending + n, (n_pending - n) * sizeof(*pending));
        n_pending -= n;
}

static int does_it(void)
{
        return may_wait;
}

static const struct stook_rcu by_hand = {
        .ops_size = sizeof(by_hand), .call = call, .barrier = grace, .may_wait = does_it,
};

static inline struct stook_cache_stats stats_of(struct stook_cache *cache)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        return stats;
}

#define SIZE 72

static inline struct stook_cache *new_cache(uint64_t flags)
{
        struct stook_cache_args args = {
                .args_size = sizeof(args), .flags = flags, .rcu = &by_hand,
        };
        struct stook_cache *cache = stook_cache_create("rcu", SIZE, &args);

        assert_non_null(cache);
        return cache;
}

/* ---- reports: stook_on_report(note, NULL) ---- */

static unsigned reports;
static enum stook_fault fault;

static inline void note(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        fault = report->fault;
}

/* A group's setup: each grace() is a round of the clock. */
static inline int round_by_round(void **state)
{
        (void)state;
        stook_inject.rcu_rounds_at_once = 1;
        return 0;
}

/* The same, and the process uses this RCU, too: something was freed by it. */
static inline int round_by_round_with_rcu(void **state)
{
        int error = round_by_round(state) || stook_rcu_use(&by_hand) ||
                    stook_free_rcu(stook_malloc(1));

        stook_rcu_barrier();
        return error;
}

#endif
