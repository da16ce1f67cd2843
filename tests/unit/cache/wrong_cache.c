/*
 * What this proves: with STOOK_ON_FAULT=isolate an object that is freed to a cache that it is not
 * of is leaked, whatever call frees it. The report names the fault, the object stays out with its
 * content, neither cache's count of live objects changes, and neither hands it out again. A sheaf
 * that is returned to another cache than the one that lent it stays lent, with its objects.
 * The inlined free of a cache without debug modes proves nothing about the object: it is found when
 * the sheaf goes to the slabs, and leaked then.
 */
#include <errno.h>

#include "cache/cache.h"
#include "unit/group/inlined.h"
#include "unit/rcu/by_hand.h"

#define MANY 3000

static struct stook_cache *owner, *other;

/* ---- the calls ---- */

static void by_free(void *object) { stook_cache_free(other, object); }
static void by_nolock(void *object) { stook_cache_free_nolock(other, object); }

/* Among others, in the middle. */
static void in_bulk(void (*free_bulk)(struct stook_cache *, size_t, void **), void *object)
{
        void *objects[3] = { stook_cache_alloc(other), object, stook_cache_alloc(other) };

        free_bulk(other, 3, objects);
}

static void by_bulk(void *object) { in_bulk(stook_cache_free_bulk, object); }
static void by_bulk_nolock(void *object) { in_bulk(stook_cache_free_bulk_nolock, object); }

static void by_rcu(void *object)
{
        assert_int_equal(stook_cache_free_rcu(other, object), -EINVAL);
}

static void by_rcu_nolock(void *object)
{
        assert_int_equal(stook_cache_free_rcu_nolock(other, object), -EINVAL);
}

static void by_rcu_bulk(void *object)
{
        void *objects[3] = { stook_cache_alloc(other), object, stook_cache_alloc(other) };

        assert_int_equal(stook_cache_free_rcu_bulk(other, 3, objects), -EINVAL);
        assert_true(!objects[0] && objects[1] == object && !objects[2]);
}

/* Where no section takes the object, the call behind it finds the fault at once. */
static void by_inline(void *object)
{
        inlined_free(other, object);
        stook_cache_shrink(other);
}

static void (*const calls_that_free[])(void *) = {
        by_free, by_nolock, by_bulk, by_bulk_nolock, by_rcu, by_rcu_nolock, by_rcu_bulk,
        by_inline,
};

/* ---- what becomes of the object ---- */

static void never_comes_out(struct stook_cache *cache, const void *object)
{
        static void *out[MANY];

        for (size_t i = 0; i < MANY; i++) {
                assert_non_null(out[i] = stook_cache_alloc(cache));
                assert_ptr_not_equal(out[i], object);
                memset(out[i], 0xa5, SIZE);
        }
        stook_cache_free_bulk(cache, MANY, out);
}

static void it_is_leaked(void **state)
{
        uint64_t live = stats_of(owner).objects_live;
        char content[SIZE];

        (void)state;
        memset(content, 0x5a, SIZE);
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(calls_that_free); i++) {
                void *object = stook_cache_alloc(owner);

                assert_non_null(object);
                memcpy(object, content, SIZE);
                reports = 0;
                calls_that_free[i](object);
                assert_int_equal(reports, 1);
                assert_int_equal(fault, STOOK_FAULT_WRONG_CACHE);
                grace();
                for (int round = 0; round < 2; round++) {
                        never_comes_out(owner, object);
                        never_comes_out(other, object);
                        stook_cache_shrink(owner);
                        stook_cache_shrink(other);
                }
                assert_memory_equal(object, content, SIZE);
                assert_ptr_equal(stook_object_cache(object), owner);
                assert_int_equal(stats_of(owner).objects_live, ++live);
                assert_int_equal(stook_cache_validate(owner), 0);
                assert_int_equal(stook_cache_validate(other), 0);
                assert_int_equal(reports, 1);
        }
}

static void a_lent_sheaf_stays_lent(void **state)
{
        struct stook_sheaf *lent = stook_sheaf_prefill(owner, 0, 5);
        uint64_t sheaves = stats_of(other).sheaf_return_fast + stats_of(other).sheaf_return_slow;

        (void)state;
        assert_non_null(lent);
        reports = 0;
        stook_sheaf_return(other, lent);
        assert_int_equal(reports, 1);
        assert_int_equal(fault, STOOK_FAULT_WRONG_CACHE);
        assert_int_equal(stats_of(other).sheaf_return_fast + stats_of(other).sheaf_return_slow,
                         sheaves);
        assert_int_equal(stook_sheaf_refill(other, 0, &lent, 5), -EINVAL);
        for (size_t i = 0; i < 5; i++) {
                void *object = stook_sheaf_alloc(owner, lent);

                assert_ptr_equal(stook_object_cache(object), owner);
                stook_cache_free(owner, object);
        }
        stook_sheaf_return(owner, lent);
        assert_int_equal(reports, 1);
        assert_int_equal(stook_cache_validate(owner), 0);
}

static int setup(void **state)
{
        if (round_by_round(state))
                return -1;
        owner = new_cache(0);
        other = new_cache(0);
        stook_on_report(note, NULL);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_is_leaked),
                cmocka_unit_test(a_lent_sheaf_stays_lent),
        };

        return cmocka_run_group_tests(tests, setup, NULL);
}
