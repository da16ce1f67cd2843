/*
 * Purpose: see worker.h. liburcu's own call_rcu looks at its queue every 10 ms. At two million frees a second that is ten
 * megabytes which nobody can use, and which are out of the cache when they come back. Here a grace period begins as soon as
 * there is enough to wait for, and 10 ms after the first callback otherwise.
 *
 * Whoever waits for callbacks does not wait for the thread: he takes the queue and serves it himself. So barriers take a
 * grace period and no longer, and all goes on, barrier by barrier, where a thread cannot be had.
 *
 * Invariants:
 *  I1 a callback is in the queue, or in the hands of the one who holds `serving`.
 *  I2 who holds `serving` is no reader while he waits for one; who waits for `serving` is none either.
 * Concurrency:
 *  M1: the exchange of the tail by who queues, and by who takes the queue (liburcu's wait-free queue): full barriers, so
 *      that the grace period begins after all that happened before the call.
 *  M2: who finds the queue empty when he queues, or makes it long enough, then raises `events`, releasing, and wakes;
 *      the thread reads `events`, acquiring, before it looks at the queue, and sleeps only while it is as it was read.
 *  `starting` is taken before `serving`.
 * Failure: without a thread callbacks wait for the next call, which tries again, or for a barrier.
 */
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "worker.h"

#define GATHER_NS 10000000              /* as liburcu's: arbitrary */
#define ENOUGH_EACH 32                  /* callbacks for each CPU: a sheaf each. Measured at 8 to 128: no matter, but 1,000 is slower */

_Static_assert(sizeof(struct stook_rcu_head) >= sizeof(struct rcu_head), "liburcu's head fits into ours");

static _Thread_local bool serves;       /* holds some worker's `serving` */

static void sleep_while(uint32_t *word, uint32_t value, uint64_t ns)
{
        struct timespec time = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, ns ? &time : NULL, NULL, 0);
}

static void wake(struct stook_urcu_worker *worker)
{
        __atomic_fetch_add(&worker->events, 1, __ATOMIC_RELEASE);       /* M2 */
        syscall(SYS_futex, &worker->events, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static uint64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void block_signals(sigset_t *before)
{
        sigset_t all;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, before);
}

bool stook_urcu_worker_serves(void)
{
        return serves;
}

/* Handlers that fork find `serves` and the mutex agreed: none runs between the two. */
static void take_turn(struct stook_urcu_worker *worker)
{
        sigset_t before;

        block_signals(&before);
        pthread_mutex_lock(&worker->serving);
        serves = true;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void give_turn(struct stook_urcu_worker *worker)
{
        sigset_t before;

        block_signals(&before);
        serves = false;
        pthread_mutex_unlock(&worker->serving);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* One grace period, and what was queued before it. @is_worker: the thread is not known to liburcu. */
static void serve(struct stook_urcu_worker *worker, bool is_worker)
{
        struct __cds_wfcq_head head;
        struct cds_wfcq_tail tail;
        struct cds_wfcq_node *node, *next;

        __cds_wfcq_init(&head, &tail);
        take_turn(worker);
        __atomic_store_n(&worker->waiting, 0, __ATOMIC_RELAXED);
        if (__cds_wfcq_splice_blocking(&head, &tail, &worker->head, &worker->tail) != CDS_WFCQ_RET_SRC_EMPTY) {
                worker->flavour->update_synchronize_rcu();
                if (is_worker)
                        worker->flavour->register_thread();
                __cds_wfcq_for_each_blocking_safe(&head, &tail, node, next) {
                        struct rcu_head *callback = caa_container_of(node, struct rcu_head, next);

                        callback->func(callback);
                }
                if (is_worker)
                        worker->flavour->unregister_thread();
        }
        give_turn(worker);
}

static bool is_enough(const struct stook_urcu_worker *worker)
{
        return __atomic_load_n(&worker->waiting, __ATOMIC_RELAXED) >= __atomic_load_n(&worker->enough, __ATOMIC_RELAXED);
}

/* Until something is queued; and then for more. */
static void wait_for_work(struct stook_urcu_worker *worker)
{
        uint32_t seen;
        uint64_t now, end;

        for (;;) {
                seen = __atomic_load_n(&worker->events, __ATOMIC_ACQUIRE);      /* M2 */
                if (!cds_wfcq_empty(&worker->head, &worker->tail))
                        break;
                sleep_while(&worker->events, seen, 0);
        }
        end = now_ns() + GATHER_NS;
        for (;;) {
                seen = __atomic_load_n(&worker->events, __ATOMIC_ACQUIRE);      /* M2 */
                now = now_ns();
                if (is_enough(worker) || now >= end)
                        return;
                sleep_while(&worker->events, seen, end - now);
        }
}

static void *work(void *worker)
{
        for (;;) {
                wait_for_work(worker);
                serve(worker, true);
        }
        return NULL;
}

/* No signal of the process's is handled in it. */
static void start(struct stook_urcu_worker *worker)
{
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        sigset_t before;

        block_signals(&before);
        pthread_mutex_lock(&worker->starting);
        if (!worker->runs) {
                __atomic_store_n(&worker->enough, cpus > 0 ? (uint32_t)cpus * ENOUGH_EACH : ENOUGH_EACH, __ATOMIC_RELAXED);
                if (!pthread_create(&worker->thread, NULL, work, worker)) {
                        pthread_setname_np(worker->thread, "stook-rcu");
                        pthread_detach(worker->thread);
                        __atomic_store_n(&worker->runs, 1, __ATOMIC_RELAXED);
                }
        }
        pthread_mutex_unlock(&worker->starting);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void stook_urcu_worker_call(struct stook_urcu_worker *worker, struct stook_rcu_head *head,
                            void (*done)(struct stook_rcu_head *))
{
        struct rcu_head *callback = (struct rcu_head *)head;
        bool was_empty;

        cds_wfcq_node_init(&callback->next);
        callback->func = (void (*)(struct rcu_head *))done;
        was_empty = !cds_wfcq_enqueue(&worker->head, &worker->tail, &callback->next);   /* M1 */
        if (__atomic_add_fetch(&worker->waiting, 1, __ATOMIC_RELAXED) == __atomic_load_n(&worker->enough, __ATOMIC_RELAXED) ||
            was_empty)
                wake(worker);
        if (!__atomic_load_n(&worker->runs, __ATOMIC_RELAXED))
                start(worker);
}

void stook_urcu_worker_barrier(struct stook_urcu_worker *worker)
{
        bool online = worker->flavour->read_ongoing();
        int state;

        /* Of the flavours whose readers are all that are online (I2). */
        if (online)
                worker->flavour->thread_offline();
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        serve(worker, false);
        pthread_setcancelstate(state, NULL);
        if (online)
                worker->flavour->thread_online();
}

/* ---- fork ---- */

void stook_urcu_worker_before_fork(struct stook_urcu_worker *worker)
{
        bool online = worker->flavour->read_ongoing();

        pthread_mutex_lock(&worker->starting);
        if (serves)
                return;                 /* in a callback, or in a handler above it: it goes on there in both */
        if (online)
                worker->flavour->thread_offline();
        pthread_mutex_lock(&worker->serving);
        if (online)
                worker->flavour->thread_online();
}

void stook_urcu_worker_after_fork_parent(struct stook_urcu_worker *worker)
{
        if (!serves)
                pthread_mutex_unlock(&worker->serving);
        pthread_mutex_unlock(&worker->starting);
}

/* Only the thread that forked is left. */
void stook_urcu_worker_after_fork_child(struct stook_urcu_worker *worker)
{
        bool is_worker = worker->runs && pthread_equal(worker->thread, pthread_self());

        __atomic_store_n(&worker->runs, is_worker, __ATOMIC_RELAXED);
        stook_urcu_worker_after_fork_parent(worker);
        if (!is_worker && !cds_wfcq_empty(&worker->head, &worker->tail))
                start(worker);
}
