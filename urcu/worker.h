/*
 * Purpose: what calls functions after a grace period of a flavour: a queue, and a thread that serves it.
 * Place: below the tables of the flavours; it knows liburcu, and nothing of libstook but the header.
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
        uint32_t waiting;               /* atomic, a hint: callbacks since the queue was taken last */
        uint32_t enough;                /* atomic: of `waiting`, for a grace period to begin at once; 0: not known yet */
        uint32_t runs;                  /* atomic: the thread is there, or being made */
        pthread_mutex_t serving;
        sigset_t forker_signals;        /* serving: of the thread that forks, for afterwards */
        int forker_state;               /* serving: and whether it can be cancelled */
};

#define STOOK_URCU_WORKER(worker, its_flavour)                          \
        static struct stook_urcu_worker worker = {                      \
                .flavour = &(its_flavour),                              \
                .serving = PTHREAD_MUTEX_INITIALIZER,                   \
        }

/* @done(head) after a grace period that begins from now on. Never fails, never waits for readers. */
STOOK_URCU_HIDDEN void stook_urcu_worker_call(struct stook_urcu_worker *worker, struct stook_rcu_head *head,
                                              void (*done)(struct stook_rcu_head *));
/* All that was given to the worker before has been called. Not by a reader, nor where stook_urcu_worker_serves(). */
STOOK_URCU_HIDDEN void stook_urcu_worker_barrier(struct stook_urcu_worker *worker);
/* This thread is in a callback, or about to be. */
STOOK_URCU_HIDDEN bool stook_urcu_worker_serves(void);

/*
 * Around fork, not by a reader. Between the first and one of the others no callback runs but one that forks, the worker is
 * not inside liburcu, no handler runs on top of the thread that forks, nor is it cancelled. False: this thread is in
 * a callback of another worker's, and the others are not to be called.
 */
STOOK_URCU_HIDDEN bool stook_urcu_worker_before_fork(struct stook_urcu_worker *worker);
STOOK_URCU_HIDDEN void stook_urcu_worker_after_fork_parent(struct stook_urcu_worker *worker);
STOOK_URCU_HIDDEN void stook_urcu_worker_after_fork_child(struct stook_urcu_worker *worker);

#endif
