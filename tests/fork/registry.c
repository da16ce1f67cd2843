/*
 * What this proves: a child of _Fork does not wait for a thread that it does not have. Another
 * thread of the parent was inside the table of caches at the fork. This holds for each first call
 * of the child. The child has the table whole, whatever that thread had changed of it by then: all
 * caches that live or were being destroyed, in the order of their births, and the free indices.
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

#include "cache/cache.h"

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

static struct stook_cache *others[3];

/* As a call that is stopped between two stores: the lists do not have what they should. */
static int break_lists(struct stook_cache *each, void *data)
{
        struct stook_list *before = others[0]->all.prev;

        (void)each, (void)data;
        stook_list_remove(&others[0]->all);
        others[1]->state = STOOK_CACHE_DYING;   /* a destroy is under way */
        sem_post(&inside);
        while (sem_wait(&leave) && errno == EINTR)
                ;
        others[1]->state = STOOK_CACHE_LIVE;
        stook_list_insert_between(&others[0]->all, before, before->next);
        return 1;
}

static void *breaker(void *unused)
{
        stook_cache_for_each(break_lists, NULL);
        return unused;
}

static int note_order(struct stook_cache *each, void *data)
{
        struct stook_cache **last = data;

        if (*last && (*last)->born > each->born)
                return 1;
        *last = each;
        return 0;
}

static int has_all(void)
{
        struct stook_cache *last = NULL, *made;
        unsigned bound = stook_caches_bound();

        if (stook_cache_find("kept") != others[0] || stook_cache_find("dying") != others[1])
                return 2;
        if (stook_cache_for_each(note_order, &last))
                return 3;
        /* The index of the third is free. */
        made = stook_cache_create("made", 64, NULL);
        if (made != others[2] || stook_caches_bound() != bound)
                return 4;
        if (!stook_cache_alloc(others[0]) || !stook_cache_alloc(made))
                return 5;
        if (stook_cache_destroy(others[1]))
                return 6;
        return stook_cache_find("dying") ? 7 : 0;
}

static void a_child_has_the_table_whole(void **state)
{
        static const char *const names[3] = { "kept", "dying", "gone" };
        pthread_t thread;
        int status = -1;
        pid_t child;

        (void)state;
        sem_init(&inside, 0, 0);
        sem_init(&leave, 0, 0);
        for (unsigned i = 0; i < 3; i++)
                assert_non_null(others[i] = stook_cache_create(names[i], 64, NULL));
        stook_cache_free(others[1], stook_cache_alloc(others[1]));
        assert_int_equal(stook_cache_destroy(others[2]), 0);
        assert_int_equal(pthread_create(&thread, NULL, breaker, NULL), 0);
        while (sem_wait(&inside) && errno == EINTR)
                ;
        child = _Fork();
        assert_true(child >= 0);
        if (!child) {
                alarm(40);
                _exit(has_all());
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        sem_post(&leave);
        pthread_join(thread, NULL);
        assert_int_equal(stook_cache_destroy(others[0]), 0);
        assert_int_equal(stook_cache_destroy(others[1]), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_child_does_not_wait_for_a_thread_it_has_not),
                cmocka_unit_test(a_child_has_the_table_whole),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
