/*
 * Purpose: one flavour of liburcu as a table for <stook/rcu.h>. Included once by the file of each flavour, behind
 * liburcu's header under URCU_API_MAP, with
 *   TABLE           the table's name
 *   MAY_WAIT        what may_wait answers outside a callback: see <stook/rcu.h>
 *   BEFORE_FORK(), AFTER_FORK_PARENT(), AFTER_FORK_CHILD()
 *                   what the flavour itself wants besides call_rcu's handlers
 * Concurrency: used and forking are atomic, and once 1 stay (used) or belong to the thread that forks.
 */
#ifndef STOOK_URCU_TABLE_H
#define STOOK_URCU_TABLE_H

#include <pthread.h>
#include <urcu/call-rcu.h>
#include <urcu/flavor.h>
#include <stook/rcu.h>
#include "urcu.h"

_Static_assert(sizeof(struct stook_rcu_head) >= sizeof(struct rcu_head), "liburcu's head fits into ours");

static int used;                        /* liburcu's call_rcu threads, if any, are our business */
static int forking;                     /* before_fork has run, and the parent's or the child's handler is due */

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *))
{
        if (!__atomic_load_n(&used, __ATOMIC_RELAXED))
                __atomic_store_n(&used, 1, __ATOMIC_RELAXED);
        call_rcu((struct rcu_head *)head, (void (*)(struct rcu_head *))done);
}

/* liburcu's threads have their own queue set as theirs. */
static int is_callback_thread(void)
{
        struct call_rcu_data *mine = get_thread_call_rcu_data();

        return mine && pthread_equal(get_call_rcu_thread(mine), pthread_self());
}

static int may_wait(void)
{
        return is_callback_thread() ? 0 : MAY_WAIT;
}

static void barrier(void)
{
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
 * The call_rcu threads stop before the fork, outside all callbacks; in the child a new one takes over what was
 * queued. First they, then the flavour's locks: a thread that waits for those would never stop.
 */
static void before_fork(void)
{
        if (!__atomic_load_n(&used, __ATOMIC_RELAXED) || !stook_urcu_forks())
                return;
        call_rcu_before_fork();
        BEFORE_FORK();
        forking = 1;
}

static void after_fork_parent(void)
{
        if (!forking)
                return;
        forking = 0;
        AFTER_FORK_PARENT();
        call_rcu_after_fork_parent();
}

static void after_fork_child(void)
{
        if (!forking)
                return;
        forking = 0;
        AFTER_FORK_CHILD();
        call_rcu_after_fork_child();
}

__attribute__((constructor)) static void handle_forks(void)
{
        pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

#endif
