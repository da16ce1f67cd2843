/*
 * Proves that threads may end all at once, while others allocate and free: what an end gives back
 * goes to the slabs once, and nothing is lost. One that leaves the first thread alone leaves
 * nothing in the barns.
 * Threads of the locked backend do not enrol, and TSan sees that backend only. So the threads of
 * this test count themselves there, and call what the end of an enrolled one calls.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stook/stook.h>
#include "base/thread.h"
#include "cache/cache.h"
#include "life/life.h"
#include "pages/pages_node.h"
#include "slot/slot_regions.h"

#define HOUR_MS 3600000
#define THREADS 4
#define ROUNDS  20
#define OBJECTS 500
#define BYTES   1000                    /* a barn keeps half a MiB of them: more than is little */

static struct stook_cache *cache;
static pthread_barrier_t together;

/* Objects that two threads got at once would be seen by TSan, and by their content. */
static void use(void **objects)
{
        for (size_t i = 0; i < OBJECTS; i++) {
                assert_non_null(objects[i] = stook_cache_alloc(cache));
                *(void ***)objects[i] = objects + i;
        }
        for (size_t i = 0; i < OBJECTS; i++) {
                assert_ptr_equal(*(void ***)objects[i], objects + i);
                stook_cache_free(cache, objects[i]);
        }
}

static bool is_locked(void)
{
        return !stook_regions.rseq_slots;
}

struct life {
        pthread_t thread;
        bool works_on;                  /* while the others end */
        void *objects[OBJECTS];
};

static void *live(void *arg)
{
        struct life *life = arg;

        if (is_locked())
                __atomic_fetch_add(&stook_threads_live, 1, __ATOMIC_RELAXED);
        use(life->objects);
        /* What was given back is never missed. */
        for (unsigned node = 0; node < stook_os_node_count(); node++)
                __atomic_store_n(&stook_pages_nodes[node].ledger.refault, 0, __ATOMIC_RELAXED);
        pthread_barrier_wait(&together);
        if (life->works_on)
                use(life->objects);
        if (is_locked())
                stook_last_thread_at_end(stook_self);
        return NULL;
}

static void live_together(unsigned threads)
{
        static struct life lives[THREADS];

        assert_int_equal(pthread_barrier_init(&together, NULL, threads), 0);
        for (size_t i = 0; i < threads; i++) {
                lives[i].works_on = i % 2;
                assert_int_equal(pthread_create(&lives[i].thread, NULL, live, &lives[i]), 0);
        }
        for (size_t i = 0; i < threads; i++)
                assert_int_equal(pthread_join(lives[i].thread, NULL), 0);
        assert_int_equal(pthread_barrier_destroy(&together), 0);
        assert_int_equal(stook_threads_live, 0);
}

static size_t in_barns(void)
{
        size_t bytes = 0;

        for (unsigned node = 0; node < stook_os_node_count(); node++)
                bytes += stook_barn_booked_bytes(node);
        return bytes;
}

static void test_the_last_end_gives_back(void **state)
{
        struct stook_pages_stats stats;

        (void)state;
        stook_pages_set_decay_ms(HOUR_MS);      /* nothing ages */
        live_together(1);
        assert_int_equal(in_barns(), 0);
        stook_pages_stats(&stats);
        assert_int_equal(stats.free_dirty_bytes, 0);
}

/* The next end gives back again in the next millisecond. */
static void test_ends_among_allocations(void **state)
{
        struct stook_sheaf_sums sums;

        (void)state;
        stook_pages_set_decay_ms(0);
        for (int round = 0; round < ROUNDS; round++)
                live_together(THREADS);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_true(stook_counted(&cache->counters, STOOK_STAT_sheaf_flush) > 0);
        stook_trim(0);
        stook_sheaf_sum(cache->index, &sums);
        assert_int_equal(sums.objects, 0);
        assert_int_equal(stook_slot_objects(&cache->front), 0);
        assert_int_equal(stook_slabs_objects_out(&cache->slabs), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_last_end_gives_back),
                cmocka_unit_test(test_ends_among_allocations),
        };
        void *object;

        cache = stook_cache_create("ends", BYTES, NULL);
        object = cache ? stook_cache_alloc(cache) : NULL;       /* this thread is the first one */
        if (!object)
                return 1;
        stook_cache_free(cache, object);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
