/*
 * What this proves: with zero-alloc every object reads as zeros when it is handed out, and with
 * zero-free from its free on, by every call and for every size. Objects of a constructor and of
 * type-stable caches keep their content. Run once for each way to ask for zeros.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "harden/harden.h"

#define N 300

static bool is_all(const unsigned char *object, size_t bytes, unsigned char with)
{
        for (size_t i = 0; i < bytes; i++)
                if (object[i] != with)
                        return false;
        return true;
}

/* A new object of any content gets its user's. */
static void use(void *object, size_t bytes)
{
        assert_non_null(object);
        if (stook_is_hardened(STOOK_HARDEN_ZERO_ALLOC))
                assert_true(is_all(object, bytes, 0));
        memset(object, 0xa5, bytes);
}

/* Caches keep the memory of what was just freed, so it may be read here. */
static void expect_freed(const void *object, size_t bytes)
{
        if (stook_is_hardened(STOOK_HARDEN_ZERO_FREE))
                assert_true(is_all(object, bytes, 0));
}

static void objects_of_caches(void **state)
{
        const uint64_t flags[] = { 0, STOOK_CACHE_NO_SHEAVES, STOOK_CACHE_ACCOUNT,
                                   STOOK_CACHE_RCU };
        void *objects[N];

        (void)state;
        for (int i = 0; i < 4; i++) {
                struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags[i] };
                struct stook_cache *cache = stook_cache_create("zeros", 72, &args);
                struct stook_sheaf *sheaf;

                for (int round = 0; round < 3; round++) {
                        for (int k = 0; k < N; k++)
                                use(objects[k] = stook_cache_alloc(cache), 72);
                        for (int k = 0; k < N; k++)
                                stook_cache_free(cache, objects[k]);
                        expect_freed(objects[N - 1], 72);
                        assert_int_equal(stook_cache_alloc_bulk(cache, 0, N, objects), 0);
                        for (int k = 0; k < N; k++)
                                use(objects[k], 72);
                        stook_cache_free_bulk(cache, N, objects);
                }
                sheaf = stook_sheaf_prefill(cache, 0, 20);
                assert_non_null(sheaf);
                for (int k = 0; k < 20; k++) {
                        use(objects[k] = stook_sheaf_alloc(cache, sheaf), 72);
                        stook_cache_free(cache, objects[k]);
                        expect_freed(objects[k], 72);
                }
                stook_sheaf_return(cache, sheaf);
                assert_int_equal(stook_cache_validate(cache), 0);
                assert_int_equal(stook_cache_destroy(cache), 0);
        }
}

static void objects_of_malloc(void **state)
{
        (void)state;
        for (size_t size = 1; size < (size_t)40 << 20; size += size / 3 + 1) {
                for (int round = 0; round < 3; round++) {
                        unsigned char *object = stook_malloc(size), *moved;

                        use(object, stook_usable_size(object));
                        moved = stook_realloc(object, size + size / 2 + 1);
                        assert_non_null(moved);
                        assert_true(is_all(moved, size, 0xa5));
                        if (stook_is_hardened(STOOK_HARDEN_ZERO_ALLOC) && moved != object)
                                assert_true(is_all(moved + stook_usable_size(moved) - size / 8,
                                                   size / 8, 0));
                        memset(moved, 0xa5, stook_usable_size(moved));
                        object = stook_realloc(moved, size / 3 + 1);
                        assert_non_null(object);
                        assert_true(is_all(object, size / 3 + 1, 0xa5));
                        memset(object, 0xa5, stook_usable_size(object));
                        stook_free(object);
                        object = stook_calloc(size, 1);
                        assert_true(is_all(object, size, 0));
                        memset(object, 0xa5, size);
                        stook_free(object);
                }
        }
}

static void construct(void *object, void *data)
{
        (void)data;
        memset(object, 0x3c, 40);
}

static void made_objects_keep_their_content(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .ctor = construct };
        struct stook_cache *cache = stook_cache_create("made", 40, &args);
        void *object = stook_cache_alloc(cache);

        (void)state;
        assert_true(is_all(object, 40, 0x3c));
        stook_cache_free(cache, object);
        assert_true(is_all(object, 40, 0x3c));
        assert_int_equal(stook_cache_destroy(cache), 0);

        args.ctor = NULL;
        args.flags = STOOK_CACHE_TYPESAFE_BY_RCU;
        cache = stook_cache_create("stable", 40, &args);
        assert_non_null(cache);
        object = stook_cache_alloc(cache);
        memset(object, 0x3c, 40);
        stook_cache_free(cache, object);
        assert_true(is_all(object, 40, 0x3c));
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static struct stook_rcu_head *waiting;
static void (*wanted)(struct stook_rcu_head *head);

static void barrier(void)
{
        if (waiting)
                wanted(waiting);
        waiting = NULL;
}

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        barrier();
        waiting = head;
        wanted = done;
}

static const struct stook_rcu by_hand = { .ops_size = sizeof(by_hand), .call = call,
                                          .barrier = barrier };

/* Readers may look at an object until they have left. */
static void objects_are_zeroed_after_their_readers(void **state)
{
        const uint64_t flags[] = { 0, STOOK_CACHE_NO_SHEAVES,
                                   STOOK_CACHE_RCU | STOOK_CACHE_NO_SHEAVES };

        (void)state;
        for (int i = 0; i < 3; i++) {
                struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags[i],
                                                 .rcu = &by_hand };
                struct stook_cache *cache = stook_cache_create("read", 64, &args);
                void *object = stook_cache_alloc(cache);

                assert_non_null(object);
                memset(object, 0xa5, 64);
                if (stook_cache_free_rcu(cache, object)) {
                        stook_cache_free(cache, object);
                } else {
                        assert_true(is_all(object, 64, 0xa5));
                        stook_cache_rcu_barrier(cache);
                }
                expect_freed(object, 64);
                assert_int_equal(stook_cache_destroy(cache), 0);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(objects_of_caches),
                cmocka_unit_test(objects_of_malloc),
                cmocka_unit_test(made_objects_keep_their_content),
                cmocka_unit_test(objects_are_zeroed_after_their_readers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
