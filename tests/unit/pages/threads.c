/*
 * Proves: spans taken, resized, moved, purged and given back by several threads at once never
 * overlap and keep their content, while some locks are refused and signal handlers do the same on
 * top; that in the end the layer is sound, and all address space that was ever taken is free again.
 * A child forked meanwhile, which libc does not know of, has a layer that is sound once repaired.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "pages_env.h"
#include "base/inject.h"
#include "base/lock.h"
#include "pages/advice.h"
#include "pages/meta.h"
#include "pages/source.h"

#define THREADS 4
#define LIVE    40
#define SECONDS 1

static uint32_t stop;
static size_t at_start;                 /* left out at the range's start */
static size_t faults, steps, handled, forks;    /* atomic */

static void fault(const char *what)
{
        if (__atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED) < 10)
                (void)!write(2, what, strlen(what));
}

struct live {
        struct stook_span *span;
        uint64_t stamp;
        size_t   stamped;               /* bytes of it */
};

/* One word in each page, or in each of 64 parts. */
static size_t stride(size_t bytes)
{
        return (bytes / 64 + 4095) & ~(size_t)4095;
}

static void stamp(struct live *l)
{
        l->stamped = l->span->bytes;
        for (size_t at = 0; at < l->stamped; at += stride(l->stamped))
                *(uint64_t *)(l->span->start + at) = l->stamp + at;
        *(uint64_t *)(l->span->start + l->stamped - 8) = l->stamp;
}

static void check(struct live *l, size_t bytes)
{
        for (size_t at = 0; at < bytes; at += stride(l->stamped))
                if (*(uint64_t *)(l->span->start + at) != l->stamp + at)
                        fault("a stamp was overwritten\n");
        if (bytes == l->stamped && *(uint64_t *)(l->span->start + bytes - 8) != l->stamp)
                fault("a last word was overwritten\n");
}

static size_t some_bytes(uint64_t *random)
{
        uint64_t r = next_random(random);

        switch (r % 64) {
        case 0:
                return ((size_t)32 << 20) + (r >> 8) % ((size_t)8 << 20);
        case 1 ... 4:
                return 1 + (r >> 8) % ((size_t)4 << 20);
        case 5 ... 20:
                return 1 + (r >> 8) % ((size_t)256 << 10);
        default:
                return 1 + (r >> 8) % ((size_t)32 << 10);
        }
}

static void take(struct live *l, uint64_t *random)
{
        uint64_t r = next_random(random);
        size_t bytes = some_bytes(random), align = r % 8 ? 0 : (size_t)4096 << (r >> 8) % 10;

        l->span = stook_span_take(0, bytes, align);
        if (!l->span) {
                fault("no memory\n");
                return;
        }
        if (l->span->bytes < bytes || (align && l->span->start & (align - 1)))
                fault("not what was asked for\n");
        if (stook_span_is_zero(l->span))
                for (size_t at = 0; at < l->span->bytes; at += stride(l->span->bytes))
                        if (*(uint64_t *)(l->span->start + at))
                                fault("zero memory is not zero\n");
        l->stamp = next_random(random);
        __atomic_store_n(&l->span->kind, r & 64 ? STOOK_SPAN_LARGE : STOOK_SPAN_TAKEN,
                         __ATOMIC_RELEASE);
        stamp(l);
}

static void give(struct live *l)
{
        check(l, l->stamped);
        stook_span_give(l->span);
        l->span = NULL;
}

static void change(struct live *l, uint64_t *random)
{
        size_t before = l->span->bytes, bytes = some_bytes(random);

        if (next_random(random) & 1) {
                struct stook_span *to = stook_span_move(l->span, bytes);

                if (!to) {
                        fault("no memory to move to\n");
                        return;
                }
                l->span = to;
        } else if (!stook_span_resize(l->span, bytes)) {
                return;
        }
        check(l, l->span->bytes < before ? l->span->bytes : before);
        l->stamp = next_random(random);
        stamp(l);
}

static void step(struct live *live, unsigned count, uint64_t *random)
{
        uint64_t r = next_random(random);
        struct live *l = &live[r % count];

        if (!l->span)
                take(l, random);
        else if (r >> 32 & 3)
                give(l);
        else
                change(l, random);
        if (!(r >> 40 & 255))
                stook_pages_purge((r >> 50 & 7) << 20);
        else if (!(r >> 40 & 15))
                stook_pages_step();
        __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED);
}

static __thread struct live on_top[4];
static __thread uint64_t on_top_random;
static __thread bool working;

static void handler(int signal)
{
        int before = errno;

        (void)signal;
        if (working) {
                __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
                for (unsigned i = 0; i < 3; i++)
                        step(on_top, 4, &on_top_random);
        }
        errno = before;
}

static void *work(void *arg)
{
        uint64_t random = *(uint64_t *)arg | 1;
        struct live live[LIVE] = { 0 };

        on_top_random = next_random(&random) | 1;
        working = true;
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
                step(live, LIVE, &random);
        working = false;
        for (unsigned i = 0; i < LIVE; i++)
                if (live[i].span)
                        give(&live[i]);
        for (unsigned i = 0; i < 4; i++)
                if (on_top[i].span)
                        give(&on_top[i]);
        return NULL;
}

/* The only thread of a process that was forked at any moment. */
static int child(void)
{
        struct live live[LIVE] = { 0 };
        uint64_t random = 88172645463325252u;

        alarm(60);
        faults = 0;
        stook_inject.lock_refuse_every = 0;
        stook_pages_fork_child(false);
        if (stook_pages_validate(print_fault))
                return 1;
        for (unsigned i = 0; i < 300; i++)
                step(live, LIVE, &random);
        for (unsigned i = 0; i < LIVE; i++)
                if (live[i].span)
                        give(&live[i]);
        if (stook_pages_validate(print_fault))
                return 2;
        return faults ? 3 : 0;
}

/* Bytes that spans describe. Quiescent: no two of them cover the same. */
static void add_bytes(struct stook_span *span, void *data)
{
        *(size_t *)data += span->bytes;
}

static size_t described(void)
{
        size_t bytes = 0;

        stook_meta_span_for_each(add_bytes, &bytes);
        return bytes;
}

static size_t handed_out(void)
{
        return stook_range_of(stook_range.base)->frontier - at_start;
}

static void run(uint32_t refuse_every, unsigned us_between_signals, bool fork)
{
        struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
        struct itimerval every = { { 0, us_between_signals }, { 0, us_between_signals } },
                         never = { 0 };
        uint64_t seed = seed_of_run(), seeds[THREADS], end;
        pthread_t threads[THREADS];
        struct stook_pages_stats s;
        int bad = 0;

        stop = 0;
        faults = steps = handled = forks = 0;
        __atomic_store_n(&stook_inject.lock_refuse_every, refuse_every, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < THREADS; i++) {
                seeds[i] = next_random(&seed);
                assert_int_equal(pthread_create(&threads[i], NULL, work, &seeds[i]), 0);
        }
        sigaction(SIGPROF, &sa, NULL);
        if (us_between_signals)
                setitimer(ITIMER_PROF, &every, NULL);
        end = stook_os_clock_ms() + SECONDS * 1000;
        while (stook_os_clock_ms() < end && !bad) {
                usleep(10000);
                if (fork) {
                        pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, NULL, NULL, 0);

                        if (!pid)
                                _exit(child());
                        if (pid < 0 || waitpid(pid, &bad, 0) != pid)
                                bad = -1;
                        forks++;
                }
        }
        setitimer(ITIMER_PROF, &never, NULL);
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        __atomic_store_n(&stook_inject.lock_refuse_every, 0, __ATOMIC_RELAXED);
        stook_pages_purge(0);
        assert_sound();
        stook_pages_stats(&s);
        printf("%zu steps, %zu handlers, %zu forks, %zu spans free\n", steps, handled, forks,
               s.free_spans);
        assert_int_equal(faults, 0);
        assert_int_equal(bad, 0);
        assert_int_equal(s.taken_bytes, 0);
        assert_int_equal(s.free_dirty_bytes, 0);
        if (stook_ranges_count() == 1)
                assert_int_equal(described(), handed_out());    /* nothing is lost */
}

static void test_threads(void **state) { (void)state; run(0, 0, false); }
static void test_refused_locks(void **state) { (void)state; run(3, 0, false); }
static void test_handlers(void **state) { (void)state; run(0, 1000, false); }
static void test_handlers_and_refused_locks(void **state) { (void)state; run(7, 1000, false); }
static void test_forks(void **state) { (void)state; run(0, 0, true); }
static void test_forks_and_refused_locks(void **state) { (void)state; run(5, 0, true); }

/* What was purged is asked for again whenever it is taken. */
static void test_huge_pages_again(void **state)
{
        (void)state;
        stook_pages_set_thp(STOOK_THP_ALWAYS);
        run(5, 1000, true);
        stook_pages_set_thp(STOOK_THP_AUTO);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_threads),
                cmocka_unit_test(test_refused_locks),
                cmocka_unit_test(test_handlers),
                cmocka_unit_test(test_handlers_and_refused_locks),
                cmocka_unit_test(test_forks),
                cmocka_unit_test(test_forks_and_refused_locks),
                cmocka_unit_test(test_huge_pages_again),
        };

        if (!stook_pages_start())
                return 1;
        at_start = stook_range_of(stook_range.base)->frontier;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
