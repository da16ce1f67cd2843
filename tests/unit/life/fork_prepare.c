/*
 * What this proves: a fork whose prepare cannot have a lock, because another thread holds it all
 * the time, lets go of those that it took before: of slabs of the same cache and of earlier caches,
 * and of the registry. Parent and child go on. Run with STOOK_TOPOLOGY=nodes=4.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/lock.h"
#include "base/thread.h"
#include "cache/cache.h"
#include "evacuate/evacuate.h"
#include "os/os.h"
#include "pages/pages_node.h"

#define CACHES 3

static struct stook_cache *caches[CACHES];
static struct stook_lock *held;
static pthread_barrier_t met;

static void *hold(void *unused)
{
        if (!stook_lock_take(held))
                return &met;
        pthread_barrier_wait(&met);             /* the fork is in between */
        pthread_barrier_wait(&met);
        stook_lock_drop(held);
        return unused;
}

static bool is_free(const struct stook_lock *lock)
{
        return lock == held || !stook_lock_is_taken(lock);
}

static bool all_others_are_free(void)
{
        bool all = !stook_lock_may_not_wait() && !stook_registry_is_mine();

        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                for (unsigned i = 0; i < CACHES; i++)
                        all &= is_free(&caches[i]->slabs.node[n].lock);
                all &= is_free(&stook_pages_nodes[n].lock);
        }
        return all;
}

static int child(void)
{
        alarm(60);
        for (unsigned i = 0; i < CACHES; i++) {
                stook_cache_free(caches[i], stook_cache_alloc(caches[i]));
                if (stook_cache_shrink(caches[i]) < 0 || stook_cache_validate(caches[i]))
                        return 1;
        }
        /* Nor does a round over idle slots go on. */
        if (__atomic_load_n(&stook_evacuate_looking, __ATOMIC_RELAXED))
                return 3;
        /* In the child nobody holds that one. */
        held = NULL;
        return all_others_are_free() ? 0 : 2;
}

static void fork_beside_a_holder_of(struct stook_lock *lock)
{
        pthread_t thread;
        void *fault;
        int status;
        pid_t pid;

        held = lock;
        assert_int_equal(pthread_create(&thread, NULL, hold, NULL), 0);
        pthread_barrier_wait(&met);
        stook_evacuate_looking = 1;     /* another thread is in such a round */
        pid = fork();
        if (!pid)
                _exit(child());
        stook_evacuate_looking = 0;
        assert_true(all_others_are_free());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        pthread_barrier_wait(&met);
        assert_int_equal(pthread_join(thread, &fault), 0);
        assert_null(fault);
        held = NULL;
        assert_true(all_others_are_free());
        for (unsigned i = 0; i < CACHES; i++) {
                stook_cache_free(caches[i], stook_cache_alloc(caches[i]));
                assert_int_equal(stook_cache_validate(caches[i]), 0);
        }
}

static void a_prepare_that_fails_lets_go(void **state)
{
        (void)state;
        assert_true(stook_os_node_count() > 2);
        for (unsigned i = 0; i < CACHES; i++) {
                caches[i] = stook_cache_create("forked", 64, NULL);
                assert_non_null(caches[i]);
                stook_cache_free(caches[i], stook_cache_alloc(caches[i]));
        }
        pthread_barrier_init(&met, NULL, 2);
        fork_beside_a_holder_of(&caches[1]->slabs.node[2].lock);
        fork_beside_a_holder_of(&caches[2]->slabs.node[0].lock);
        fork_beside_a_holder_of(&stook_pages_nodes[2].lock);
        for (unsigned i = 0; i < CACHES; i++)
                assert_int_equal(stook_cache_destroy(caches[i]), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_prepare_that_fails_lets_go),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
