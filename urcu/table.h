/*
 * Purpose: one flavour of liburcu as a table for <stook/rcu.h>. The file of each flavour includes
 * it once, behind liburcu's header under URCU_API_MAP, with
 *   TABLE           the table's name
 *   MAY_WAIT        what may_wait answers outside a callback: see <stook/rcu.h>
 *   BEFORE_FORK(), AFTER_FORK_PARENT(), AFTER_FORK_CHILD()
 *                   what the flavour itself needs besides call_rcu's handlers
 * Concurrency: used and used_theirs are atomic, and stay 1 once they are.
 */
#ifndef STOOK_URCU_TABLE_H
#define STOOK_URCU_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <urcu/call-rcu.h>
#include <urcu/flavor.h>
#include <stook/rcu.h>
#include "urcu.h"
#include "worker.h"

STOOK_URCU_WORKER(worker, rcu_flavor);

static int used;                        /* a callback was given to the worker */
static int used_theirs;                 /* a callback was given to liburcu's call_rcu */
/* From before_fork to the handlers after it: what was stopped. */
static _Thread_local enum { NOTHING, WORKER, LIBURCU_TOO } forking;

static void note_use(int *flag)
{
        if (!__atomic_load_n(flag, __ATOMIC_RELAXED))
                __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
}

/* A program that handles forks itself knows of liburcu's threads only. */
static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *))
{
        if (stook_urcu_forks()) {
                note_use(&used);
                stook_urcu_worker_call(&worker, head, done);
        } else {
                note_use(&used_theirs);
                call_rcu((struct rcu_head *)head, (void (*)(struct rcu_head *))done);
        }
}

/* A thread of liburcu's has its own queue set as the one it uses. */
static int is_callback_thread(void)
{
        struct call_rcu_data *mine = get_thread_call_rcu_data();

        return stook_urcu_worker_serves() ||
               (mine && pthread_equal(get_call_rcu_thread(mine), pthread_self()));
}

static int may_wait(void)
{
        return is_callback_thread() ? 0 : MAY_WAIT;
}

static void barrier(void)
{
        stook_urcu_worker_barrier(&worker);
        if (__atomic_load_n(&used_theirs, __ATOMIC_RELAXED))
                rcu_barrier();
}

static void read_lock(void)
{
        rcu_read_lock();
}

static void read_unlock(void)
{
        rcu_read_unlock();
}

static void quiescent(void)
{
        rcu_quiescent_state();
}

const struct stook_rcu TABLE __attribute__((visibility("default"))) = {
        .ops_size = sizeof(struct stook_rcu),
        .call = call,
        .barrier = barrier,
        .read_lock = read_lock,
        .read_unlock = read_unlock,
        .quiescent = quiescent,
        .may_wait = may_wait,
};

/*
 * The worker and liburcu's call_rcu threads (other code may use them) stop before the fork, outside
 * of all callbacks. In the child new threads take over what was queued. The order:
 *   1. The worker, also where it is not used yet: another thread may begin to use it just now. A
 *      thread in one of its callbacks waits for nothing that is taken later.
 *   2. liburcu's threads.
 *   3. The flavour's locks. A thread that waits for one of these would never stop.
 * No thread stops while this one is a reader by being online, so it goes offline. A child that was
 * forked in a callback of another flavour finds this flavour as it was, and must not use it.
 */
static void before_fork(void)
{
        bool online = rcu_flavor.read_ongoing();

        if (online)
                rcu_flavor.thread_offline();
        forking = stook_urcu_worker_before_fork(&worker) ? WORKER : NOTHING;
        if (forking && __atomic_load_n(&used, __ATOMIC_RELAXED) && stook_urcu_forks()) {
                forking = LIBURCU_TOO;
                call_rcu_before_fork();
                BEFORE_FORK();
        }
        if (online)
                rcu_flavor.thread_online();
}

static void after_fork_parent(void)
{
        if (forking == LIBURCU_TOO) {
                AFTER_FORK_PARENT();
                call_rcu_after_fork_parent();
        }
        if (forking)
                stook_urcu_worker_after_fork_parent(&worker);
}

static void after_fork_child(void)
{
        if (forking == LIBURCU_TOO) {
                AFTER_FORK_CHILD();
                call_rcu_after_fork_child();
        }
        if (forking)
                stook_urcu_worker_after_fork_child(&worker);
}

__attribute__((constructor)) static void begin_to_exist(void)
{
        worker.table = &TABLE;
        stook_urcu_list(&worker);
        pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

#endif
