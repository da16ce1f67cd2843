/*
 * What this proves: a child of _Fork does not wait for a thread that it does not have. Another
 * thread of the parent was inside the table of caches at the fork. This holds for each first call
 * of the child.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

static sem_t inside, leave;
static struct stook_cache *cache;

static int stay(struct stook_cache *each, void *data)
{
        (void)each, (void)data;
        sem_post(&inside);
        while (sem_wait(&leave) && errno == EINTR)
                ;
        return 1;
}

static void *holder(void *unused)
{
        stook_cache_for_each(stay, NULL);
        return unused;
}

static int count(struct stook_cache *each, void *data)
{
        (void)each;
        ++*(int *)data;
        return 0;
}

static int finds(void)     { return stook_cache_find("first") == cache; }
static int creates(void)   { return stook_cache_create("second", 64, NULL) != NULL; }
static int shrinks(void)   { return stook_cache_shrink(cache) == 1; }
static int refuses(void)   { return stook_cache_destroy(cache) == -EBUSY; }
static int validates(void) { return stook_cache_validate(cache) == 0; }
static int tunes(void)     { return stook_cache_reserve(cache, 10) == 0; }
static int trims(void)     { return stook_trim(0) != SIZE_MAX; }
static int walks(void)
{
        int caches = 0;

        return stook_cache_for_each(count, &caches) == 0 && caches >= 1;
}

static void a_child_does_not_wait_for_a_thread_it_has_not(void **state)
{
        static int (*const calls[])(void) = { finds,     creates, shrinks, refuses,
                                              validates, tunes,   trims,   walks };
        struct stook_cache *other;
        pthread_t thread;
        void *object;

        (void)state;
        sem_init(&inside, 0, 0);
        sem_init(&leave, 0, 0);
        cache = stook_cache_create("first", 64, NULL);
        assert_non_null(cache);
        other = stook_cache_create("other", 64, NULL);  /* more than one to walk */
        assert_non_null(other);
        object = stook_cache_alloc(cache);
        assert_non_null(object);
        assert_int_equal(pthread_create(&thread, NULL, holder, NULL), 0);
        while (sem_wait(&inside) && errno == EINTR)
                ;
        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
                int status = -1;
                pid_t child = _Fork();

                assert_true(child >= 0);
                if (!child) {
                        alarm(40);              /* or it would hang for ever */
                        _exit(calls[i]() ? 0 : 1);
                }
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
        }
        sem_post(&leave);
        pthread_join(thread, NULL);
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(stook_cache_destroy(other), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_child_does_not_wait_for_a_thread_it_has_not),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
