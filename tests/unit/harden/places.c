/*
 * What this proves: under STOOK_HARDEN=double a second free is reported wherever the object lies,
 * by every kind of free, and says where. It changes nothing: no object has two users afterwards,
 * and the cache is sound. Objects that are used as they should be are never reported.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "watch/watch.h"

#define N 600
#define ELSEWHERE "it was freed before, and may wait for readers"
#define IN_SLAB "it is free in its slab already, or was never handed out"

static unsigned reports;
static struct {
        enum stook_fault fault;
        char detail[80];
} last;

static void note(const struct stook_report *report, void *data)
{
        const char *detail = strstr(report->text, "): ");

        (void)data;
        reports++;
        last.fault = report->fault;
        snprintf(last.detail, sizeof(last.detail), "%s", detail ? detail + 3 : "");
}

static void expect_fault(enum stook_fault fault, const char *where)
{
        unsigned count = reports;

        reports = 0;
        assert_int_equal(count, 1);
        assert_int_equal(last.fault, fault);
        assert_string_equal(last.detail, where);
}

static void expect(const char *where)
{
        expect_fault(STOOK_FAULT_DOUBLE_FREE, where);
}

/* Objects of malloc's classes have seals, and wait if their order is random. */
static void expect_of_malloc(void)
{
        expect(stook_is_hardened(STOOK_HARDEN_RANDOM) ? "it was freed before, and waits to be free"
                                                      : "it is free in the main sheaf of a slot");
}

static struct stook_cache *create(uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags };
        struct stook_cache *cache = stook_cache_create("places", 64, &args);

        assert_non_null(cache);
        assert_true(stook_cache_is_hardened(cache));
        return cache;
}

static void end(struct stook_cache *cache)
{
        assert_int_equal(reports, 0);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* One of the freed objects that lies there. */
static void *lying(struct stook_cache *cache, void **objects, const char *where)
{
        for (int i = 0; i < N; i++)
                if (objects[i] && !strcmp(stook_watch_where(cache, objects[i]), where))
                        return objects[i];
        fail_msg("no object of which %s", where);
        return NULL;
}

static void free_again(struct stook_cache *cache, void *object, const char *where)
{
        stook_cache_free(cache, object);
        expect(where);
        stook_cache_free_nolock(cache, object);
        expect(where);
        stook_cache_free_bulk(cache, 1, &object);
        expect(where);
        stook_cache_free_bulk(NULL, 1, &object);
        expect(where);
        assert_int_equal(stook_cache_free_rcu(cache, object), -EINVAL);
        expect(where);
        assert_int_equal(stook_cache_free_rcu_nolock(cache, object), -EINVAL);
        expect(where);
        stook_free(object);
        expect(where);
        assert_null(stook_realloc(object, 20));
        assert_int_equal(errno, EINVAL);
        expect_fault(strcmp(where, IN_SLAB) ? STOOK_FAULT_DOUBLE_FREE : STOOK_FAULT_NOT_LIVE,
                     where);
}

static int by_address(const void *a, const void *b)
{
        uintptr_t x = (uintptr_t)*(void *const *)a, y = (uintptr_t)*(void *const *)b;

        return x < y ? -1 : x > y;
}

/* Every object that the cache hands out has one user. */
static void expect_one_user_each(struct stook_cache *cache)
{
        static void *objects[2 * N];

        for (int i = 0; i < 2 * N; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        qsort(objects, 2 * N, sizeof(*objects), by_address);
        for (int i = 1; i < 2 * N; i++)
                assert_ptr_not_equal(objects[i - 1], objects[i]);
        for (int i = 0; i < 2 * N; i++)
                stook_cache_free(cache, objects[i]);
}

static void in_sheaves_and_slabs(void **state)
{
        static const char *const places[] = {
                "it is free in the main sheaf of a slot", "it is free in the spare sheaf of a slot",
                "it is free in a barn", IN_SLAB,
        };
        struct stook_cache *cache = create(0);
        void *objects[N];

        (void)state;
        for (int i = 0; i < N; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        for (int i = 0; i < N; i++)
                stook_cache_free(cache, objects[i]);
        for (int i = 0; i < 3; i++)
                free_again(cache, lying(cache, objects, places[i]), places[i]);
        expect_one_user_each(cache);
        end(cache);

        cache = create(STOOK_CACHE_NO_SHEAVES);
        for (int i = 0; i < N; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        for (int i = 0; i < N / 2; i++)
                stook_cache_free(cache, objects[2 * i]);
        free_again(cache, lying(cache, objects, places[3]), places[3]);
        for (int i = 0; i < N / 2; i++)
                stook_cache_free(cache, objects[2 * i + 1]);
        expect_one_user_each(cache);
        end(cache);
}

/* An object of a slab that never had a user. */
static void never_handed_out(void **state)
{
        struct stook_cache *cache = create(STOOK_CACHE_NO_SHEAVES);
        char *object = stook_cache_alloc(cache);

        (void)state;
        stook_cache_free(cache, (uintptr_t)object & 64 ? object - 64 : object + 64);
        expect(IN_SLAB);
        stook_cache_free(cache, object);
        end(cache);
}

static void in_a_prefilled_sheaf(void **state)
{
        const char *where = "it is free in a prefilled sheaf";
        struct stook_cache *cache = create(0);
        void *objects[N], *object;
        struct stook_sheaf *sheaf;

        (void)state;
        for (int i = 0; i < N; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        for (int i = 0; i < N; i++)
                stook_cache_free(cache, objects[i]);
        assert_non_null(sheaf = stook_sheaf_prefill(cache, 0, 20));
        free_again(cache, lying(cache, objects, where), where);
        for (int i = 0; i < 10; i++) {
                assert_non_null(object = stook_sheaf_alloc(cache, sheaf));
                stook_cache_free(cache, object);
        }
        stook_sheaf_return(cache, sheaf);
        expect_one_user_each(cache);
        end(cache);
}

/* Callbacks wait until the test runs them. */
static struct {
        struct stook_rcu_head *head;
        void (*done)(struct stook_rcu_head *head);
} calls[64];
static unsigned called;

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        assert_true(called < 64);
        calls[called].head = head;
        calls[called++].done = done;
}

/* A callback may ask for another one, which waits for the next barrier. */
static void barrier(void)
{
        unsigned n = called;

        for (unsigned i = 0; i < n; i++)
                calls[i].done(calls[i].head);
        memmove(calls, calls + n, (called - n) * sizeof(*calls));
        called -= n;
}

static const struct stook_rcu by_hand = { .ops_size = sizeof(by_hand), .call = call,
                                          .barrier = barrier };

static void waiting_for_readers(void **state)
{
        const uint64_t flags[] = { 0, STOOK_CACHE_RCU, STOOK_CACHE_NO_SHEAVES | STOOK_CACHE_RCU };

        (void)state;
        assert_int_equal(stook_rcu_use(&by_hand), 0);
        for (int i = 0; i < 3; i++) {
                struct stook_cache *cache = create(flags[i]);
                void *object = stook_cache_alloc(cache);

                assert_int_equal(stook_cache_free_rcu(cache, object), 0);
                free_again(cache, object, i == 2 ? ELSEWHERE : "it waits for readers");
                stook_cache_rcu_barrier(cache);
                free_again(cache, object, stook_watch_where(cache, object));
                expect_one_user_each(cache);
                end(cache);
        }
}

/* A free by RCU that is refused leaves the object to its user. */
static void refused_by_rcu(void **state)
{
        struct stook_cache *cache = create(0);
        void *object = stook_cache_alloc(cache);

        (void)state;
        assert_int_equal(stook_cache_free_rcu(cache, object), -ENOTSUP);
        stook_cache_free(cache, object);
        assert_int_equal(reports, 0);
        stook_cache_free(cache, object);
        expect("it is free in the main sheaf of a slot");
        end(cache);
}

static pthread_barrier_t freed, looked;

/* The end of the thread would empty its slot. */
static void *free_it(void *object)
{
        stook_free(object);
        pthread_barrier_wait(&freed);
        pthread_barrier_wait(&looked);
        return NULL;
}

static void in_another_threads_slot(void **state)
{
        void *object = stook_malloc(100), *other;
        pthread_t thread;

        (void)state;
        pthread_barrier_init(&freed, NULL, 2);
        pthread_barrier_init(&looked, NULL, 2);
        assert_int_equal(pthread_create(&thread, NULL, free_it, object), 0);
        pthread_barrier_wait(&freed);
        stook_free(object);
        pthread_barrier_wait(&looked);
        pthread_join(thread, NULL);
        expect_of_malloc();
        other = stook_malloc(100);
        stook_free(other);
        assert_int_equal(reports, 0);
}

static void after_calls_of_malloc(void **state)
{
        void *object = stook_malloc(100), *moved = stook_realloc(object, 5000);

        (void)state;
        assert_ptr_not_equal(object, moved);
        stook_free(object);
        expect_of_malloc();
        stook_free(moved);
        stook_free_sized(moved, 5000);
        assert_int_equal(reports, 1);
        reports = 0;
        object = stook_aligned_alloc(256, 256);
        stook_free(object);
        stook_free(object);
        expect_of_malloc();
        object = stook_calloc(5, 7);
        assert_int_equal(stook_usable_size(object), 35);
        stook_free(object);
        assert_int_equal(stook_usable_size(object), 0);
        assert_false(stook_owns(object));
        stook_free(object);
        expect_of_malloc();
}

static void in_a_child(void **state)
{
        void *object = stook_malloc(100);
        int status;
        pid_t pid;

        (void)state;
        pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                stook_free(object);
                stook_free(object);
                _exit(reports == 1 && stook_malloc(100) != NULL ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        stook_free(object);
        assert_int_equal(reports, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(in_sheaves_and_slabs),
                cmocka_unit_test(never_handed_out),
                cmocka_unit_test(in_a_prefilled_sheaf),
                cmocka_unit_test(refused_by_rcu),
                cmocka_unit_test(waiting_for_readers),
                cmocka_unit_test(in_another_threads_slot),
                cmocka_unit_test(after_calls_of_malloc),
                cmocka_unit_test(in_a_child),
        };

        stook_on_report(note, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
