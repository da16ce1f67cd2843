/*
 * What this proves: the _nolock calls never wait. Every lock of the heap is held by a thread that
 * stands still, or every lock is refused. The calls allocate and free all the same, no call sleeps,
 * and no object is handed out twice or lost. When the page layer fails they return NULL with
 * ENOMEM, and give back what they had taken. Objects pass between ordinary and nolock calls in both
 * directions. A handler may interrupt one call by another.
 * Sleeping is faked and counted, so nothing here depends on time.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "base/lock.h"
#include "base/thread.h"
#include "cache/cache.h"
#include "os/os.h"
#include "pages/span.h"

#define SIZE 200
#define MANY 3000

static struct stook_cache *cache;
static unsigned sleeps;                 /* atomic */
static void *held[MANY];
static struct stook_sheaf *lent;        /* returned where locks are free */

static void count_sleep(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value, (void)ns;
        __atomic_add_fetch(&sleeps, 1, __ATOMIC_RELAXED);
}

static int compare(const void *a, const void *b)
{
        uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

        return x < y ? -1 : x > y;
}

static void all_differ(size_t n)
{
        qsort(held, n, sizeof(held[0]), compare);
        for (size_t i = 1; i < n; i++)
                assert_ptr_not_equal(held[i - 1], held[i]);
}

static void is_clean(void)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        stook_sheaf_return(cache, lent);
        lent = NULL;
        assert_int_equal(stook_self->locks_held, 0);
        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        assert_int_equal(s.objects_live, 0);
        assert_int_equal(stook_cache_validate(cache), 0);
}

/*
 * Many of each kind at once, so that slots and barns do not do: slabs and pages are asked, and
 * given back to.
 */
static void work(void)
{
        static const size_t sizes[] = { 24, 1000, 40000, 200000, 3 << 20 };

        for (int round = 0; round < 2; round++) {
                for (size_t i = 0; i < MANY; i++) {
                        held[i] = stook_cache_alloc_nolock(cache);
                        assert_non_null(held[i]);
                        memset(held[i], 0x5a, SIZE);
                }
                all_differ(MANY);
                for (size_t i = 0; i < MANY; i++)
                        stook_cache_free_nolock(cache, held[i]);
        }
        assert_int_equal(stook_cache_alloc_bulk(cache, STOOK_ALLOC_NOLOCK, MANY, held), 0);
        all_differ(MANY);
        stook_cache_free_bulk_nolock(cache, MANY, held);
        for (size_t i = 0; i < MANY; i++)
                assert_non_null(
                        held[i] = stook_cache_alloc_flags(cache, STOOK_ALLOC_NOLOCK |
                                                          STOOK_ALLOC_ZERO));
        all_differ(MANY);
        if (!lent)
                lent = stook_sheaf_prefill(cache, STOOK_ALLOC_NOLOCK, 50);
        assert_non_null(lent);
        assert_int_equal(stook_sheaf_refill(cache, STOOK_ALLOC_NOLOCK, &lent, 500), 0);
        for (size_t i = 0; i < MANY; i++)
                stook_cache_free_nolock(cache, held[i]);
        while (stook_sheaf_available(lent))
                stook_cache_free_nolock(cache, stook_sheaf_alloc(cache, lent));
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
                size_t n = sizes[k] > 100000 ? 20 : 400;

                for (size_t i = 0; i < n; i++) {
                        held[i] = stook_malloc_nolock(sizes[k]);
                        assert_non_null(held[i]);
                        memset(held[i], 0x5a, sizes[k]);
                }
                all_differ(n);
                /* One by one, and as objects of any cache or none. */
                for (size_t i = 0; i < n / 2; i++)
                        stook_free_nolock(held[i]);
                stook_cache_free_bulk_nolock(NULL, n - n / 2, held + n / 2);
        }
}

static void works_with_locks_free(void **state)
{
        (void)state;
        work();
        is_clean();
        assert_int_equal(sleeps, 0);
}

/* ---- every lock held ---- */

static uint32_t has_all, may_go;        /* atomic */

static void each_cache(void (*call)(struct stook_slabs *))
{
        for (unsigned i = 1; i < stook_caches_bound(); i++)
                if (stook_cache_at(i)->state == STOOK_CACHE_LIVE)
                        call(&stook_cache_at(i)->slabs);
}

static void hold_slabs(struct stook_slabs *slabs)
{
        assert_true(stook_slabs_fork_prepare(slabs));
}

static void *hold_everything(void *unused)
{
        (void)unused;
        each_cache(hold_slabs);
        assert_true(stook_pages_fork_prepare());
        __atomic_store_n(&has_all, 1, __ATOMIC_RELEASE);
        while (!__atomic_load_n(&may_go, __ATOMIC_ACQUIRE))
                stook_os_futex_wait(&may_go, 0, 1000000000);
        stook_pages_fork_parent();
        each_cache(stook_slabs_fork_parent);
        return NULL;
}

static void works_with_every_lock_held(void **state)
{
        pthread_t holder;

        (void)state;
        has_all = may_go = 0;
        assert_int_equal(pthread_create(&holder, NULL, hold_everything, NULL), 0);
        while (!__atomic_load_n(&has_all, __ATOMIC_ACQUIRE))
                stook_os_futex_wait(&has_all, 0, 1000000);
        work();
        assert_int_equal(sleeps, 0);
        /* It is the calls' doing: an ordinary one has a lock to wait for here. */
        for (size_t i = 0; i < MANY; i++)
                held[i] = stook_cache_alloc(cache);
        assert_true(sleeps > 0);
        for (size_t i = 0; i < MANY; i++)
                stook_cache_free(cache, held[i]);
        __atomic_store_n(&may_go, 1, __ATOMIC_RELEASE);
        stook_os_futex_wake(&may_go);
        assert_int_equal(pthread_join(holder, NULL), 0);
        is_clean();
}

static void *work_in_a_new_thread(void *unused)
{
        work();
        return unused;
}

/* The lock that slots grow under is among them: the thread is new, and never gets a slot. */
static void works_with_every_lock_refused(void **state)
{
        pthread_t thread;

        (void)state;
        stook_inject.lock_refuse_every = 1;
        work();
        assert_int_equal(pthread_create(&thread, NULL, work_in_a_new_thread, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        stook_inject.lock_refuse_every = 0;
        assert_int_equal(sleeps, 0);
        is_clean();
}

/* ---- no memory ---- */

static void says_so_without_memory(void **state)
{
        size_t n = 0;
        void *large;

        (void)state;
        stook_cache_shrink(cache);
        stook_inject.span_fail_from = 1;
        errno = 0;
        while (n < MANY && (held[n] = stook_cache_alloc_nolock(cache)))
                n++;
        assert_true(n < MANY);
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        large = stook_malloc_nolock(1 << 20);
        assert_null(large);
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_null(stook_malloc_nolock(SIZE_MAX - 4096));
        assert_int_equal(errno, ENOMEM);
        errno = EDOM;
        stook_cache_free_bulk_nolock(cache, n / 2, held + n - n / 2);
        n -= n / 2;
        while (n)
                stook_cache_free_nolock(cache, held[--n]);
        assert_int_equal(errno, EDOM);
        stook_inject.span_fail_from = 0;
        is_clean();
        work();
        is_clean();
}

/* ---- both kinds of call ---- */

static void objects_go_between_both_kinds(void **state)
{
        void *a = stook_cache_alloc_nolock(cache), *b = stook_cache_alloc(cache);
        void *c = stook_malloc_nolock(100), *d = stook_malloc(100), *e = stook_malloc_nolock(0);

        (void)state;
        assert_true(a && b && c && d && e);
        stook_cache_free(cache, a);
        stook_cache_free_nolock(cache, b);
        stook_free(c);
        stook_free_nolock(d);
        stook_free_nolock(e);
        stook_free_nolock(NULL);
        stook_cache_free_nolock(cache, NULL);
        is_clean();
}

/* ---- on top of each other ---- */

static unsigned interrupted, failed;    /* atomic */

static void in_handler(int signal)
{
        int saved = errno;
        void *a = stook_cache_alloc_nolock(cache), *b = stook_malloc_nolock(5000);

        (void)signal;
        if (!a || !b)
                __atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
        if (a)
                memset(a, 0x11, SIZE);
        if (b)
                memset(b, 0x22, 5000);
        stook_cache_free_nolock(cache, a);
        stook_free_nolock(b);
        __atomic_add_fetch(&interrupted, 1, __ATOMIC_RELAXED);
        errno = saved;
}

static void one_interrupts_another(void **state)
{
        struct sigaction action = { .sa_handler = in_handler, .sa_flags = SA_RESTART };
        struct itimerval every = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };

        (void)state;
        sigaction(SIGPROF, &action, NULL);
        setitimer(ITIMER_PROF, &every, NULL);
        while (__atomic_load_n(&interrupted, __ATOMIC_RELAXED) < 200)
                work();         /* however coarse the system's clock is */
        setitimer(ITIMER_PROF, &never, NULL);
        assert_int_equal(failed, 0);
        assert_int_equal(sleeps, 0);
        is_clean();
}

static int setup(void **state)
{
        static const struct stook_lock_sleep counted = { count_sleep, stook_os_futex_wake };

        (void)state;
        cache = stook_cache_create("nolock", SIZE, NULL);
        if (cache)
                stook_cache_free(cache, stook_cache_alloc(cache));
        stook_lock_set_sleep(&counted);
        return cache ? 0 : -1;
}

static int no_sleeps(void **state)
{
        (void)state;
        sleeps = 0;
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(works_with_locks_free, no_sleeps),
                cmocka_unit_test_setup(works_with_every_lock_held, no_sleeps),
                cmocka_unit_test_setup(works_with_every_lock_refused, no_sleeps),
                cmocka_unit_test_setup(says_so_without_memory, no_sleeps),
                cmocka_unit_test_setup(objects_go_between_both_kinds, no_sleeps),
                cmocka_unit_test_setup(one_interrupts_another, no_sleeps),
        };

        return cmocka_run_group_tests(tests, setup, NULL);
}
