/*
 * What this proves: a walk over a cache's objects shows each object that a caller owns once, and no
 * other, wherever freed ones are kept; its callback may allocate and free; a destroy frees all that
 * is left; and every error of both calls.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

enum { N = 3000, SIZE = 48 };

static unsigned *objects[N];
static unsigned seen[N], strange;

static struct stook_cache *new_cache(uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags };
        struct stook_cache *cache = stook_cache_create("objects", SIZE, &args);

        assert_non_null(cache);
        return cache;
}

/* Those whose number is even stay. */
static void keep_half(struct stook_cache *cache)
{
        memset(seen, 0, sizeof(seen));
        strange = 0;
        for (unsigned i = 0; i < N; i++) {
                objects[i] = stook_cache_alloc(cache);
                assert_non_null(objects[i]);
                *objects[i] = i;
        }
        for (unsigned i = 1; i < N; i += 2)
                stook_cache_free(cache, objects[i]);
}

static void look(void *object, void *data)
{
        unsigned i = *(unsigned *)object;

        assert_ptr_equal(data, seen);
        if (i < N && objects[i] == object)
                seen[i]++;
        else
                strange++;
}

static int see(void *object, void *data)
{
        look(object, data);
        return 0;
}

static void check_seen(void)
{
        assert_int_equal(strange, 0);
        for (unsigned i = 0; i < N; i++)
                assert_int_equal(seen[i], i % 2 == 0);
        memset(seen, 0, sizeof(seen));
}

static void each_object_is_seen_once(void **state)
{
        struct stook_cache *cache = new_cache((uint64_t)(uintptr_t)*state);
        struct stook_cache_stats before = { .stats_size = sizeof(before) }, after = before;

        keep_half(cache);
        assert_int_equal(stook_cache_get_stats(cache, &before), 0);
        for (unsigned round = 0; round < 2; round++) {
                assert_int_equal(stook_cache_for_each_object(cache, see, seen), 0);
                check_seen();
        }
        assert_int_equal(stook_cache_validate(cache), 0);
        /* Sheaves are as before. */
        assert_int_equal(stook_cache_get_stats(cache, &after), 0);
        assert_int_equal(after.sheaf_capacity, before.sheaf_capacity);
        for (unsigned i = 0; i < N; i += 2)
                stook_cache_free(cache, objects[i]);
        assert_int_equal(stook_cache_for_each_object(cache, see, seen), 0);
        for (unsigned i = 0; i < N; i++)
                assert_int_equal(seen[i], 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static int stop_at_third(void *object, void *data)
{
        (void)object;
        return ++*(int *)data == 3 ? 7 : 0;
}

static void a_number_ends_the_walk(void **state)
{
        struct stook_cache *cache = new_cache(0);
        int shown = 0;

        (void)state;
        keep_half(cache);
        assert_int_equal(stook_cache_for_each_object(cache, stop_at_third, &shown), 7);
        assert_int_equal(shown, 3);
        assert_int_equal(stook_cache_destroy_all(cache, NULL, NULL), 0);
}

/* Frees the object it is shown and the next one, and allocates one. */
struct changes {
        struct stook_cache *cache;
        unsigned freed, made;
        void *kept[N];
};

static void free_number(struct changes *changes, unsigned i)
{
        if (i >= N || !objects[i])
                return;
        stook_cache_free(changes->cache, objects[i]);
        objects[i] = NULL;
        changes->freed++;
}

static int change(void *object, void *data)
{
        struct changes *changes = data;
        unsigned i = *(unsigned *)object;

        if (i == UINT32_MAX)                    /* one that was made here */
                return 0;
        assert_true(i < N);
        assert_ptr_equal(objects[i], object);   /* not one that is free again */
        free_number(changes, i);
        free_number(changes, i + 2);
        if (changes->made < N / 4) {
                unsigned *kept = stook_cache_alloc(changes->cache);

                assert_non_null(kept);
                *kept = UINT32_MAX;
                changes->kept[changes->made++] = kept;
        }
        return 0;
}

static void the_callback_may_free_and_allocate(void **state)
{
        static struct changes changes;

        changes = (struct changes){ .cache = new_cache((uint64_t)(uintptr_t)*state) };
        keep_half(changes.cache);
        for (unsigned i = 1; i < N; i += 2)
                objects[i] = NULL;
        assert_int_equal(stook_cache_for_each_object(changes.cache, change, &changes), 0);
        assert_int_equal(changes.freed, N / 2);
        assert_int_equal(stook_cache_validate(changes.cache), 0);
        for (unsigned i = 0; i < changes.made; i++)
                stook_cache_free(changes.cache, changes.kept[i]);
        assert_int_equal(stook_cache_destroy(changes.cache), 0);
}

static void destroy_with_everything(void **state)
{
        struct stook_cache *cache = new_cache((uint64_t)(uintptr_t)*state);

        keep_half(cache);
        assert_int_equal(stook_cache_destroy_all(cache, look, seen), 0);
        check_seen();
        assert_null(stook_cache_find("objects"));
        cache = new_cache((uint64_t)(uintptr_t)*state);
        keep_half(cache);
        assert_int_equal(stook_cache_destroy_all(cache, NULL, NULL), 0);
        assert_null(stook_cache_find("objects"));
}

/* As of a list: whichever is shown first frees the next one. */
static void free_next(void *object, void *data)
{
        unsigned i = *(unsigned *)object;

        assert_true(i < N);
        objects[i] = NULL;
        if (i + 2 < N && objects[i + 2]) {
                stook_cache_free(data, objects[i + 2]);
                objects[i + 2] = NULL;
        }
}

static void the_last_look_may_free_others(void **state)
{
        struct stook_cache *cache = new_cache(0);

        (void)state;
        keep_half(cache);
        assert_int_equal(stook_cache_destroy_all(cache, free_next, cache), 0);
        for (unsigned i = 0; i < N; i += 2)
                assert_null(objects[i]);
}

static void groups_get_their_bytes_back(void **state)
{
        struct stook_group *group = stook_group_create("objects", NULL, UINT64_MAX);
        struct stook_cache *cache = new_cache(STOOK_CACHE_ACCOUNT);

        (void)state;
        assert_non_null(group);
        stook_group_enter(group);
        keep_half(cache);
        assert_true(stook_group_usage(group) >= (uint64_t)N / 2 * SIZE);
        assert_int_equal(stook_cache_for_each_object(cache, see, seen), 0);
        check_seen();
        stook_group_enter(NULL);
        assert_int_equal(stook_cache_destroy_all(cache, NULL, NULL), 0);
        stook_trim(0);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_destroy(group);
}

static int answers[2];
static unsigned reports;

static int ask_again(struct stook_cache *cache, void *data)
{
        if (cache != data)
                return 0;
        answers[0] = stook_cache_for_each_object(cache, see, seen);
        answers[1] = stook_cache_destroy_all(cache, NULL, NULL);
        return 1;
}

static int ask_in_a_walk(void *object, void *data)
{
        (void)object;
        return ask_again(data, data);
}

static void on_report(const struct stook_report *report, void *data)
{
        (void)report;
        (void)data;
        reports++;
}

static void every_error(void **state)
{
        struct stook_cache *cache = new_cache(0);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 4);
        void *of_malloc = stook_malloc(64), *object = stook_cache_alloc(cache);

        (void)state;
        assert_non_null(sheaf);
        assert_non_null(object);
        assert_int_equal(stook_cache_for_each_object(NULL, see, seen), -EINVAL);
        assert_int_equal(stook_cache_for_each_object(cache, NULL, seen), -EINVAL);
        assert_int_equal(stook_cache_for_each_object(cache, see, seen), -EBUSY);
        assert_int_equal(stook_cache_destroy_all(cache, look, seen), -EBUSY);
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(stook_cache_destroy_all(NULL, NULL, NULL), 0);
        assert_int_equal(stook_cache_for_each_object(stook_object_cache(of_malloc), see, seen),
                         -EINVAL);
        assert_int_equal(stook_cache_destroy_all(stook_object_cache(of_malloc), NULL, NULL),
                         -EINVAL);
        stook_free(of_malloc);
        stook_on_report(on_report, NULL);
        assert_int_equal(stook_cache_for_each(ask_again, cache), 1);
        assert_int_equal(answers[0], -EDEADLK);
        assert_int_equal(answers[1], -EDEADLK);
        answers[0] = answers[1] = 0;
        assert_int_equal(stook_cache_for_each_object(cache, ask_in_a_walk, cache), 1);
        assert_int_equal(answers[0], -EDEADLK);
        assert_int_equal(answers[1], -EDEADLK);
        assert_int_equal(reports, 4);
        assert_int_equal(stook_cache_destroy_all(cache, NULL, NULL), 0);
        assert_int_equal(stook_cache_destroy_all(cache, NULL, NULL), -EINVAL);
        assert_int_equal(stook_cache_for_each_object(cache, see, seen), -EINVAL);
        assert_int_equal(reports, 6);
        stook_on_report(NULL, NULL);
}

static struct stook_cache *leaky;

static void leave_one(void *object, void *data)
{
        (void)object;
        if (!*(void **)data)
                *(void **)data = stook_cache_alloc(leaky);
}

static void what_is_allocated_meanwhile_stays(void **state)
{
        void *left = NULL;

        (void)state;
        leaky = new_cache(0);
        for (unsigned i = 0; i < N; i++)
                assert_non_null(stook_cache_alloc(leaky));
        stook_on_report(on_report, NULL);
        switch (stook_cache_destroy_all(leaky, leave_one, &left)) {
        case 0:                         /* it was shown, and freed */
                break;
        case -EBUSY:
                stook_cache_free(leaky, left);
                assert_int_equal(stook_cache_destroy(leaky), 0);
                break;
        default:
                fail();
        }
        stook_on_report(NULL, NULL);
}

static void a_shared_cache_is_kept(void **state)
{
        struct stook_cache *one = new_cache(STOOK_CACHE_MERGE), *two = new_cache(STOOK_CACHE_MERGE);
        void *object = stook_cache_alloc(one);

        (void)state;
        assert_ptr_equal(one, two);
        assert_non_null(object);
        assert_int_equal(stook_cache_destroy_all(one, NULL, NULL), -EBUSY);
        assert_int_equal(stook_cache_destroy(one), 0);
        assert_int_equal(stook_cache_destroy_all(two, NULL, NULL), 0);
}

#define FLAGS(flags) ((void *)(uintptr_t)(flags))

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_prestate(each_object_is_seen_once, FLAGS(0)),
                cmocka_unit_test_prestate(each_object_is_seen_once, FLAGS(STOOK_CACHE_NO_SHEAVES)),
                cmocka_unit_test_prestate(each_object_is_seen_once,
                                          FLAGS(STOOK_CACHE_TYPESAFE_BY_RCU)),
                cmocka_unit_test_prestate(each_object_is_seen_once,
                                          FLAGS(STOOK_CACHE_CHECK | STOOK_CACHE_QUARANTINE)),
                cmocka_unit_test(a_number_ends_the_walk),
                cmocka_unit_test_prestate(the_callback_may_free_and_allocate, FLAGS(0)),
                cmocka_unit_test_prestate(the_callback_may_free_and_allocate,
                                          FLAGS(STOOK_CACHE_CHECK | STOOK_CACHE_QUARANTINE)),
                cmocka_unit_test_prestate(destroy_with_everything, FLAGS(0)),
                cmocka_unit_test_prestate(destroy_with_everything,
                                          FLAGS(STOOK_CACHE_CHECK | STOOK_CACHE_QUARANTINE)),
                cmocka_unit_test(the_last_look_may_free_others),
                cmocka_unit_test(groups_get_their_bytes_back),
                cmocka_unit_test(every_error),
                cmocka_unit_test(what_is_allocated_meanwhile_stays),
                cmocka_unit_test(a_shared_cache_is_kept),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
