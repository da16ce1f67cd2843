/*
 * What this proves: no byte of any charge is lost or counted twice, and no group is ever over its
 * limit. Threads in several groups free each other's objects meanwhile, on all CPUs. A timer's
 * handler allocates in them, too, and limits are met all the time. A thread that ends inside a
 * group leaves it.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <cmocka.h>
#include <stook/group.h>
#include <stook/stook.h>

#include "group/group.h"

#define THREADS 4
#define GROUPS  6 /* more than a slot has precharges, so that they replace each other */
#define SHARED  512
#define STEPS   150000

static struct stook_cache *cache;
static struct stook_group *top, *groups[GROUPS];
static void *shared[SHARED];            /* atomic: objects that any thread may free */
static uint64_t limit, over;

static void on_timer(int signal)
{
        int before = errno;

        (void)signal;
        stook_cache_free(cache, stook_cache_alloc(cache));
        stook_free(stook_malloc(100));
        errno = before;
}

static void *work(void *arg)
{
        uint64_t random = (uintptr_t)arg * 77777 + 1;

        for (int i = 0; i < STEPS; i++) {
                void *object, **place;

                random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
                if (random >> 58 == 0)
                        stook_group_enter(groups[(random >> 50) % GROUPS]);
                place = &shared[(random >> 40) % SHARED];
                object = (random >> 33 & 1) ? stook_cache_alloc(cache) : NULL;
                object = __atomic_exchange_n(place, object, __ATOMIC_ACQ_REL);
                stook_cache_free(cache, object);
                if (random >> 54 == 0 && stook_group_usage(top) > limit)
                        __atomic_add_fetch(&over, 1, __ATOMIC_RELAXED);
        }
        stook_group_enter(NULL);
        return NULL;
}

static void nothing_is_lost(void **state)
{
        struct itimerval timer = { { 0, 300 }, { 0, 300 } }, none = { 0 };
        struct stook_group_stats s = { .stats_size = sizeof(s) };
        pthread_t threads[THREADS];

        (void)state;
        for (uintptr_t i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
        signal(SIGPROF, on_timer);
        setitimer(ITIMER_PROF, &timer, NULL);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        setitimer(ITIMER_PROF, &none, NULL);
        signal(SIGPROF, SIG_IGN);

        assert_int_equal(over, 0);
        assert_int_equal(stook_group_get_stats(top, &s), 0);
        assert_true(s.peak_bytes <= limit && s.refusals > 0);
        for (int i = 0; i < SHARED; i++)
                stook_cache_free(cache, shared[i]);
        for (int i = 0; i < GROUPS; i++) {
                assert_int_equal(stook_group_usage(groups[i]), 0);
                stook_group_destroy(groups[i]);
        }
        assert_int_equal(stook_group_usage(top), 0);
        stook_group_destroy(top);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* ---- threads that end inside ---- */

static void *end_inside(void *group)
{
        stook_group_enter(group);
        stook_cache_free(cache, stook_cache_alloc(cache));
        return NULL;
}

static void *end_inside_the_second(void *both)
{
        struct stook_group **group = both;

        stook_group_enter(group[0]);
        stook_group_enter(group[1]);
        return NULL;
}

static void *put_and_end_inside(void *group)
{
        stook_group_enter(group);
        stook_group_destroy(group);
        assert_int_equal(((struct stook_group *)group)->state, STOOK_GROUP_LIVE);
        return NULL;
}

static void in_a_thread(void *(*run)(void *), void *arg)
{
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_thread_that_ends_leaves(void **state)
{
        struct stook_group *group[2] = { stook_group_create("one", NULL, 0),
                                         stook_group_create("other", NULL, 0) };

        (void)state;
        assert_true(group[0] && group[1]);
        for (int i = 0; i < 3; i++)
                in_a_thread(end_inside, group[0]);
        in_a_thread(end_inside_the_second, group);
        assert_int_equal(group[0]->references, 1);
        assert_int_equal(group[1]->references, 1);
        in_a_thread(put_and_end_inside, group[0]);      /* the last to leave */
        assert_int_equal(group[0]->state, STOOK_GROUP_FREE);
        stook_group_destroy(group[1]);
        assert_int_equal(group[1]->state, STOOK_GROUP_FREE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_thread_that_ends_leaves),
                cmocka_unit_test(nothing_is_lost),
        };

        cache = stook_cache_create(
                "charged", 1000,
                &(struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args),
                                            .flags = STOOK_CACHE_ACCOUNT });
        limit = SHARED / 4 * 1000;
        top = stook_group_create("top", NULL, limit);
        for (int i = 0; i < GROUPS; i++)
                groups[i] = stook_group_create("group", top, 0);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
