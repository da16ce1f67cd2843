/*
 * Purpose: see worker.h. liburcu's own call_rcu looks at its queue every 10 ms. At two million
 * frees a second that makes ten megabytes which no thread can use, and which are out of the cache
 * when they come back. Here a grace period begins as soon as enough callbacks wait, and 10 ms after
 * the first callback otherwise.
 *
 * src/epoch/epoch.c queues and sleeps in the same way. The two share no code: this library sees
 * the public headers only. And they differ in what a fork waits for: here the one mutex, which is
 * held while the thread waits for readers, too; there a mutex of the callbacks alone.
 *
 * A thread that waits for callbacks does not wait for the serving thread: it takes the queue and
 * serves it itself. So a barrier takes a grace period and no longer. Where no thread can be had,
 * callbacks are served barrier by barrier.
 *
 * The thread must not keep a finished process alive. What src/process/own_thread.c does is out of
 * reach here, and a rule that needs no list of threads does: once the first thread of the process
 * has ended, the thread ends when nothing is queued for half a second, and the next call makes
 * another.
 *
 * Invariants:
 *  I1 a callback is in the queue, or in the hands of the thread that holds `serving`. It gets into
 *     the queue by one instruction: a child finds the queue whole, whatever the threads that it
 *     does not have were doing.
 *  I2 a thread that holds `serving` is no reader while it waits for readers. Nor is a thread that
 *     waits for `serving`.
 * Concurrency:
 *  M1: a thread queues by a releasing compare-and-swap, and a thread takes the queue by an
 *     acquiring exchange. So the grace period begins after all that happened before the call.
 *  M2: a thread that finds the queue empty when it queues, or makes it long enough, then raises
 *     `events`, releasing, and wakes. The serving thread reads `events`, acquiring, before it looks
 *     at the queue, and sleeps only while `events` is as it was read.
 *  M3: the serving thread takes `runs` down before its last look at the queue, and a thread that
 *     queues looks at `runs` after that, with full fences between: one of the two sees the other.
 * Failure: without a thread callbacks wait for the next call, which tries again, or for a barrier.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "worker.h"

#define GATHER_NS 10000000              /* as liburcu's: arbitrary */
#define LOOK_NS   500000000             /* between looks whether to end: arbitrary */
/*
 * Callbacks for each CPU with which a grace period begins at once; each is a sheaf. mmap2, 12
 * interleaved rounds: 4 and 128 are level with 32 (ratios 0.89 and 1.08, noise 0.9 .. 1.1). 512
 * makes 0.88 of the pairs, with 17.5 MiB instead of 7.3.
 */
#define ENOUGH_EACH 32

/* A head while it is in the queue. Stores are atomic: <stook/rcu.h> says why. */
struct stook_urcu_callback {
        struct stook_urcu_callback *next;
        void (*done)(struct stook_rcu_head *);
};
_Static_assert(sizeof(struct stook_rcu_head) >= sizeof(struct stook_urcu_callback), "two words");

/* The worker whose `serving` this thread holds; and the one whose thread this is. */
static _Thread_local struct stook_urcu_worker *served, *works_for;

static void sleep_while(uint32_t *word, uint32_t value, uint64_t ns)
{
        struct timespec time = {
                .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000),
        };

        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0);
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
        return served;
}

/*
 * No handler runs between the lock and the store to `served`. So a handler that forks finds that
 * the two agree.
 */
static void take_turn(struct stook_urcu_worker *worker)
{
        sigset_t before;

        block_signals(&before);
        pthread_mutex_lock(&worker->serving);
        served = worker;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void give_turn(struct stook_urcu_worker *worker)
{
        sigset_t before;

        block_signals(&before);
        served = NULL;
        pthread_mutex_unlock(&worker->serving);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* True: the queue was empty. */
static bool queue(struct stook_urcu_worker *worker, struct stook_urcu_callback *callback)
{
        struct stook_urcu_callback *last = __atomic_load_n(&worker->last, __ATOMIC_RELAXED);

        do
                __atomic_store_n(&callback->next, last, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&worker->last, &last, callback, true, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED));     /* M1 */
        return !last;
}

static bool is_empty(const struct stook_urcu_worker *worker)
{
        return !__atomic_load_n(&worker->last, __ATOMIC_RELAXED);
}

/* The whole queue, the oldest callback first. */
static struct stook_urcu_callback *take_queue(struct stook_urcu_worker *worker)
{
        struct stook_urcu_callback *at, *first = NULL;

        at = __atomic_exchange_n(&worker->last, NULL, __ATOMIC_ACQUIRE);        /* M1 */
        while (at) {
                struct stook_urcu_callback *before = at->next;

                __atomic_store_n(&at->next, first, __ATOMIC_RELAXED);
                first = at;
                at = before;
        }
        return first;
}

/*
 * One grace period, then what was queued before it. @is_worker: liburcu does not know the thread.
 */
static void serve(struct stook_urcu_worker *worker, bool is_worker)
{
        struct stook_urcu_callback *at;

        take_turn(worker);
        __atomic_store_n(&worker->waiting, 0, __ATOMIC_RELAXED);
        at = take_queue(worker);
        if (at) {
                worker->flavour->update_synchronize_rcu();
                if (is_worker)
                        worker->flavour->register_thread();
                while (at) {
                        struct stook_urcu_callback *callback = at;

                        at = at->next;
                        callback->done((struct stook_rcu_head *)callback);
                }
                if (is_worker)
                        worker->flavour->unregister_thread();
        }
        give_turn(worker);
}

static bool is_enough(const struct stook_urcu_worker *worker)
{
        return __atomic_load_n(&worker->waiting, __ATOMIC_RELAXED) >=
               __atomic_load_n(&worker->enough, __ATOMIC_RELAXED);
}

/* It has ended, or is this one, in a fork's child: see src/process/own_thread.c. */
static bool first_thread_is_gone(void)
{
        uint32_t id = (uint32_t)getpid();

        return syscall(SYS_futex, &id, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0) &&
               (errno == ESRCH || errno == EDEADLK);
}

/* False: a callback was queued meanwhile, and no other thread was made for it. */
static bool may_end(struct stook_urcu_worker *worker)
{
        if (!is_empty(worker) || !first_thread_is_gone())
                return false;
        __atomic_store_n(&worker->runs, 0, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                        /* M3 */
        return is_empty(worker) || __atomic_exchange_n(&worker->runs, 1, __ATOMIC_RELAXED);
}

/* Until a callback is queued; and then for more of them. False: the thread is to end. */
static bool wait_for_work(struct stook_urcu_worker *worker)
{
        uint32_t seen;
        uint64_t now, end;

        for (;;) {
                seen = __atomic_load_n(&worker->events, __ATOMIC_ACQUIRE);      /* M2 */
                if (!is_empty(worker))
                        break;
                sleep_while(&worker->events, seen, LOOK_NS);
                if (may_end(worker))
                        return false;
        }
        end = now_ns() + GATHER_NS;
        for (;;) {
                seen = __atomic_load_n(&worker->events, __ATOMIC_ACQUIRE);      /* M2 */
                now = now_ns();
                if (is_enough(worker) || now >= end)
                        return true;
                sleep_while(&worker->events, seen, end - now);
        }
}

/* It may be the last thread: what exit() calls then finds the signals of the program. */
static void *work(void *its_worker)
{
        struct stook_urcu_worker *worker = its_worker;
        sigset_t signals = worker->starter_signals;

        works_for = worker;
        while (wait_for_work(worker))
                serve(worker, true);
        pthread_sigmask(SIG_SETMASK, &signals, NULL);
        return NULL;
}

/* The thread handles no signal of the process. */
static void start(struct stook_urcu_worker *worker)
{
        sigset_t before;
        pthread_t thread;
        long cpus;

        block_signals(&before);
        if (!__atomic_exchange_n(&worker->runs, 1, __ATOMIC_RELAXED)) {
                cpus = sysconf(_SC_NPROCESSORS_ONLN);
                __atomic_store_n(&worker->enough, (cpus > 0 ? (uint32_t)cpus : 1) * ENOUGH_EACH,
                                 __ATOMIC_RELAXED);
                worker->starter_signals = before;
                if (!pthread_create(&thread, NULL, work, worker)) {
                        pthread_setname_np(thread, "stook-rcu");
                        pthread_detach(thread);
                } else {
                        __atomic_store_n(&worker->runs, 0, __ATOMIC_RELAXED);
                }
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void stook_urcu_worker_call(struct stook_urcu_worker *worker, struct stook_rcu_head *head,
                            void (*done)(struct stook_rcu_head *))
{
        struct stook_urcu_callback *callback = (struct stook_urcu_callback *)head;
        uint32_t waiting;
        bool was_empty;

        __atomic_store_n(&callback->done, done, __ATOMIC_RELAXED);
        was_empty = queue(worker, callback);
        waiting = __atomic_add_fetch(&worker->waiting, 1, __ATOMIC_RELAXED);
        if (was_empty || waiting == __atomic_load_n(&worker->enough, __ATOMIC_RELAXED))
                wake(worker);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                        /* M3 */
        if (!__atomic_load_n(&worker->runs, __ATOMIC_RELAXED))
                start(worker);
}

void stook_urcu_worker_barrier(struct stook_urcu_worker *worker)
{
        bool online = worker->flavour->read_ongoing();
        int state;

        /* With some flavours a thread is a reader by being online (I2). */
        if (online)
                worker->flavour->thread_offline();
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        serve(worker, false);
        pthread_setcancelstate(state, NULL);
        if (online)
                worker->flavour->thread_online();
}

/* ---- fork ---- */

bool stook_urcu_worker_before_fork(struct stook_urcu_worker *worker)
{
        sigset_t before;
        int state;

        /*
         * In a callback of another worker: a thread that forks elsewhere may have this mutex, and
         * wait for that of the other worker.
         */
        if (served && served != worker)
                return false;
        block_signals(&before);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        /*
         * In a callback of this worker, or a handler on top of it, the call goes on in both
         * processes.
         */
        if (served != worker)
                pthread_mutex_lock(&worker->serving);
        worker->forker_signals = before;
        worker->forker_state = state;
        return true;
}

void stook_urcu_worker_after_fork_parent(struct stook_urcu_worker *worker)
{
        sigset_t before = worker->forker_signals;
        int state = worker->forker_state;

        if (served != worker)
                pthread_mutex_unlock(&worker->serving);
        pthread_setcancelstate(state, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Only the thread that forked is left. */
void stook_urcu_worker_after_fork_child(struct stook_urcu_worker *worker)
{
        __atomic_store_n(&worker->runs, works_for == worker, __ATOMIC_RELAXED);
        if (!worker->runs && !is_empty(worker))
                start(worker);
        stook_urcu_worker_after_fork_parent(worker);
}
