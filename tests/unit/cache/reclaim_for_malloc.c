/*
 * What this proves: a malloc that finds no memory asks every cache's reclaim before it fails, by
 * whatever way it allocates; not where it may be in a handler, nor if it may not wait; and not from
 * inside of such a callback.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"

#define OBJECT ((size_t)16 << 10)
#define KEPT   64

static struct stook_cache *sparing[2];
static void *kept[2][KEPT];
static unsigned told[2];

static size_t free_kept(struct stook_cache *cache, size_t wanted, void *data)
{
        unsigned i = cache == sparing[1];
        size_t n = 0;

        (void)data;
        told[i]++;
        assert_true(wanted == SIZE_MAX);
        assert_null(stook_malloc((size_t)8 << 20));     /* asks no cache: the list is held */
        for (; n < KEPT && kept[i][n]; n++) {
                stook_cache_free(cache, kept[i][n]);
                kept[i][n] = NULL;
        }
        return n;
}

/* Two caches with objects to spare, and the system gives no more memory. */
static void begin_sparing(void)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .reclaim = free_kept };

        for (unsigned i = 0; i < 2; i++) {
                sparing[i] = stook_cache_create("sparing", OBJECT, &args);
                assert_non_null(sparing[i]);
                for (unsigned k = 0; k < KEPT; k++)
                        assert_non_null(kept[i][k] = stook_cache_alloc(sparing[i]));
                told[i] = 0;
        }
        stook_inject.commit_fail_from = 1;
}

static void end_sparing(void)
{
        stook_inject.commit_fail_from = 0;
        for (unsigned i = 0; i < 2; i++)
                assert_int_equal(stook_cache_destroy_all(sparing[i], NULL, NULL), 0);
}

/* Objects of @bytes until there is no more memory, linked; or until the caches were told. */
static void **take_until_told(size_t bytes)
{
        void **last = NULL, **object;

        while (!told[0] && (object = stook_malloc(bytes))) {
                *object = (void *)last;
                last = object;
        }
        return last;
}

static void give_linked(void **last)
{
        while (last) {
                void **before = *last;

                stook_free((void *)last);
                last = before;
        }
}

static void a_malloc_asks_every_cache(void **state)
{
        size_t bytes = (size_t)(uintptr_t)*state;
        void **taken, *object;

        begin_sparing();
        taken = take_until_told(bytes);
        assert_non_null(taken);
        assert_int_equal(told[0], 1);
        assert_int_equal(told[1], 1);
        errno = 0;
        object = stook_malloc(bytes);           /* of what was spared */
        assert_non_null(object);
        assert_int_equal(errno, 0);
        assert_int_equal(told[0], 1);
        stook_free(object);
        give_linked(taken);
        end_sparing();
}

static void what_no_process_has_asks_no_cache(void **state)
{
        void *object = stook_malloc((size_t)200 << 10);

        (void)state;
        begin_sparing();
        assert_null(stook_malloc((size_t)1 << 60));
        assert_int_equal(errno, ENOMEM);
        assert_null(stook_realloc(object, (size_t)1 << 60));
        assert_int_equal(told[0], 0);
        assert_int_equal(told[1], 0);
        stook_free(object);
        end_sparing();
}

static void a_realloc_asks_every_cache(void **state)
{
        size_t bytes = (size_t)200 << 10;
        void *object = stook_malloc(bytes), *larger;

        (void)state;
        begin_sparing();
        while (!told[0] && (larger = stook_realloc(object, bytes += 64 << 10)))
                object = larger;
        assert_int_equal(told[0], 1);
        assert_int_equal(told[1], 1);
        stook_free(object);
        end_sparing();
}

static void *of_handler[KEPT];
static unsigned handler_got;

static void allocate_in_handler(int signal)
{
        (void)signal;
        while (handler_got < KEPT &&
               (of_handler[handler_got] = stook_malloc((size_t)1 << 20)))
                handler_got++;
}

static void neither_in_a_handler_nor_without_waits(void **state)
{
        struct sigaction action = { .sa_handler = allocate_in_handler }, before;
        void **taken = NULL, **object;

        (void)state;
        begin_sparing();
        assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
        assert_int_equal(raise(SIGUSR1), 0);
        assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
        assert_true(handler_got < KEPT);                /* there was no more */
        while ((object = stook_malloc_nolock(OBJECT))) {
                *object = (void *)taken;
                taken = object;
        }
        assert_int_equal(told[0] + told[1], 0);
        give_linked(taken);
        while (handler_got)
                stook_free(of_handler[--handler_got]);
        end_sparing();
}

#define BYTES(bytes) ((void *)(uintptr_t)(bytes))

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_prestate(a_malloc_asks_every_cache, BYTES(1000)),
                cmocka_unit_test_prestate(a_malloc_asks_every_cache, BYTES(OBJECT)),
                cmocka_unit_test_prestate(a_malloc_asks_every_cache, BYTES(150 << 10)),
                cmocka_unit_test(what_no_process_has_asks_no_cache),
                cmocka_unit_test(a_realloc_asks_every_cache),
                cmocka_unit_test(neither_in_a_handler_nor_without_waits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
