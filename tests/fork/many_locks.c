/*
 * What this proves: a fork takes more locks than the count of held locks can say (255). Afterwards
 * this thread holds none. The parent goes on to wait for locks and to fork whole children. Where
 * libc says that there is one thread, a fork takes no lock, and its children are whole, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/lock.h"
#include "base/thread.h"

#define CACHES 300

static struct stook_cache *cache[CACHES];

extern char __libc_single_threaded __attribute__((weak));

static int look_in_child(void)
{
        void *object;

        if (stook_lock_may_not_wait())
                return 1;
        for (unsigned i = 0; i < CACHES; i++) {
                object = stook_cache_alloc(cache[i]);
                if (!object)
                        return 2;
                stook_cache_free(cache[i], object);
                if (stook_cache_validate(cache[i]))
                        return 3;
        }
        return stook_lock_may_not_wait() ? 4 : 0;
}

static void a_fork_with_many_caches_leaves_no_lock_held(void **state)
{
        int status;
        pid_t child;

        (void)state;
        for (unsigned i = 0; i < CACHES; i++) {
                cache[i] = stook_cache_create("one of many", 64, NULL);
                assert_non_null(cache[i]);
                stook_cache_free(cache[i], stook_cache_alloc(cache[i]));
        }
        for (unsigned forks = 0; forks < 6; forks++) {
                if (&__libc_single_threaded)
                        __libc_single_threaded = forks / 3;
                child = fork();
                assert_true(child >= 0);
                if (!child) {
                        alarm(30);
                        _exit(look_in_child());
                }
                assert_int_equal(stook_self->locks_held, 0);
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
        }
        for (unsigned i = 0; i < CACHES; i++)
                assert_int_equal(stook_cache_destroy(cache[i]), 0);
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test(a_fork_with_many_caches_leaves_no_lock_held),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
