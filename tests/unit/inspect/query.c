/*
 * Proves: a cache tells its name, a thread its group; all groups are shown until the callback ends
 * the walk; an object's slab is told by how full it is, and the one that is emptier than the others
 * is worth leaving; what is asked wrongly is refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

static void test_name(void **state)
{
        struct stook_cache *cache = stook_cache_create("more than sixteen bytes", 40, NULL);

        (void)state;
        assert_string_equal(stook_cache_get_name(cache), "more than sixteen bytes");
        assert_null(stook_cache_get_name(NULL));
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static int count(struct stook_group *group, void *data)
{
        unsigned *left = data;

        assert_true(stook_group_usage(group) == 0);
        return --*left == 0 ? 7 : 0;
}

static void test_groups(void **state)
{
        unsigned left = 100;
        struct stook_group *groups[3];

        (void)state;
        assert_null(stook_group_current());
        assert_int_equal(stook_group_for_each(NULL, NULL), -EINVAL);
        assert_int_equal(stook_group_for_each(count, &left), 0);
        assert_int_equal(left, 100);
        for (int i = 0; i < 3; i++)
                assert_non_null(groups[i] = stook_group_create("group", NULL, 0));
        assert_int_equal(stook_group_for_each(count, &left), 0);
        assert_int_equal(left, 97);
        left = 2;
        assert_int_equal(stook_group_for_each(count, &left), 7);
        assert_int_equal(left, 0);
        assert_null(stook_group_enter(groups[1]));
        assert_ptr_equal(stook_group_current(), groups[1]);
        stook_group_enter(NULL);
        assert_null(stook_group_current());
        for (int i = 0; i < 3; i++)
                stook_group_destroy(groups[i]);
        left = 100;
        assert_int_equal(stook_group_for_each(count, &left), 0);
        assert_int_equal(left, 100);
}

static void test_occupancy(void **state)
{
        enum { OBJECTS = 4000 };
        static void *objects[OBJECTS];
        struct stook_cache_args args = { .args_size = sizeof(args),
                                         .flags = STOOK_CACHE_NO_SHEAVES };
        struct stook_cache *cache = stook_cache_create("occupied", 100, &args);
        struct stook_occupancy o = { .occupancy_size = sizeof(o) };
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };
        void *large = stook_malloc(1 << 20), *small = stook_malloc(100);
        char *last;

        (void)state;
        for (int i = 0; i < OBJECTS; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        assert_true(stats.slabs > 4);
        /* Of the first, all but one go: that one's slab, which was full, has no others. */
        last = objects[0];
        assert_int_equal(stook_object_get_occupancy(last, &o), 0);
        for (uint64_t i = 1; i < 2 * stats.objects_per_slab; i++) {
                stook_cache_free(cache, objects[i]);
                objects[i] = NULL;
        }
        assert_int_equal(stook_object_get_occupancy(last, &o), 1);
        assert_true(o.slab_out < o.slab_objects);
        assert_int_equal(o.slab_objects, stats.objects_per_slab);
        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        assert_int_equal(o.cache_slabs, stats.slabs);
        assert_int_equal(o.cache_out, stats.objects_live);
        assert_int_equal(stook_object_get_occupancy(objects[OBJECTS / 2], &o), 0);
        assert_int_equal(o.slab_out, o.slab_objects);
        assert_true(stook_object_get_occupancy(small, &o) >= 0);
        assert_true(o.slab_out >= 1 && o.cache_out >= 1);

        assert_int_equal(stook_object_get_occupancy(NULL, &o), -EINVAL);
        assert_int_equal(stook_object_get_occupancy(last, NULL), -EINVAL);
        assert_int_equal(stook_object_get_occupancy(last + 1, &o), -EINVAL);
        assert_int_equal(stook_object_get_occupancy(large, &o), -EINVAL);
        assert_int_equal(stook_object_get_occupancy(&o, &o), -EINVAL);
        o.occupancy_size = 8;
        assert_int_equal(stook_object_get_occupancy(last, &o), -EINVAL);
        stook_free(large);
        stook_free(small);
        for (int i = 0; i < OBJECTS; i++)
                if (objects[i])
                        stook_cache_free(cache, objects[i]);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_name),
                cmocka_unit_test(test_groups),
                cmocka_unit_test(test_occupancy),
        };

        return cmocka_run_group_tests_name("questions", tests, NULL, NULL);
}
