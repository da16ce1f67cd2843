/*
 * What this proves: a free that makes another cache's object leave the quarantine keeps that cache
 * from being destroyed meanwhile, and the destroy then succeeds; what belongs to a cache that is
 * being destroyed is left to the destroy; caches come and go beside a thread that fills the ring;
 * objects leave in the order in which they came; there are never more bytes than the limit, an
 * object beyond it makes none leave, and a destroy takes what is its own alone.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>
#include <stook/debug.h>
#include <stook/stook.h>

#include "barn/barn.h"
#include "base/inject.h"
#include "cache/cache.h"
#include "debug/debug_modes.h"

#define OBJECTS 20
#define LIMIT   65536                   /* the test's environment */

static struct stook_cache *goes, *stays;
static void *of_goes[OBJECTS];
static pthread_t destroyer;
static int destroyed;
static bool begun;

static struct stook_cache *create(const char *name, size_t size)
{
        struct stook_cache_args args = {
                .args_size = sizeof(args), .flags = STOOK_CACHE_QUARANTINE | STOOK_CACHE_POISON |
                        STOOK_CACHE_CHECK,
        };
        struct stook_cache *cache = stook_cache_create(name, size, &args);

        assert_non_null(cache);
        return cache;
}

static void *destroy(void *unused)
{
        destroyed = stook_cache_destroy(goes);
        return unused;
}

/* The thread that has the object stops here for longer than a destroy takes that does not wait. */
static void destroy_meanwhile(void *object)
{
        const struct timespec pause = { 0, 50 * 1000 * 1000 };

        if (begun || stook_object_cache(object) != goes)
                return;
        begun = true;
        assert_int_equal(pthread_create(&destroyer, NULL, destroy, NULL), 0);
        nanosleep(&pause, NULL);
}

/* Frees objects of the other cache until those before them have left. */
static void fill_the_ring(void)
{
        for (unsigned i = 0; i < 2000 && !begun; i++) {
                void *object = stook_cache_alloc(stays);

                assert_non_null(object);
                stook_cache_free(stays, object);
        }
}

static void a_destroy_waits_for_what_leaves(void **state)
{
        (void)state;
        goes = create("goes", 1000);
        stays = create("stays", 5000);
        for (unsigned i = 0; i < OBJECTS; i++)
                assert_non_null(of_goes[i] = stook_cache_alloc(goes));
        for (unsigned i = 0; i < OBJECTS; i++)
                stook_cache_free(goes, of_goes[i]);
        assert_true(stook_quarantine_bytes() >= OBJECTS * 1000);
        stook_inject.leaving = destroy_meanwhile;
        fill_the_ring();
        assert_true(begun);
        assert_int_equal(pthread_join(destroyer, NULL), 0);
        stook_inject.leaving = NULL;
        assert_int_equal(destroyed, 0);
        assert_int_equal(stook_cache_validate(stays), 0);
        assert_int_equal(stook_cache_destroy(stays), 0);
        assert_int_equal(stook_quarantine_bytes(), 0);
}

static void *left_in_order[2 * OBJECTS];
static unsigned left_count;

static void note_order(void *object)
{
        if (left_count < 2 * OBJECTS)
                left_in_order[left_count++] = object;
}

/* Who is freed first is handed out first: the others have been waiting for less. */
static void what_came_first_leaves_first(void **state)
{
        static void *freed[2000];
        unsigned n = 0;

        (void)state;
        stays = create("stays", 5000);
        stook_inject.leaving = note_order;
        while (left_count < 2 * OBJECTS) {
                assert_true(n < sizeof(freed) / sizeof(freed[0]));
                assert_non_null(freed[n] = stook_cache_alloc(stays));
                stook_cache_free(stays, freed[n++]);
        }
        stook_inject.leaving = NULL;
        for (unsigned i = 0; i < 2 * OBJECTS; i++)
                assert_ptr_equal(left_in_order[i], freed[i]);
        assert_int_equal(stook_cache_destroy(stays), 0);
        assert_int_equal(stook_quarantine_bytes(), 0);
}

static void the_limit_is_kept(void **state)
{
        static void *objects[200];
        uint64_t before;
        void *large;

        (void)state;
        stays = create("stays", 1000);
        goes = create("goes", STOOK_OBJECT_MAX);
        large = stook_cache_alloc(goes);
        assert_non_null(large);
        for (unsigned i = 0; i < 200; i++)
                assert_non_null(objects[i] = stook_cache_alloc(stays));
        for (unsigned i = 0; i < 200; i++) {
                stook_cache_free(stays, objects[i]);
                assert_in_range(stook_quarantine_bytes(), 1, LIMIT);
        }
        before = stook_quarantine_bytes();
        assert_true(before > LIMIT / 2);
        stook_cache_free(goes, large);
        assert_int_equal(stook_quarantine_bytes(), before);
        assert_int_equal(stook_cache_destroy(goes), 0);
        assert_int_equal(stook_quarantine_bytes(), before);
        goes = create("goes", 500);
        stook_cache_free(goes, stook_cache_alloc(goes));
        assert_int_equal(stook_cache_destroy(goes), 0);
        assert_in_range(stook_quarantine_bytes(), LIMIT / 2, LIMIT);
        assert_int_equal(stook_cache_destroy(stays), 0);
        assert_int_equal(stook_quarantine_bytes(), 0);
}

static unsigned left;

static void count_of_goes(void *object)
{
        left += stook_object_cache(object) == goes;
}

/*
 * Closed barns are what a destroy that is under way looks like. The ring comes round, so that a
 * place with such an object is met, too: what was to go there is free at once.
 */
static void a_destroy_has_what_is_its_own(void **state)
{
        (void)state;
        goes = create("goes", 1000);
        stays = create("stays", 64);
        for (unsigned i = 0; i < OBJECTS; i++)
                assert_non_null(of_goes[i] = stook_cache_alloc(goes));
        for (unsigned i = 0; i < OBJECTS; i++)
                stook_cache_free(goes, of_goes[i]);
        begun = false;
        left = 0;
        stook_inject.leaving = count_of_goes;
        assert_true(stook_barns_close(&goes->barns));
        fill_the_ring();
        assert_int_equal(left, 0);
        assert_true(stook_quarantine_bytes() >= OBJECTS * 1000);
        stook_barns_open(&goes->barns);
        fill_the_ring();
        assert_int_equal(left, OBJECTS);
        stook_inject.leaving = NULL;
        assert_int_equal(stook_cache_destroy(goes), 0);
        assert_int_equal(stook_cache_destroy(stays), 0);
        assert_int_equal(stook_quarantine_bytes(), 0);
}

static bool stop;

static void *fill_until_stopped(void *cache)
{
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                void *object = stook_cache_alloc(cache);

                if (!object)
                        return cache;
                stook_cache_free(cache, object);
        }
        return NULL;
}

static void caches_come_and_go(void **state)
{
        static const size_t sizes[] = { 100, 1000, 4000, 200 };
        pthread_t filler;
        void *fault;

        (void)state;
        stays = create("stays", 64);
        assert_int_equal(pthread_create(&filler, NULL, fill_until_stopped, stays), 0);
        for (unsigned i = 0; i < 1000; i++) {
                goes = create("goes", sizes[i % 4]);
                for (unsigned k = 0; k < OBJECTS; k++)
                        assert_non_null(of_goes[k] = stook_cache_alloc(goes));
                for (unsigned k = 0; k < OBJECTS; k++)
                        stook_cache_free(goes, of_goes[k]);
                assert_int_equal(stook_cache_destroy(goes), 0);
        }
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        assert_int_equal(pthread_join(filler, &fault), 0);
        assert_null(fault);
        assert_int_equal(stook_cache_validate(stays), 0);
        assert_int_equal(stook_cache_destroy(stays), 0);
        assert_int_equal(stook_quarantine_bytes(), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_limit_is_kept),
                cmocka_unit_test(what_came_first_leaves_first),
                cmocka_unit_test(a_destroy_waits_for_what_leaves),
                cmocka_unit_test(a_destroy_has_what_is_its_own),
                cmocka_unit_test(caches_come_and_go),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
