/*
 * Proves that a process keeps little when it has one thread again: the end of the last other thread
 * flushes what its slot and all barns keep, and purges what lies free. That is not done while a
 * third thread lives, nor soon again, nor where what was purged has been taken again. It is done in
 * a forked child, and where libc registers no rseq area. A thread that has large objects alone is
 * one of the others, on the locked backend, too.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/malloc.h>
#include <stook/stook.h>
#include "base/thread.h"
#include "cache/cache.h"
#include "pages/pages_node.h"
#include "pages/span.h"
#include "slot/slot_regions.h"

#define OBJECTS 1000
#define BYTES   1000                    /* a barn keeps half a MiB of them: more than is little */
#define TRIES   50
#define LARGE   ((size_t)512 << 10)     /* less stays free than is purged at once */

static struct stook_cache *cache;
/* Days at first; a sixteenth each time that a wait is to be over. Nothing here waits for it. */
static uint32_t decay_ms = 0x40000000;

/* What a thread does before it ends. */
struct life {
        pthread_t thread;
        bool due;                       /* its end comes after the wait for the next one */
        bool forgotten;                 /* and what it took was never missed */
        bool waits;                     /* until it is told to end */
        bool large;                     /* one large object is all that it has */
        uint32_t used, end;             /* atomic */
};

static void use(void)
{
        static void *objects[OBJECTS];

        for (size_t i = 0; i < OBJECTS; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        for (size_t i = 0; i < OBJECTS; i++)
                stook_cache_free(cache, objects[i]);
}

static void use_large(void)
{
        char *object = stook_malloc(LARGE);

        assert_non_null(object);
        memset(object, 1, LARGE);
        stook_free(object);
}

static void *live(void *arg)
{
        struct life *life = arg;

        if (life->large)
                use_large();
        else
                use();
        __atomic_store_n(&life->used, 1, __ATOMIC_RELEASE);
        while (life->waits && !__atomic_load_n(&life->end, __ATOMIC_ACQUIRE))
                usleep(1000);
        for (unsigned node = 0; life->forgotten && node < stook_os_node_count(); node++)
                __atomic_store_n(&stook_pages_nodes[node].ledger.refault, 0, __ATOMIC_RELAXED);
        /* A wait is over if it is longer than the decay time. */
        if (life->due)
                stook_pages_set_decay_ms(decay_ms /= 16);
        return NULL;
}

static void begin(struct life *life)
{
        assert_int_equal(pthread_create(&life->thread, NULL, live, life), 0);
        while (!__atomic_load_n(&life->used, __ATOMIC_ACQUIRE))
                usleep(1000);
}

static void end(struct life *life)
{
        __atomic_store_n(&life->end, 1, __ATOMIC_RELEASE);
        assert_int_equal(pthread_join(life->thread, NULL), 0);
}

static size_t free_dirty_bytes(void)
{
        struct stook_pages_stats stats;

        stook_pages_stats(&stats);
        return stats.free_dirty_bytes;
}

static size_t in_barns(void)
{
        size_t bytes = 0;

        for (unsigned node = 0; node < stook_os_node_count(); node++)
                bytes += stook_barn_booked_bytes(node);
        return bytes;
}

static void assert_kept(void)
{
        assert_true(in_barns() > 0);
        assert_true(stook_slabs_count(&cache->slabs) > 0);
}

static void assert_given_back(void)
{
        assert_int_equal(in_barns(), 0);
        assert_int_equal(free_dirty_bytes(), 0);
        assert_int_equal(stook_cache_validate(cache), 0);
}

static void live_alone(bool due, bool forgotten)
{
        struct life life = { .due = due, .forgotten = forgotten };

        begin(&life);
        end(&life);
}

static void test_the_end_of_the_last_gives_back(void **state)
{
        struct life first = { .waits = true }, second = { .waits = false };

        (void)state;
        begin(&first);
        assert_int_equal(stook_threads_live, 1);
        begin(&second);
        end(&second);
        assert_int_equal(stook_threads_live, 1);
        assert_kept();
        end(&first);
        assert_int_equal(stook_threads_live, 0);
        assert_given_back();
}

static void test_a_thread_with_large_objects_counts(void **state)
{
        struct life life = { .due = true, .forgotten = true, .waits = true, .large = true };
        void *held = stook_malloc(16 * LARGE);          /* so that much may stay free */

        (void)state;
        assert_non_null(held);
        memset(held, 1, 16 * LARGE);
        live_alone(true, true);                         /* the next end is one that gives back */
        begin(&life);
        assert_int_equal(stook_threads_live, 1);
        assert_true(free_dirty_bytes() >= LARGE);
        end(&life);
        assert_int_equal(stook_threads_live, 0);
        assert_given_back();
        stook_free(held);
}

static void test_not_soon_again(void **state)
{
        (void)state;
        live_alone(false, true);
        assert_kept();
        live_alone(true, true);
        assert_given_back();
}

static void test_not_what_is_taken_again(void **state)
{
        (void)state;
        live_alone(true, false);
        assert_true(stook_pages_rest_refaulted());
        assert_kept();
        live_alone(true, true);
        assert_given_back();
}

static void test_a_child_counts_anew(void **state)
{
        struct life first = { .waits = true };
        pid_t child;
        int status = -1;

        (void)state;
        begin(&first);
        child = fork();
        if (!child) {
                live_alone(true, true);
                _exit(stook_threads_live != 0 || in_barns() || free_dirty_bytes());
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(stook_threads_live, 1);
        end(&first);
}

/* If the thread migrates meanwhile, it leaves something in another slot. */
static void test_a_slot_is_emptied(void **state)
{
        size_t left = 1;

        (void)state;
        for (int i = 0; i < TRIES && left; i++) {
                stook_trim(0);
                use();
                stook_slot_give_own();
                left = stook_slot_objects(&cache->front);
        }
        assert_int_equal(left, 0);
        assert_true(in_barns() > 0);
}

static void *live_in_slot(void *objects)
{
        for (int i = 0; i < OBJECTS / 10; i++)
                stook_cache_free(cache, stook_cache_alloc(cache));
        *(size_t *)objects = stook_slot_objects(&cache->front);
        /* What was taken is never missed. */
        for (unsigned node = 0; node < stook_os_node_count(); node++)
                __atomic_store_n(&stook_pages_nodes[node].ledger.refault, 0, __ATOMIC_RELAXED);
        return NULL;
}

/*
 * Where rseq areas are ours, too: the slot is emptied before the area is unregistered. An end in
 * the millisecond of the one before it is not due, and a thread that migrates leaves something.
 */
static void test_an_end_empties_the_slot(void **state)
{
        size_t had = 0, left = 1;

        (void)state;
        stook_pages_set_decay_ms(0);
        for (int i = 0; i < TRIES && (!had || left); i++) {
                pthread_t thread;

                stook_trim(0);
                assert_int_equal(pthread_create(&thread, NULL, live_in_slot, &had), 0);
                assert_int_equal(pthread_join(thread, NULL), 0);
                left = stook_slot_objects(&cache->front);
        }
        assert_true(had > 0);
        assert_int_equal(left, 0);
        assert_int_equal(stook_threads_live, 0);
}

static int make(void **state)
{
        (void)state;
        stook_pages_set_decay_ms(decay_ms);
        cache = stook_cache_create("lives", BYTES, NULL);
        if (!cache)
                return -1;
        use();                          /* this thread is the first one */
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_end_of_the_last_gives_back),
                cmocka_unit_test(test_not_soon_again),
                cmocka_unit_test(test_not_what_is_taken_again),
                cmocka_unit_test(test_a_child_counts_anew),
                cmocka_unit_test(test_a_thread_with_large_objects_counts),
                cmocka_unit_test(test_a_slot_is_emptied),
                cmocka_unit_test(test_an_end_empties_the_slot),
        };
        /* Other ends are not noticed there. */
        const struct CMUnitTest locked[] = {
                cmocka_unit_test(test_a_thread_with_large_objects_counts),
        };

        if (make(NULL))
                return 1;
        if (!stook_regions.rseq_slots)
                return cmocka_run_group_tests(locked, NULL, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
