/*
 * Purpose: see worker.h. liburcu's own call_rcu looks at its queue every 10 ms. At two million
 * frees a second that makes ten megabytes which no thread can use, and which are out of the cache
 * when they come back. Here a grace period begins as soon as enough callbacks wait, and 10 ms after
 * the first callback otherwise.
 *
 * src/epoch/epoch.c queues and sleeps in the same way. The two share no code: this library sees
 * the public headers only. And they differ in what a fork waits for: here also for the thread that
 * waits for readers, which is inside of liburcu; there for callbacks alone.
 *
 * Callbacks are numbered in the order in which they came. A grace period begins with a look at how
 * many there are (begin). When it is over, those of them are called that were not yet (passed). It
 * does not matter whose grace period that is: the thread's, a barrier's, or one that the program
 * waits for anyway and tells of (stook_urcu_begin). The one that ends first calls. So a barrier
 * takes a grace period and no longer. Where no thread can be had, callbacks are called by barriers,
 * and by what the program tells.
 *
 * The thread must not keep a finished process alive. What src/process/own_thread.c does is out of
 * reach here, and a rule that needs no list of threads does: once the first thread of the process
 * has ended, the thread ends when nothing is queued for half a second, and the next call makes
 * another.
 *
 * Invariants:
 *  I1 a callback is in the queue, in the batch, or being called by the holder of `calling`.
 *     It gets into the queue by one instruction: a child finds the queue whole, whatever the
 *     threads that it does not have were doing. The batch and its numbers change under `calling`.
 *  I2 a thread that holds `serving` waits for readers, and is none. It takes no mutex meanwhile. A
 *     thread that waits for either mutex is no reader. One that forks takes `calling` first, then
 *     `serving`. A handler that forks on top of a wait for readers has `serving` already: it only
 *     tries `calling`.
 *  I3 passed(n) calls no callback but the first n that were in the batch when begin returned n.
 * Concurrency:
 *  M1: a thread queues by a releasing compare-and-swap, and a thread takes the queue by an
 *     acquiring exchange. So the grace period begins after all that happened before the call.
 *     The exchange releases `batched`: a thread that finds the queue empty, acquiring, sees it.
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
#define FORK_TRIES 10000                /* a tenth of a millisecond each; arbitrary */
#define FORK_PAUSE_US 100
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

/* The worker whose `calling` this thread has; whose `serving`; and the one whose thread this is. */
static _Thread_local struct stook_urcu_worker *calls, *serves, *works_for;

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
        return calls || serves;
}

/*
 * No handler runs between the lock and the store to @mine. So a handler that forks finds that the
 * two agree.
 */
static void take_turn(pthread_mutex_t *mutex, struct stook_urcu_worker **mine,
                      struct stook_urcu_worker *worker)
{
        sigset_t before;

        block_signals(&before);
        pthread_mutex_lock(mutex);
        *mine = worker;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void give_turn(pthread_mutex_t *mutex, struct stook_urcu_worker **mine)
{
        sigset_t before;

        block_signals(&before);
        *mine = NULL;
        pthread_mutex_unlock(mutex);
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

/* Something is in the queue, or in the batch. */
static bool has_work(const struct stook_urcu_worker *worker)
{
        return __atomic_load_n(&worker->last, __ATOMIC_ACQUIRE) ||      /* M1 */
               __atomic_load_n(&worker->batched, __ATOMIC_RELAXED);
}

/* Behind what is in the batch, the oldest first. Holds `calling`. */
static void take_queue(struct stook_urcu_worker *worker)
{
        struct stook_urcu_callback *at, *first = NULL, **end = &worker->batch;

        __atomic_store_n(&worker->waiting, 0, __ATOMIC_RELAXED);
        if (!__atomic_load_n(&worker->last, __ATOMIC_RELAXED))
                return;
        __atomic_store_n(&worker->batched, 1, __ATOMIC_RELAXED);
        at = __atomic_exchange_n(&worker->last, NULL, __ATOMIC_ACQ_REL);        /* M1 */
        for (; at; worker->taken++) {
                struct stook_urcu_callback *before = at->next;

                __atomic_store_n(&at->next, first, __ATOMIC_RELAXED);
                first = at;
                at = before;
        }
        while (*end)
                end = &(*end)->next;
        __atomic_store_n(end, first, __ATOMIC_RELAXED);
}

/* A grace period is to begin after this. Return: for passed(). *@any: some wait for it. */
static uint64_t begin(struct stook_urcu_worker *worker, bool *any)
{
        uint64_t n;

        take_turn(&worker->calling, &calls, worker);
        take_queue(worker);
        n = worker->taken;
        *any = worker->batch;
        give_turn(&worker->calling, &calls);
        return n;
}

/*
 * A grace period is over that began after begin() returned @n. @is_worker: liburcu does not know
 * the thread. It is registered no earlier, for then it may be a reader (I2).
 */
static void passed(struct stook_urcu_worker *worker, uint64_t n, bool is_worker)
{
        take_turn(&worker->calling, &calls, worker);
        if (is_worker)
                worker->flavour->register_thread();
        while (worker->called < n) {
                struct stook_urcu_callback *callback = worker->batch;

                worker->batch = callback->next;
                worker->called++;
                if (!worker->batch)
                        __atomic_store_n(&worker->batched, 0, __ATOMIC_RELAXED);
                callback->done((struct stook_rcu_head *)callback);
        }
        if (is_worker)
                worker->flavour->unregister_thread();
        give_turn(&worker->calling, &calls);
}

/* One grace period, then what was queued before it. */
static void serve(struct stook_urcu_worker *worker, bool is_worker)
{
        bool any;
        uint64_t n = begin(worker, &any);

        if (!any)
                return;
        take_turn(&worker->serving, &serves, worker);
        worker->flavour->update_synchronize_rcu();
        give_turn(&worker->serving, &serves);
        passed(worker, n, is_worker);
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
        if (has_work(worker) || !first_thread_is_gone())
                return false;
        __atomic_store_n(&worker->runs, 0, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                        /* M3 */
        return !has_work(worker) || __atomic_exchange_n(&worker->runs, 1, __ATOMIC_RELAXED);
}

/* Until a callback is queued; and then for more of them. False: the thread is to end. */
static bool wait_for_work(struct stook_urcu_worker *worker)
{
        uint32_t seen;
        uint64_t now, end;

        for (;;) {
                seen = __atomic_load_n(&worker->events, __ATOMIC_ACQUIRE);      /* M2 */
                if (has_work(worker))
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

/* With some flavours a thread is a reader by being online (I2). Return: it was. */
static bool go_offline(struct stook_urcu_worker *worker, int *state)
{
        bool online = worker->flavour->read_ongoing();

        if (online)
                worker->flavour->thread_offline();
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, state);
        return online;
}

static void go_back(struct stook_urcu_worker *worker, bool online, int state)
{
        pthread_setcancelstate(state, NULL);
        if (online)
                worker->flavour->thread_online();
}

void stook_urcu_worker_barrier(struct stook_urcu_worker *worker)
{
        int state;
        bool online = go_offline(worker, &state);

        serve(worker, false);
        go_back(worker, online, state);
}

uint64_t stook_urcu_worker_begin(struct stook_urcu_worker *worker)
{
        uint64_t n;
        int state;
        bool online, any;

        if (stook_urcu_worker_serves())
                return 0;
        online = go_offline(worker, &state);
        n = begin(worker, &any);
        go_back(worker, online, state);
        return n;
}

void stook_urcu_worker_passed(struct stook_urcu_worker *worker, uint64_t n)
{
        int state;
        bool online;

        if (stook_urcu_worker_serves())
                return;
        online = go_offline(worker, &state);
        passed(worker, n, false);
        go_back(worker, online, state);
}

/* ---- fork ---- */

/* I2. False: it was not to be had in about a second. */
static bool try_calling(struct stook_urcu_worker *worker)
{
        for (unsigned tries = 0; pthread_mutex_trylock(&worker->calling); tries++) {
                if (tries == FORK_TRIES)
                        return false;
                usleep(FORK_PAUSE_US);
        }
        return true;
}

bool stook_urcu_worker_before_fork(struct stook_urcu_worker *worker)
{
        sigset_t before;
        int state;

        /*
         * In a callback of another worker: a thread that forks elsewhere may have this mutex, and
         * wait for that of the other worker.
         */
        if ((calls && calls != worker) || (serves && serves != worker))
                return false;
        block_signals(&before);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        /*
         * In a callback of this worker, or a handler on top of it or of a wait for readers, the
         * call goes on in both processes.
         */
        if (!serves) {
                if (!calls)
                        pthread_mutex_lock(&worker->calling);
                pthread_mutex_lock(&worker->serving);
        } else if (!try_calling(worker)) {
                pthread_setcancelstate(state, NULL);
                pthread_sigmask(SIG_SETMASK, &before, NULL);
                return false;
        }
        worker->forker_signals = before;
        worker->forker_state = state;
        return true;
}

void stook_urcu_worker_after_fork_parent(struct stook_urcu_worker *worker)
{
        sigset_t before = worker->forker_signals;
        int state = worker->forker_state;

        if (!serves)
                pthread_mutex_unlock(&worker->serving);
        if (!calls)
                pthread_mutex_unlock(&worker->calling);
        pthread_setcancelstate(state, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Only the thread that forked is left. */
void stook_urcu_worker_after_fork_child(struct stook_urcu_worker *worker)
{
        __atomic_store_n(&worker->runs, works_for == worker, __ATOMIC_RELAXED);
        if (!worker->runs && has_work(worker))
                start(worker);
        stook_urcu_worker_after_fork_parent(worker);
}
