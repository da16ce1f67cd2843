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
        const struct stook_rcu *table;                  /* const once listed */
        struct stook_urcu_worker *next;                 /* const once listed */
        struct stook_urcu_callback *last;               /* atomic M1: the queue, from its end */
        struct stook_urcu_callback *batch;              /* calling: the oldest first */
        uint64_t taken, called;         /* calling: off the queue; of these, off the batch */
        uint32_t batched;               /* atomic, calling writes: the batch has some (M1) */
        uint32_t events;                /* atomic M2: how often the thread was woken */
        uint32_t waiting;               /* atomic, a hint: callbacks since the queue was taken */
        uint32_t enough;                /* atomic: of `waiting`, to begin at once; 0: not known */
        uint32_t runs;                  /* atomic: the thread exists, or is being made (M3) */
        sigset_t starter_signals;       /* the thread that made it: what that had blocked */
        pthread_mutex_t calling;        /* held by who changes the batch, and in callbacks */
        pthread_mutex_t serving;        /* held by who waits for readers in liburcu */
        sigset_t forker_signals;        /* calling: what the thread that forks had blocked */
        int forker_state;               /* calling: whether that thread can be cancelled */
};

#define STOOK_URCU_WORKER(worker, its_flavour)                          \
        static struct stook_urcu_worker worker = {                      \
                .flavour = &(its_flavour),                              \
                .calling = PTHREAD_MUTEX_INITIALIZER,                   \
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
/*
 * Around a grace period of the program's: what was given to the worker before the first is called
 * by the second, unless it was called before. Where stook_urcu_worker_serves() neither does a
 * thing.
 */
STOOK_URCU_HIDDEN uint64_t stook_urcu_worker_begin(struct stook_urcu_worker *worker);
STOOK_URCU_HIDDEN void stook_urcu_worker_passed(struct stook_urcu_worker *worker, uint64_t n);
/* This thread is in a callback, or waits for readers. */
STOOK_URCU_HIDDEN bool stook_urcu_worker_serves(void);

/*
 * Around a fork; not for readers. Between the first and one of the others
 *  - no callback runs, except one that forks itself,
 *  - the worker is not inside liburcu,
 *  - no handler runs on top of the thread that forks, and that thread is not cancelled.
 * False: this thread is in a callback of another worker, or in a handler on top of a wait for
 * readers, and a callback of another thread does not end. The others must not be called.
 */
STOOK_URCU_HIDDEN bool stook_urcu_worker_before_fork(struct stook_urcu_worker *worker);
STOOK_URCU_HIDDEN void stook_urcu_worker_after_fork_parent(struct stook_urcu_worker *worker);
STOOK_URCU_HIDDEN void stook_urcu_worker_after_fork_child(struct stook_urcu_worker *worker);

#endif
