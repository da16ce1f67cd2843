/*
 * Purpose: calls functions after a grace period of a flavour: a queue, and a thread that serves it.
 * Place: below the tables of the flavours. It uses liburcu, and of libstook only the header.
 */
#ifndef STOOK_URCU_WORKER_H
#define STOOK_URCU_WORKER_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <urcu/flavor.h>
#include <stook/rcu.h>

#define STOOK_URCU_HIDDEN __attribute__((visibility("hidden")))

struct stook_urcu_callback;

struct stook_urcu_worker {
        const struct rcu_flavor_struct *flavour;        /* const */
        struct stook_urcu_callback *last;               /* atomic M1: the queue, from its end */
        uint32_t events;                /* atomic M2: how often the thread was woken */
        uint32_t waiting;               /* atomic, a hint: callbacks since the queue was taken */
        uint32_t enough;                /* atomic: of `waiting`, to begin at once; 0: not known */
        uint32_t runs;                  /* atomic: the thread exists, or is being made (M3) */
        sigset_t starter_signals;       /* the thread that made it: what that had blocked */
        pthread_mutex_t serving;        /* held from taking the queue until all of it was called */
        sigset_t forker_signals;        /* serving: what the thread that forks had blocked */
        int forker_state;               /* serving: whether that thread can be cancelled */
};

#define STOOK_URCU_WORKER(worker, its_flavour)                          \
        static struct stook_urcu_worker worker = {                      \
                .flavour = &(its_flavour),                              \
                .serving = PTHREAD_MUTEX_INITIALIZER,                   \
        }

/*
 * Calls @done(head) after a grace period that begins from now on. Never fails, never waits for
 * readers.
 */
STOOK_URCU_HIDDEN void stook_urcu_worker_call(struct stook_urcu_worker *worker,
                                              struct stook_rcu_head *head,
                                              void (*done)(struct stook_rcu_head *));
/*
 * Returns when all that was given to the worker before has been called. Not for readers, nor where
 * stook_urcu_worker_serves().
 */
STOOK_URCU_HIDDEN void stook_urcu_worker_barrier(struct stook_urcu_worker *worker);
/* This thread is in a callback, or about to be. */
STOOK_URCU_HIDDEN bool stook_urcu_worker_serves(void);

/*
 * Around a fork; not for readers. Between the first and one of the others
 *  - no callback runs, except one that forks itself,
 *  - the worker is not inside liburcu,
 *  - no handler runs on top of the thread that forks, and that thread is not cancelled.
 * False: this thread is in a callback of another worker, and must not call the others.
 */
STOOK_URCU_HIDDEN bool stook_urcu_worker_before_fork(struct stook_urcu_worker *worker);
STOOK_URCU_HIDDEN void stook_urcu_worker_after_fork_parent(struct stook_urcu_worker *worker);
STOOK_URCU_HIDDEN void stook_urcu_worker_after_fork_child(struct stook_urcu_worker *worker);

#endif
