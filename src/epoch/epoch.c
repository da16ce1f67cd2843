/*
 * Purpose: see epoch.h: callbacks wait in a queue. A thread takes the queue, waits for readers
 * (epoch.h), and calls them. It is made by the first callback or barrier, blocks all signals, and
 * ends when no thread of the program is left (process/own_thread.c). A grace period begins as soon
 * as enough callbacks wait, or some time after the first.
 *
 * A barrier does not wait for that thread: it takes the queue, and serves it, itself. So it takes a
 * grace period and no longer, also where no thread can be had.
 *
 * Place: API; calls readers.c, gate, os.
 * Invariants:
 *  I1 a callback is in the queue, in `batch`, or being called by the thread that holds `calling`.
 *     It gets into the queue by one instruction.
 *  I2 `batch` is changed by the holder of both mutexes. The holder of `serving` alone waits for
 *     readers. So a thread that forks waits for `calling`, never for readers.
 *  I3 a thread that waits for `serving` or for readers is no reader.
 *  I4 a callback, or a handler on top of the wait, may leave by a jump, or end its thread. Then the
 *     mutexes stay locked until that thread calls again from a shallower frame (base/lock.h), or
 *     ends. It is reported. What is left of the batch is called by the next thread that serves.
 * Concurrency:
 *  M1: a thread queues by a releasing compare-and-swap, and a thread takes the queue by an
 *     acquiring exchange: the grace period begins after all that happened before the call.
 *  M2: a thread that queues raises `events`, releasing, and then wakes. The serving thread reads
 *     `events`, acquiring, before it looks at the queue, and sleeps while it is as read.
 * Failure: without a thread, callbacks wait for the next call, which tries again, or for a barrier;
 *  in a child of _Fork() or clone() for a barrier.
 *  If the system refuses membarrier later on, no grace period ends any more: reported once.
 */
#include <errno.h>
#include <pthread.h>

#include "base/lock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "epoch/epoch.h"
#include "gate/gate.h"
#include "os/os.h"
#include "process/process.h"
#include "report/report.h"
#include <stook/rcu.h>

#define ENOUGH    64                    /* callbacks that are worth a grace period; arbitrary */
#define GATHER_NS 10000000              /* for so many, at most; arbitrary */
/* Between looks of the thread whether it is to end, and tries while membarrier is refused. */
#define LOOK_NS   500000000             /* arbitrary */
#define FORK_TRIES 1000                 /* a tenth of a millisecond each; arbitrary */
#define FORK_PAUSE_NS 100000

/* A head while it waits. Stores are atomic: a head may lie where stale readers look (sheaf.h). */
struct callback {
        struct callback *next;
        void (*done)(struct stook_rcu_head *);
};
_Static_assert(sizeof(struct stook_rcu_head) >= sizeof(struct callback), "two words");

static struct callback *last;           /* atomic: M1: the queue, from its end */
static struct callback *batch;          /* I2: taken off the queue; the oldest first */
static uint32_t waiting;                /* atomic, a hint: callbacks since the queue was taken */
static uint32_t events;                 /* atomic: M2; a futex the thread sleeps on */
static uint32_t runs;                   /* atomic: the thread exists, or must not be made now */
static uint32_t told;                   /* atomic: that membarrier is refused */
static uintptr_t worker;                /* atomic: stook_self of the thread, or 0 */
static struct stook_mutex serving = STOOK_MUTEX_INIT(STOOK_RANK_SERVING);
static struct stook_mutex calling = STOOK_MUTEX_INIT(STOOK_RANK_CALLING);
static bool kept_still;                 /* `calling`: it is held around a fork */
/* Atomic: the stack pointer of the thread that holds `serving`; 0: not known. */
static uintptr_t frame;

/* ---- the queue ---- */

/* True: it was empty. */
static bool queue(struct callback *callback)
{
        struct callback *before = __atomic_load_n(&last, __ATOMIC_RELAXED);

        do
                __atomic_store_n(&callback->next, before, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&last, &before, callback, true, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED));         /* M1 */
        return !before;
}

/* Behind what is in the batch, in the order in which they came. Holds both mutexes. */
static void take_queue(void)
{
        struct callback *at, *first = NULL, **end = &batch;

        __atomic_store_n(&waiting, 0, __ATOMIC_RELAXED);
        at = __atomic_exchange_n(&last, NULL, __ATOMIC_ACQUIRE);        /* M1 */
        while (at) {
                struct callback *before = at->next;

                __atomic_store_n(&at->next, first, __ATOMIC_RELAXED);
                first = at;
                at = before;
        }
        while (*end)
                end = &(*end)->next;
        __atomic_store_n(end, first, __ATOMIC_RELAXED);
}

static bool has_work(void)
{
        return __atomic_load_n(&last, __ATOMIC_RELAXED) ||
               __atomic_load_n(&batch, __ATOMIC_RELAXED);
}

/* ---- serving ---- */

static void set_frame(uintptr_t place)
{
        __atomic_store_n(&frame, place, __ATOMIC_RELAXED);
}

static void call_batch(void)
{
        set_frame(stook_lock_stack_pointer());
        for (;;) {
                struct callback *callback;

                stook_mutex_lock(&calling);
                callback = batch;
                if (callback) {
                        __atomic_store_n(&batch, callback->next, __ATOMIC_RELAXED);
                        callback->done((struct stook_rcu_head *)callback);
                }
                stook_mutex_unlock(&calling);
                if (!callback)
                        return;
        }
}

static STOOK_COLD void tell_refused(void)
{
        if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
                stook_report_found(STOOK_FAULT_RCU, NULL, NULL, NULL, 0,
                                   "membarrier is refused since readers began: "
                                   "no grace period ends any more");
}

static void unlock_serving(void)
{
        set_frame(0);
        stook_mutex_unlock(&serving);
}

/* One grace period, then what was queued before it. False: there is none to be had. */
static bool serve(void)
{
        bool over;

        stook_mutex_lock(&serving);
        set_frame(stook_lock_stack_pointer() - STOOK_HELD_GAP); /* handlers begin further down */
        stook_mutex_lock(&calling);
        take_queue();
        stook_mutex_unlock(&calling);
        over = stook_readers_wait();
        if (over)
                call_batch();
        unlock_serving();
        if (!over)
                tell_refused();
        return over;
}

/*
 * I4: this thread holds `serving` by a call that is gone, and that recorded the frame @seen. A
 * handler on top of this function may find the same. Of the two the one that replaces the frame
 * recovers. Once another thread serves, the frame is that thread's, and is not @seen.
 */
static STOOK_COLD void recover(uintptr_t seen)
{
        if (!__atomic_compare_exchange_n(&frame, &seen, stook_lock_stack_pointer(), false,
                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                return;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (stook_mutex_is_mine(&calling))
                stook_mutex_unlock(&calling);
        unlock_serving();
        stook_report_found(STOOK_FAULT_RCU, NULL, NULL, NULL, 0,
                           "a callback, or a wait for readers, was left by a jump, "
                           "or by the end of its thread");
}

/* True: this thread holds `serving`. The frame comes first: so *seen is not a later holder's. */
STOOK_INLINE bool holds_serving(uintptr_t *seen)
{
        *seen = __atomic_load_n(&frame, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        return stook_mutex_is_mine(&serving);
}

/* True: a call of this thread is in the midst of a wait for readers, or of a callback. */
STOOK_INLINE bool is_serving(void)
{
        uintptr_t seen;

        if (STOOK_LIKELY(!holds_serving(&seen)))
                return false;
        if (!stook_lock_frame_is_gone(seen, stook_lock_stack_pointer()))
                return true;
        recover(seen);
        return false;
}

/* Until a callback waits; and then for more of them. False: none came for LOOK_NS, or less. */
static bool wait_for_work(void)
{
        uint32_t before = __atomic_load_n(&events, __ATOMIC_ACQUIRE);           /* M2 */
        uint64_t end;

        if (!has_work())
                stook_os_futex_wait(&events, before, LOOK_NS);
        if (!has_work())
                return false;
        end = stook_os_clock_ns() + GATHER_NS;
        for (;;) {
                uint32_t seen = __atomic_load_n(&events, __ATOMIC_ACQUIRE);     /* M2 */
                uint64_t now = stook_os_clock_ns();

                if (__atomic_load_n(&waiting, __ATOMIC_RELAXED) >= ENOUGH || now >= end)
                        return true;
                stook_os_futex_wait(&events, seen, end - now);
        }
}

/* Callbacks that wait at the end are called by a barrier in a handler of exit(), or never. */
static void work(void)
{
        uint64_t look = stook_os_clock_ns() + LOOK_NS;

        stook_gate_check();
        __atomic_store_n(&worker, (uintptr_t)stook_self, __ATOMIC_RELAXED);
        (void)stook_readers_is_inside();        /* a record: its end is noticed (I4) */
        for (;;) {
                uint64_t now = stook_os_clock_ns();

                if (now >= look) {
                        if (stook_own_threads_are_alone())
                                break;
                        look = now + LOOK_NS;
                }
                if (wait_for_work() && !serve())
                        stook_os_pause(LOOK_NS);
        }
        stook_epoch_thread_ends();
}

static struct stook_own_thread thread = { .run = work, .name = STOOK_RCU_THREAD };

static STOOK_NOINLINE void start(void)
{
        if (!__atomic_exchange_n(&runs, 1, __ATOMIC_RELAXED) && stook_own_thread_start(&thread))
                __atomic_store_n(&runs, 0, __ATOMIC_RELAXED);
}

static void start_if_needed(void)
{
        if (STOOK_UNLIKELY(!__atomic_load_n(&runs, __ATOMIC_RELAXED)))
                start();
}

/* I4 */
void stook_epoch_thread_ends(void)
{
        uintptr_t seen;

        if (__atomic_load_n(&worker, __ATOMIC_RELAXED) == (uintptr_t)stook_self) {
                __atomic_store_n(&worker, 0, __ATOMIC_RELAXED);
                __atomic_store_n(&runs, 0, __ATOMIC_RELAXED);
        }
        if (holds_serving(&seen))
                recover(seen);
}

/* ---- the table ---- */

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        struct callback *callback = (struct callback *)head;
        bool was_empty;
        uint32_t now;

        stook_gate_check();
        (void)is_serving();
        __atomic_store_n(&callback->done, done, __ATOMIC_RELAXED);
        was_empty = queue(callback);
        now = __atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED);
        if (was_empty || now == ENOUGH) {
                __atomic_fetch_add(&events, 1, __ATOMIC_RELEASE);       /* M2 */
                stook_os_futex_wake(&events);
        }
        start_if_needed();
}

/* A call that holds `serving` waits for readers, or calls a callback. */
STOOK_INLINE bool would_wait_for_itself(void)
{
        return is_serving() || stook_readers_is_inside();
}

static int may_wait(void)
{
        return would_wait_for_itself() ? 0 : 2;
}

static STOOK_COLD void misuse(const char *what)
{
        stook_report_fault(STOOK_FAULT_RCU, NULL, NULL, NULL, 0, what);
}

/* A callback that is a cancellation point must not end the thread that holds both mutexes. */
STOOK_API int stook_epoch_synchronize(void)
{
        bool over;
        int state;

        if (!stook_gate_start())
                return -ENOMEM;
        stook_gate_check();
        if (would_wait_for_itself()) {
                misuse("stook_epoch_synchronize inside a read section or a callback");
                return -EDEADLK;
        }
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        over = serve();
        pthread_setcancelstate(state, NULL);
        return over ? 0 : -ENOTSUP;
}

static void barrier(void)
{
        stook_epoch_synchronize();
        start_if_needed();
}

STOOK_API void stook_epoch_read_lock(void)
{
        stook_readers_begin();
}

STOOK_API void stook_epoch_read_unlock(void)
{
        if (STOOK_UNLIKELY(!stook_readers_end()))
                misuse("stook_epoch_read_unlock outside of a read section");
}

__attribute__((visibility("default"))) const struct stook_rcu stook_rcu_epoch = {
        .ops_size = sizeof(struct stook_rcu),
        .call = call,
        .barrier = barrier,
        .read_lock = stook_epoch_read_lock,
        .read_unlock = stook_epoch_read_unlock,
        .may_wait = may_wait,
};

/* ---- fork ---- */

void stook_epoch_fork_prepare(void)
{
        if (stook_mutex_is_mine(&calling))
                return;
        for (unsigned i = 0; i < FORK_TRIES; i++) {
                if (stook_mutex_try(&calling)) {
                        kept_still = true;
                        return;
                }
                stook_os_pause(FORK_PAUSE_NS);
        }
}

void stook_epoch_fork_parent(void)
{
        if (!stook_mutex_is_mine(&calling) || !kept_still)
                return;
        kept_still = false;
        stook_mutex_unlock(&calling);
}

static void set_runs(bool barred)
{
        bool there = __atomic_load_n(&worker, __ATOMIC_RELAXED);

        __atomic_store_n(&runs, there || barred, __ATOMIC_RELAXED);
}

/* A callback of this thread, or a handler on top of one, goes on: it keeps what it holds. */
void stook_epoch_fork_child(bool libc_is_whole)
{
        stook_readers_fork_child();
        /* Where the thread is gone, a later thread may have its address. */
        if (__atomic_load_n(&worker, __ATOMIC_RELAXED) != (uintptr_t)stook_self)
                __atomic_store_n(&worker, 0, __ATOMIC_RELAXED);
        set_runs(!libc_is_whole);
        if (!stook_mutex_is_mine(&serving)) {
                set_frame(0);
                stook_mutex_reset(&serving);
        }
        if (!stook_mutex_is_mine(&calling) || kept_still)
                stook_mutex_reset(&calling);
        kept_still = false;
}

void stook_epoch_fork_revive(bool now)
{
        set_runs(false);
        if (now && has_work())
                start_if_needed();
}
