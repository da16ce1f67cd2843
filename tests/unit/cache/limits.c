/*
 * What this proves: callers own as many objects of a limited cache as its limit says, and no more,
 * by every way to allocate; beside other threads too; the low-water mark is told once for each
 * crossing; and objects are asked back before an allocation fails, by one call at a time, also in
 * children of forks.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"

enum { LIMIT = 500, LOW = 100, THREADS = 4, ROUNDS = 150 };

static void *objects[2 * LIMIT];
static unsigned told;
static size_t told_left;

static void on_low(struct stook_cache *cache, size_t left, void *data)
{
        assert_non_null(cache);
        assert_ptr_equal(data, objects);
        told++;
        told_left = left;
}

static struct stook_cache_args limited(uint64_t flags, size_t limit)
{
        return (struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args),
                                          .flags = flags, .limit_objects = limit,
                                                  .limit_data = objects };
}

static struct stook_cache *create(const struct stook_cache_args *args)
{
        struct stook_cache *cache = stook_cache_create("limited", 64, args);

        assert_non_null(cache);
        return cache;
}

/* Takes until none is to be had. Return: how many. */
static size_t take_all(struct stook_cache *cache, size_t from)
{
        size_t n = from;

        errno = 0;
        while (n < 2 * LIMIT && (objects[n] = stook_cache_alloc(cache)))
                n++;
        assert_int_equal(errno, ENOMEM);
        return n - from;
}

static void give(struct stook_cache *cache, size_t from, size_t to)
{
        for (size_t i = from; i < to; i++)
                stook_cache_free(cache, objects[i]);
}

static void exactly_so_many(void **state)
{
        struct stook_cache_args args = limited((uint64_t)(uintptr_t)*state, LIMIT);
        struct stook_cache *cache = create(&args);
        unsigned char *zeros;

        assert_int_equal(take_all(cache, 0), LIMIT);
        assert_null(stook_cache_zalloc(cache));
        assert_null(stook_cache_alloc_flags(cache, STOOK_ALLOC_NOWAIT));
        assert_null(stook_cache_alloc_nolock(cache));
        give(cache, LIMIT - 1, LIMIT);
        zeros = stook_cache_zalloc(cache);
        assert_non_null(zeros);
        for (unsigned i = 0; i < 64; i++)
                assert_int_equal(zeros[i], 0);
        assert_null(stook_cache_alloc(cache));
        stook_cache_free_nolock(cache, zeros);
        stook_free(objects[0]);                         /* by a call that names no cache */
        assert_int_equal(take_all(cache, LIMIT) + LIMIT - 2, LIMIT);
        stook_cache_free_bulk(NULL, LIMIT - 2, objects + 1);
        stook_cache_shrink(cache);
        give(cache, LIMIT, LIMIT + 2);
        assert_int_equal(take_all(cache, 0), LIMIT);
        give(cache, 0, LIMIT);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void bulk_calls_get_all_or_nothing(void **state)
{
        struct stook_cache_args args = limited(0, LIMIT);
        struct stook_cache *cache = create(&args);

        (void)state;
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, LIMIT + 1, objects), -ENOMEM);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, LIMIT - 10, objects), 0);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 11, objects + LIMIT - 10), -ENOMEM);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 10, objects + LIMIT - 10), 0);
        assert_null(stook_cache_alloc(cache));
        stook_cache_free_bulk(cache, LIMIT, objects);
        assert_int_equal(take_all(cache, 0), LIMIT);
        assert_int_equal(stook_cache_destroy_all(cache, NULL, NULL), 0);
}

static void prefilled_objects_count(void **state)
{
        struct stook_cache_args args = limited(0, LIMIT);
        struct stook_cache *cache = create(&args);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 5), *other;

        (void)state;
        assert_non_null(sheaf);
        assert_int_equal(stook_sheaf_available(sheaf), 5);
        assert_int_equal(take_all(cache, 0), LIMIT - 5);
        errno = 0;
        other = stook_sheaf_prefill(cache, 0, 1);
        assert_null(other);
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 6), -ENOMEM);
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 5), 0);
        assert_int_equal(stook_sheaf_available(sheaf), 5);
        objects[LIMIT] = stook_sheaf_alloc(cache, sheaf);
        assert_non_null(objects[LIMIT]);
        assert_null(stook_cache_alloc(cache));          /* it was counted before */
        stook_cache_free(cache, objects[LIMIT]);
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, 5), 0);
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(take_all(cache, LIMIT), 5);
        give(cache, 0, LIMIT - 5);
        give(cache, LIMIT, LIMIT + 5);
        sheaf = stook_sheaf_prefill(cache, 0, LIMIT);   /* made to measure */
        assert_non_null(sheaf);
        assert_null(stook_cache_alloc(cache));
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* Without memory a sheaf is not filled, and nothing of the limit is lost. */
static void what_was_not_lent_does_not_count(void **state)
{
        struct stook_cache_args args = limited(0, LIMIT);
        struct stook_cache *cache = create(&args);
        struct stook_sheaf *sheaf;

        (void)state;
        stook_inject.span_fail_from = 1;
        errno = 0;
        assert_null(stook_sheaf_prefill(cache, 0, LIMIT));
        assert_int_equal(errno, ENOMEM);
        stook_inject.span_fail_from = 0;
        assert_int_equal(take_all(cache, 0), LIMIT);
        give(cache, 0, LIMIT);
        sheaf = stook_sheaf_prefill(cache, 0, 5);
        assert_non_null(sheaf);
        stook_inject.span_fail_from = stook_inject.sheaf_fail_every = 1;
        assert_int_equal(stook_sheaf_refill(cache, 0, &sheaf, LIMIT), -ENOMEM);
        stook_inject.span_fail_from = stook_inject.sheaf_fail_every = 0;
        assert_int_equal(stook_sheaf_available(sheaf), 5);
        assert_int_equal(take_all(cache, 0), LIMIT - 5);
        stook_sheaf_return(cache, sheaf);
        give(cache, 0, LIMIT - 5);
        assert_int_equal(take_all(cache, 0), LIMIT);
        give(cache, 0, LIMIT);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void the_limit_may_change(void **state)
{
        struct stook_cache_args args = limited(0, LIMIT);
        struct stook_cache *cache = create(&args), *plain = stook_cache_create("plain", 64, NULL);

        (void)state;
        assert_non_null(plain);
        assert_int_equal(take_all(cache, 0), LIMIT);
        assert_int_equal(stook_cache_set_limit(cache, LIMIT + 7), 0);
        assert_int_equal(take_all(cache, LIMIT), 7);
        assert_int_equal(stook_cache_set_limit(cache, 3), 0);
        give(cache, 3, LIMIT + 7);
        assert_null(stook_cache_alloc(cache));
        give(cache, 2, 3);
        assert_int_equal(take_all(cache, 2), 1);
        give(cache, 0, 3);
        assert_int_equal(stook_cache_set_limit(NULL, 1), -EINVAL);
        assert_int_equal(stook_cache_set_limit(cache, 0), 0);           /* none */
        for (size_t i = 0; i < 2 * LIMIT; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        give(cache, 0, 2 * LIMIT);
        assert_int_equal(stook_cache_set_limit(plain, 1), -ENOTSUP);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(stook_cache_destroy(plain), 0);
}

static void the_mark_is_told_at_each_crossing(void **state)
{
        struct stook_cache_args args = limited(0, LIMIT);
        struct stook_cache *cache;

        (void)state;
        args.low_objects = LIMIT;
        args.on_low = on_low;
        errno = 0;
        assert_null(stook_cache_create("limited", 64, &args));
        assert_int_equal(errno, EINVAL);
        args.low_objects = LOW;
        cache = create(&args);
        told = 0;
        assert_int_equal(take_all(cache, 0), LIMIT);
        assert_int_equal(told, 1);
        assert_int_equal(told_left, LOW);
        give(cache, LIMIT - LOW - 1, LIMIT);
        objects[LIMIT] = stook_cache_alloc_nolock(cache);       /* such a call does not tell */
        assert_non_null(objects[LIMIT]);
        stook_cache_free(cache, objects[LIMIT]);
        assert_int_equal(told, 1);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, LOW, objects + LIMIT - LOW - 1), 0);
        assert_int_equal(told, 2);
        assert_int_equal(told_left, 1);
        give(cache, 0, LIMIT - 1);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* ---- beside other threads ---- */

static struct stook_cache *shared;
static size_t owned, most;

static void *work(void *data)
{
        void *held[LIMIT / 2];
        size_t faults = 0;

        (void)data;
        for (unsigned round = 0; round < ROUNDS; round++) {
                size_t n = 0;

                for (; n < LIMIT / 2 && (held[n] = stook_cache_alloc(shared)); n++) {
                        size_t now = __atomic_add_fetch(&owned, 1, __ATOMIC_RELAXED);

                        faults += now > LIMIT;
                        if (now > __atomic_load_n(&most, __ATOMIC_RELAXED))
                                __atomic_store_n(&most, now, __ATOMIC_RELAXED);
                }
                /* Not counted as the thread's any more before it is free. */
                __atomic_sub_fetch(&owned, n, __ATOMIC_RELAXED);
                while (n)
                        stook_cache_free(shared, held[--n]);
        }
        return (void *)faults;
}

static void never_more_beside_other_threads(void **state)
{
        struct stook_cache_args args = limited(0, LIMIT);
        pthread_t threads[THREADS];
        void *faults;

        (void)state;
        shared = create(&args);
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
        for (unsigned i = 0; i < THREADS; i++) {
                assert_int_equal(pthread_join(threads[i], &faults), 0);
                assert_null(faults);
        }
        assert_true(most > 0);
        assert_int_equal(take_all(shared, 0), LIMIT);   /* none was lost */
        give(shared, 0, LIMIT);
        assert_int_equal(stook_cache_destroy(shared), 0);
}

/* ---- reclaim ---- */

static unsigned asked;
static size_t last_wanted, spare;

/* Gives back the last ones of `spare` objects. */
static size_t reclaim(struct stook_cache *cache, size_t wanted, void *data)
{
        size_t n = wanted < spare ? wanted : spare;

        assert_ptr_equal(data, objects);
        asked++;
        last_wanted = wanted;
        assert_null(stook_cache_alloc_flags(cache, STOOK_ALLOC_NOWAIT));
        errno = EPERM;
        for (size_t i = 0; i < n; i++)
                stook_cache_free(cache, objects[--spare]);
        return n;
}

static void objects_are_asked_back(void **state)
{
        struct stook_cache_args args = limited((uint64_t)(uintptr_t)*state, LIMIT);
        struct stook_cache *cache;
        void *others[3];

        args.reclaim = reclaim;
        cache = create(&args);
        asked = 0;
        spare = 0;
        assert_int_equal(take_all(cache, 0), LIMIT);
        assert_int_equal(asked, 1);
        assert_int_equal(last_wanted, 1);
        spare = LIMIT;
        errno = 0;
        others[0] = stook_cache_alloc(cache);
        assert_non_null(others[0]);
        assert_int_equal(errno, 0);
        assert_int_equal(spare, LIMIT - 1);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 2, others + 1), 0);
        assert_int_equal(asked, 3);
        assert_int_equal(last_wanted, 2);
        assert_null(stook_cache_alloc_nolock(cache));
        assert_null(stook_cache_alloc_flags(cache, STOOK_ALLOC_NOWAIT));
        assert_int_equal(asked, 3);
        stook_cache_free_bulk(cache, 3, others);
        give(cache, 0, spare);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static size_t nested_asked;

static size_t allocate_inside(struct stook_cache *cache, size_t wanted, void *data)
{
        (void)wanted;
        (void)data;
        nested_asked++;
        assert_null(stook_cache_alloc(cache));          /* refused without another call */
        return 1;                                       /* which is not true */
}

static void a_callback_is_not_called_inside_itself(void **state)
{
        struct stook_cache_args args = limited(0, 1);
        struct stook_cache *cache;
        void *object;

        (void)state;
        args.reclaim = allocate_inside;
        cache = create(&args);
        object = stook_cache_alloc(cache);
        assert_non_null(object);
        assert_null(stook_cache_alloc(cache));
        assert_int_equal(nested_asked, 1);
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* ---- forks ---- */

static size_t forks_asked;
static pid_t child;

/* Of the limit alone. 7: the callback was called, or not, as is right. */
static int alloc_in_child(struct stook_cache *cache, size_t calls)
{
        size_t before = forks_asked;

        alarm(60);
        return !stook_cache_alloc(cache) && forks_asked - before == calls ? 7 : 1;
}

/* In the child it goes on, and is not entered once more. */
static size_t fork_inside(struct stook_cache *cache, size_t wanted, void *data)
{
        (void)wanted;
        (void)data;
        if (forks_asked++)
                return 0;
        child = fork();
        if (!child)
                _exit(alloc_in_child(cache, 0));
        return 0;
}

static unsigned stands, may_go;         /* atomic */

static void wait_for(const unsigned *word)
{
        for (unsigned i = 0; i < 60000 && !__atomic_load_n(word, __ATOMIC_ACQUIRE); i++)
                usleep(1000);
}

static size_t stand_inside(struct stook_cache *cache, size_t wanted, void *data)
{
        (void)cache;
        (void)wanted;
        (void)data;
        if (!forks_asked++) {
                __atomic_store_n(&stands, 1, __ATOMIC_RELEASE);
                wait_for(&may_go);
        }
        return 0;
}

static void *alloc_once(void *cache)
{
        return stook_cache_alloc(cache);
}

static void assert_child_is_right(void)
{
        int status;

        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 7);
}

static void a_child_is_in_the_callback_if_its_thread_was(void **state)
{
        struct stook_cache_args args = limited(0, 1);
        struct stook_cache *cache;
        pthread_t other;
        void *object, *none;

        (void)state;
#ifdef __SANITIZE_THREAD__
        skip();                         /* it takes what a vanished thread did for a race */
#endif
        args.reclaim = fork_inside;
        cache = create(&args);
        object = stook_cache_alloc(cache);
        forks_asked = 0;
        assert_null(stook_cache_alloc(cache));
        assert_child_is_right();
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);

        args.reclaim = stand_inside;
        cache = create(&args);
        object = stook_cache_alloc(cache);
        forks_asked = 0;
        assert_int_equal(pthread_create(&other, NULL, alloc_once, cache), 0);
        wait_for(&stands);
        child = fork();
        if (!child)
                _exit(alloc_in_child(cache, 1));
        assert_child_is_right();
        __atomic_store_n(&may_go, 1, __ATOMIC_RELEASE);
        pthread_join(other, &none);
        assert_null(none);
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* ---- without a limit: for lack of memory, and in a trim ---- */

static size_t free_spare(struct stook_cache *cache, size_t wanted, void *data)
{
        size_t n = spare;

        (void)data;
        asked++;
        last_wanted = wanted;
        if (!n)
                return 1;                       /* which is not true */
        stook_inject.commit_fail_from = stook_inject.span_fail_from = 0;
        while (spare)
                stook_cache_free(cache, objects[--spare]);
        return n;
}

static void asked_for_lack_of_memory_and_in_a_trim(void **state)
{
        struct stook_cache_args args = limited(0, 0);
        struct stook_cache *cache;
        void *object = NULL;

        (void)state;
        args.reclaim = free_spare;
        /* Fewer than LIMIT in a slab, also in one of 64 KiB, the least there is with such pages. */
        cache = stook_cache_create("limited", 256, &args);
        assert_non_null(cache);
        for (spare = 0; spare < LIMIT; spare++)
                assert_non_null(objects[spare] = stook_cache_alloc(cache));
        asked = 0;
        stook_inject.commit_fail_from = stook_inject.span_fail_from = 1;
        for (unsigned i = 0; i < 2 * LIMIT && !asked; i++) {
                object = stook_cache_alloc(cache);
                assert_non_null(object);
                if (!asked)
                        objects[LIMIT + i] = object;
                assert_true(i + 1 < LIMIT || asked);
        }
        stook_inject.commit_fail_from = stook_inject.span_fail_from = 0;
        assert_int_equal(asked, 1);
        assert_int_equal(last_wanted, 1);
        assert_int_equal(spare, 0);
        stook_trim(0);
        assert_int_equal(asked, 2);
        assert_true(last_wanted == SIZE_MAX);
        /* A callback that promises and does not free is asked once. */
        stook_inject.commit_fail_from = stook_inject.span_fail_from = 1;
        while (asked == 2 && stook_cache_alloc(cache))
                ;
        stook_inject.commit_fail_from = stook_inject.span_fail_from = 0;
        assert_int_equal(asked, 3);
        assert_int_equal(stook_cache_destroy_all(cache, NULL, NULL), 0);
}

#define FLAGS(flags) ((void *)(uintptr_t)(flags))

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_prestate(exactly_so_many, FLAGS(0)),
                cmocka_unit_test_prestate(exactly_so_many, FLAGS(STOOK_CACHE_NO_SHEAVES)),
                cmocka_unit_test_prestate(exactly_so_many, FLAGS(STOOK_CACHE_ACCOUNT)),
                cmocka_unit_test_prestate(exactly_so_many,
                                          FLAGS(STOOK_CACHE_CHECK | STOOK_CACHE_RED_ZONE |
                                                STOOK_CACHE_QUARANTINE)),
                cmocka_unit_test(bulk_calls_get_all_or_nothing),
                cmocka_unit_test(prefilled_objects_count),
                cmocka_unit_test(what_was_not_lent_does_not_count),
                cmocka_unit_test(the_limit_may_change),
                cmocka_unit_test(the_mark_is_told_at_each_crossing),
                cmocka_unit_test(never_more_beside_other_threads),
                cmocka_unit_test_prestate(objects_are_asked_back, FLAGS(0)),
                cmocka_unit_test_prestate(objects_are_asked_back, FLAGS(STOOK_CACHE_ACCOUNT)),
                cmocka_unit_test(a_callback_is_not_called_inside_itself),
                cmocka_unit_test(a_child_is_in_the_callback_if_its_thread_was),
                cmocka_unit_test(asked_for_lack_of_memory_and_in_a_trim),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
