/*
 * Proves that the child of vfork may allocate and free while the parent's other threads do. It
 * shares their memory, but the kernel protects no section of the child, so it must stay off the hot
 * path. Afterwards the parent is on the hot path again. A vfork that fails sets errno.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/control.h>
#include <stook/layout.h>

#define CHILDREN 2000
/* Allocations of one child; STOOK_VFORK_ALLOCATIONS=10000000 for a long one. */
static unsigned rounds_of_child = 200;
#define KEPT     64

static bool stop;
static unsigned faults;

/* Allocates, stamps, checks, frees. Any object handed out twice shows as a wrong stamp. */
static void work(unsigned rounds, unsigned stamp)
{
        uint64_t *kept[KEPT] = { NULL };

        for (unsigned i = 0; i < rounds; i++) {
                uint64_t **at = &kept[(i * 7919u + stamp) % KEPT];

                if (*at) {
                        if ((*at)[0] != stamp || (*at)[3] != (uintptr_t)*at)
                                __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
                        (*at)[0] = 0;
                        free(*at);
                        *at = NULL;
                } else if ((*at = malloc(48))) {
                        (*at)[0] = stamp;
                        (*at)[3] = (uintptr_t)*at;
                }
        }
        for (unsigned i = 0; i < KEPT; i++)
                free(kept[i]);
}

static void *other(void *unused)
{
        (void)unused;
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
                work(1000, 1);
        return NULL;
}

static void test_children_allocate_among_threads(void **state)
{
        pthread_t threads[3];
        uint32_t ready = (free(malloc(48)), stook_thread_v1.ready);
        volatile uint32_t in_child = 1;

        (void)state;
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, other, NULL), 0);
        for (unsigned i = 0; i < (rounds_of_child > 200 ? 1 : CHILDREN); i++) {
                int status;
                pid_t child = vfork();

                if (!child) {
                        in_child = stook_thread_v1.ready;
                        work(rounds_of_child, 2);
                        _exit(in_child || stook_thread_v1.ready);
                }
                assert_true(child > 0);
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
                assert_int_equal(in_child, 0);
                assert_int_equal(stook_thread_v1.barred, 0);
                assert_int_equal(stook_thread_v1.inside, 0);
                assert_true(stook_thread_v1.ready >= ready);
                work(20, 3);
        }
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < 3; i++)
                pthread_join(threads[i], NULL);
        assert_int_equal(faults, 0);
}

/* Their children are there at the same time. */
static void *forks(void *bad)
{
        for (unsigned i = 0; i < CHILDREN / 8; i++) {
                int status = 0;
                pid_t child = vfork();

                if (!child) {
                        work(rounds_of_child, 4);
                        _exit(stook_thread_v1.ready != 0);
                }
                if (child < 0 || waitpid(child, &status, 0) != child || status ||
                    stook_thread_v1.barred)
                        __atomic_fetch_add((unsigned *)bad, 1, __ATOMIC_RELAXED);
                work(20, 5);
        }
        return NULL;
}

static void test_children_of_several_threads(void **state)
{
        pthread_t threads[3], others[2];
        unsigned bad = 0;

        (void)state;
        __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&others[i], NULL, other, NULL), 0);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, forks, &bad), 0);
        for (unsigned i = 0; i < 3; i++)
                pthread_join(threads[i], NULL);
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < 2; i++)
                pthread_join(others[i], NULL);
        assert_int_equal(bad, 0);
        assert_int_equal(faults, 0);
}

static void test_a_failing_vfork_sets_errno(void **state)
{
        struct rlimit before, none = { 0, 0 };
        uint32_t ready = stook_thread_v1.ready;
        int status = 0, error;
        pid_t child;

        (void)state;
        if (!geteuid())
                skip();                 /* root is not held to the limit */
        getrlimit(RLIMIT_NPROC, &before);
        none.rlim_max = before.rlim_max;
        setrlimit(RLIMIT_NPROC, &none);
        child = vfork();
        if (!child)
                _exit(0);
        error = errno;
        setrlimit(RLIMIT_NPROC, &before);
        if (child > 0)
                waitpid(child, &status, 0);
        assert_int_equal(child, -1);
        assert_int_equal(error, EAGAIN);
        assert_int_equal(stook_thread_v1.ready, ready);
        assert_int_equal(stook_thread_v1.barred, 0);
        assert_int_equal(stook_thread_v1.inside, 0);
}

/* Only where root runs the test: the limit of processes binds other users alone. */
static int drop_privileges(void **state)
{
        (void)state;
        return !geteuid() && setuid(65534) ? 1 : 0;
}

int main(void)
{
        const char *wish = getenv("STOOK_VFORK_ALLOCATIONS");
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_children_allocate_among_threads),
                cmocka_unit_test(test_children_of_several_threads),
                cmocka_unit_test_setup(test_a_failing_vfork_sets_errno, drop_privileges),
        };

        if (wish && atol(wish) > 0)             /* half of the rounds allocate, half free */
                rounds_of_child = 2 * (unsigned)atol(wish);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
