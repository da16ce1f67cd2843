/*
 * What this proves: a cache whose slabs' lists are divided (src/slab/slab_lists.c) does what any
 * other one does. Threads hand objects to each other, handlers allocate on top of them, the cache
 * is tuned, trimmed and shrunk meanwhile, and the process forks. Statistics of a node have the
 * slabs of all lists. All objects come back, and the destroy finds none.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache.h"
#include "slab/slab_inside.h"

#define LISTS   4
#define THREADS 3
#define OBJECTS 400
#define ROUNDS  60

static struct stook_cache *cache;
static _Atomic(void *) exchanged[64];
static atomic_uint failed, done;

static void make(void)
{
        stook_slabs_start(LISTS * STOOK_SLAB_LIST_CPUS);
        cache = stook_cache_create("divided", 512, NULL);
        assert_non_null(cache);
        stook_slabs_divide(&cache->slabs, &cache->slabs.node[0]);
        assert_int_equal(stook_slabs_lists(&cache->slabs.node[0]), LISTS);
}

static void end(void)
{
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        stook_slabs_start(1);
}

/* Half of the objects are freed by another thread, all in another order. */
static void *work(void *arg)
{
        uintptr_t number = (uintptr_t)arg;
        void *o[OBJECTS];

        for (size_t round = 0; round < ROUNDS; round++) {
                for (size_t i = 0; i < OBJECTS; i++) {
                        uintptr_t *object = o[i] = stook_cache_alloc(cache);

                        if (object)
                                *object = number;
                        else
                                failed++;
                }
                for (size_t i = 0; i < OBJECTS; i++) {
                        void *mine = o[i * 7 % OBJECTS];

                        if (mine && *(uintptr_t *)mine != number)
                                failed++;
                        if (i % 2)
                                mine = atomic_exchange(&exchanged[i % 64], mine);
                        stook_cache_free(cache, mine);
                }
        }
        done++;
        return NULL;
}

static void handle(int sig)
{
        (void)sig;
        stook_cache_free(cache, stook_cache_alloc(cache));
}

/* In the child of a fork at any time: nothing of what threads had is handed out. */
static int child(void)
{
        void *o[OBJECTS];

        for (size_t i = 0; i < OBJECTS; i++)
                if (!(o[i] = stook_cache_alloc(cache)))
                        return 1;
        for (size_t i = 0; i < OBJECTS; i++)
                *(uintptr_t *)o[i] = 77 + i;
        for (size_t i = 0; i < OBJECTS; i++)
                if (*(uintptr_t *)o[i] != 77 + i)
                        return 2;
        for (size_t i = 0; i < OBJECTS; i++)
                stook_cache_free(cache, o[i]);
        stook_cache_shrink(cache);
        return stook_cache_validate(cache) ? 3 : 0;
}

static void fork_once(void)
{
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (!pid)
                _exit(child());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_threads_handlers_fork_tune(void **unused)
{
        pthread_t thread[THREADS];
        unsigned turns = 0;

        (void)unused;
        sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = handle, .sa_flags = SA_RESTART },
                  NULL);
        make();
        for (uintptr_t i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, work, (void *)(i + 1)), 0);
        for (; done < THREADS || turns < 6; turns++) {
                struct stook_tuning tuning = { .tuning_size = sizeof(tuning),
                                               .sheaf_capacity = turns % 2 ? 8 : 32,
                                               .barn_full = -1, .barn_empty = -1 };

                if (turns < 6) {
                        fork_once();
                        assert_int_equal(stook_cache_tune(cache, &tuning), 0);
                        stook_cache_shrink(cache);
                        stook_trim(0);
                }
                for (int i = 0; i < THREADS && done < THREADS; i++)
                        pthread_kill(thread[i], SIGUSR1);
                usleep(1000);
        }
        for (int i = 0; i < THREADS; i++)
                pthread_join(thread[i], NULL);
        assert_int_equal(failed, 0);
        for (int i = 0; i < 64; i++)
                stook_cache_free(cache, atomic_exchange(&exchanged[i], NULL));
        end();
}

/* Two slabs with free objects, on two lists. */
static void test_statistics_see_all_lists(void **unused)
{
        struct stook_cache_node_stats stats = { .stats_size = sizeof(stats) };
        struct stook_slabs_node *first;
        struct stook_slab *born[STOOK_SLAB_BIRTHS];

        (void)unused;
        make();
        first = &cache->slabs.node[0];
        for (uint32_t n = 0; n < 3; n += 2) {
                assert_int_equal(stook_slab_births(&cache->slabs, 0, 1, false, born), 1);
                stook_slab_span(born[0])->list_number = n;
                stook_slab_publish(&cache->slabs, born[0], true, false);
        }
        assert_int_equal(stook_slabs_list(first, 0)->partial, 1);
        assert_int_equal(stook_slabs_list(first, 2)->partial, 1);
        assert_int_equal(stook_cache_get_node_stats(cache, 0, &stats), 0);
        assert_int_equal(stats.slabs, 2);
        assert_int_equal(stats.slabs_partial, 2);
        end();
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_threads_handlers_fork_tune),
                cmocka_unit_test(test_statistics_see_all_lists),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
