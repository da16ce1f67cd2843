/*
 * What this proves: a child of _Fork makes and ends groups, and charges them, although a thread of
 * its parent was doing so at the fork; it lacks no id but those that the thread had in hands.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/group.h>
#include <stook/stook.h>

#define FORKS 60

static struct stook_cache *cache;
static unsigned stop, rounds;           /* atomic */

static void *come_and_go(void *unused)
{
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                struct stook_group *group = stook_group_create("comes and goes", NULL, 0);

                if (!group)
                        return &stop;
                stook_group_destroy(group);
                __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
        }
        return unused;
}

static int child(void)
{
        struct stook_group *group;
        void *object;

        alarm(60);
        group = stook_group_create("of the child", NULL, 1 << 20);
        if (!group)
                return 1;
        stook_group_enter(group);
        object = stook_cache_alloc(cache);
        if (!object || !stook_group_usage(group))
                return 2;
        stook_cache_free(cache, object);
        stook_group_enter(NULL);
        if (stook_group_usage(group))
                return 3;
        stook_group_destroy(group);
        return 0;
}

static void groups_beside_a_fork(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = STOOK_CACHE_ACCOUNT };
        pthread_t thread;
        void *fault;

        (void)state;
        cache = stook_cache_create("charged", 64, &args);
        assert_non_null(cache);
        assert_int_equal(pthread_create(&thread, NULL, come_and_go, NULL), 0);
        while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 100)
                usleep(100);
        for (unsigned i = 0; i < FORKS; i++) {
                int status;
                pid_t pid = _Fork();

                if (!pid)
                        _exit(child());
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_int_equal(status, 0);
        }
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        assert_int_equal(pthread_join(thread, &fault), 0);
        assert_null(fault);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(groups_beside_a_fork),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
