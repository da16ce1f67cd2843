/*
 * What this proves: stook_leak_check counts the objects that nothing leads to, and no others: not
 * those that data, the stack, another object, a large object, or one that waits for readers leads
 * to. Without tracks it says so. The program has no new child and gets no SIGCHLD, and goes on as
 * before.
 * Where a word of a dead frame may look like a pointer by chance, a few objects may be missed.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>
#include <stook/stook.h>

#define OBJECTS 100
#define CHANCE  5                       /* stale words */

static struct stook_cache *cache;
static void *volatile kept[OBJECTS];    /* read by the search alone */
static uintptr_t hidden[OBJECTS];       /* in a form that a search does not see */
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
        (void)number;
        signals++;
}

static __attribute__((noinline)) void allocate(void)
{
        for (int i = 0; i < OBJECTS; i++)
                hidden[i] = ~(uintptr_t)stook_cache_zalloc(cache);
}

/* Over the frames of calls before. */
static __attribute__((noinline)) void clear_stack(void)
{
        char space[16384];

        memset(space, 0, sizeof(space));
        __asm__ volatile("" : : "r"(space) : "memory");
}

/* Pointers to all of them in a frame that has ended, far below those of a search. */
static __attribute__((noinline)) void leave_in_dead_frame(void)
{
        void *space[16384];

        for (int i = 0; i < OBJECTS; i++)
                space[i] = (void *)~hidden[i];
        __asm__ volatile("" : : "r"(space) : "memory");
}

static long lost(void)
{
        clear_stack();
        return stook_leak_check();
}

static void test_without_tracks(void **unused)
{
        struct stook_cache *plain = stook_cache_create("plain", 64, NULL);

        (void)unused;
        assert_int_equal(stook_leak_check(), -ENODATA);
        stook_cache_destroy(plain);
}

static void test_lost_and_kept(void **unused)
{
        struct stook_cache_args args = { .args_size = sizeof(args),
                                         .flags = STOOK_CACHE_STORE_USER };

        (void)unused;
        signal(SIGCHLD, on_signal);
        assert_non_null(cache = stook_cache_create("tracked", 64, &args));
        assert_int_equal(stook_leak_check(), 0);
        allocate();
        assert_in_range(lost(), OBJECTS - CHANCE, OBJECTS);
        /* By data: any address within the object. */
        for (int i = 0; i < OBJECTS; i++)
                kept[i] = (char *)~hidden[i] + i % 64;
        assert_int_equal(lost(), 0);
        /* By each other. */
        for (int i = 1; i < OBJECTS; i++) {
                *(void **)~hidden[i - 1] = (void *)~hidden[i];
                kept[i] = NULL;
        }
        assert_int_equal(lost(), 0);
        kept[0] = NULL;
        leave_in_dead_frame();
        assert_in_range(lost(), OBJECTS - CHANCE, OBJECTS);
        assert_int_equal(signals, 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        for (int i = 0; i < OBJECTS; i++)
                stook_cache_free(cache, (void *)~hidden[i]);
        assert_int_equal(lost(), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* By a large object, which is itself found by data or not. */
static void test_large(void **unused)
{
        struct stook_cache_args args = { .args_size = sizeof(args),
                                         .flags = STOOK_CACHE_STORE_USER };
        char *volatile large = stook_malloc((size_t)1 << 20);

        (void)unused;
        assert_non_null(large);
        assert_non_null(cache = stook_cache_create("tracked", 64, &args));
        memset(large, 0, (size_t)1 << 20);
        allocate();
        for (int i = 0; i < OBJECTS; i++)
                ((void **)(large + (1 << 19)))[i] = (void *)~hidden[i];
        kept[0] = large + (1 << 18);
        assert_int_equal(lost(), 0);
        kept[0] = NULL;
        memset(large + (1 << 19), 0, OBJECTS * sizeof(void *));
        assert_in_range(lost(), OBJECTS - CHANCE, OBJECTS + 1);
        stook_free(large);
        for (int i = 0; i < OBJECTS; i++)
                stook_cache_free(cache, (void *)~hidden[i]);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* By objects that wait for readers: their readers may follow what is in them. */
static void test_waiting(void **unused)
{
        struct stook_cache_args args = { .args_size = sizeof(args),
                                         .flags = STOOK_CACHE_STORE_USER | STOOK_CACHE_RCU,
                                         .rcu = &stook_rcu_epoch };

        (void)unused;
        assert_non_null(cache = stook_cache_create("waiting", 64, &args));
        allocate();
        for (int i = 1; i < OBJECTS; i += 2)
                *(void **)~hidden[i - 1] = (void *)~hidden[i];
        assert_in_range(lost(), OBJECTS - CHANCE, OBJECTS);
        stook_epoch_read_lock();
        for (int i = 0; i < OBJECTS; i += 2)
                assert_int_equal(stook_cache_free_rcu(cache, (void *)~hidden[i]), 0);
        assert_int_equal(lost(), 0);
        stook_epoch_read_unlock();
        stook_cache_rcu_barrier(cache);
        assert_in_range(lost(), OBJECTS / 2 - CHANCE, OBJECTS / 2);
        for (int i = 1; i < OBJECTS; i += 2)
                stook_cache_free(cache, (void *)~hidden[i]);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_without_tracks),
                cmocka_unit_test(test_lost_and_kept),
                cmocka_unit_test(test_large),
                cmocka_unit_test(test_waiting),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
