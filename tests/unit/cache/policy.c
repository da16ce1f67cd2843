/*
 * What this proves, on the made-up machine of nodes.c: allocations follow the task's memory policy
 * where STOOK_STRICT_NUMA asks for that. malloc takes from the node that the thread runs on, and
 * realloc from the node of the old object.
 */
#include "on_nodes.h"

/* ---- STOOK_STRICT_NUMA ---- */

static int policy_mode;
static uint64_t policy_nodes;

static bool policy(int *mode, uint64_t *nodes)
{
        *mode = policy_mode;
        *nodes = policy_nodes;
        return true;
}

static unsigned under_policy(struct stook_cache *cache, int mode, uint64_t nodes, size_t n)
{
        static void *object[64];
        unsigned of_2;

        policy_mode = mode;
        policy_nodes = nodes;
        allocate(cache, object, n);
        of_2 = how_many_of(2, object, n);
        free_all(cache, object, n);
        return of_2;
}

static unsigned many_under_policy(struct stook_cache *cache, int mode, uint64_t nodes, size_t n)
{
        static void *object[64];
        unsigned of_2;

        policy_mode = mode;
        policy_nodes = nodes;
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, n, object), 0);
        of_2 = how_many_of(2, object, n);
        free_all(cache, object, n);
        return of_2;
}

/* On this thread's slot. */
static void leave_of_2(struct stook_cache *cache)
{
        void *object[50];

        for (int i = 0; i < 50; i++)
                assert_non_null(object[i] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, 2));
        free_all(cache, object, 50);
}

static void the_policy_is_followed(void **state)
{
        struct stook_cache *cache = stook_cache_create("policy", 64, NULL);

        (void)state;
        if (!locked)
                skip();                         /* the option has the locked backend used */
        NEED_NODE(0);
        stook_slots_strict = true;
        stook_inject.ask_policy = policy;
        assert_int_equal(under_policy(cache, 0, 0, 20), 0);             /* default */
        assert_int_equal(under_policy(cache, 1, 4, 20), 20);            /* preferred: 2 */
        assert_int_equal(under_policy(cache, 1, 0, 20), 0); /* preferred: where it runs */
        assert_int_equal(under_policy(cache, 2, 5, 20), 0); /* bind, this node is in the set */
        assert_int_equal(under_policy(cache, 2, 0xc, 20), 20);          /* bind, it is not */
        assert_int_equal(under_policy(cache, 3, 5, 20), 10);            /* interleave */
        assert_int_equal(under_policy(cache, 2, UINT64_C(1) << 40, 20), 0);     /* no such node */
        /* Whatever is on the slot, and many at once, too. */
        leave_of_2(cache);
        assert_int_equal(under_policy(cache, 0, 0, 20), 0);
        leave_of_2(cache);
        assert_int_equal(many_under_policy(cache, 0, 0, 20), 0);
        assert_int_equal(many_under_policy(cache, 1, 4, 20), 20);
        stook_slots_strict = false;
        stook_cache_shrink(cache);
        assert_int_equal(under_policy(cache, 1, 4, 20), 0);
        stook_inject.ask_policy = NULL;
        gone(cache);
}

static unsigned large_of_2(int mode, uint64_t nodes)
{
        void *large[8];
        unsigned of_2;

        policy_mode = mode;
        policy_nodes = nodes;
        for (int i = 0; i < 8; i++)
                assert_non_null(large[i] = stook_malloc(1 << 20));
        of_2 = how_many_of(2, large, 8);
        for (int i = 0; i < 8; i++)
                stook_free(large[i]);
        return of_2;
}

static void large_blocks_follow_it(void **state)
{
        (void)state;
        if (!locked)
                skip();
        NEED_NODE(0);
        stook_inject.ask_policy = policy;
        assert_int_equal(large_of_2(1, 4), 0);                  /* not asked for */
        stook_slots_strict = true;
        assert_int_equal(large_of_2(0, 0), 0);
        assert_int_equal(large_of_2(1, 4), 8);
        assert_int_equal(large_of_2(2, 4), 8);
        assert_int_equal(large_of_2(2, 5), 0);
        assert_int_equal(large_of_2(3, 5), 4);
        stook_slots_strict = false;
        stook_inject.ask_policy = NULL;
}

/* The memory that a cache's callback sees comes from the node that the policy names, too. */
static int memory_in(void *start, size_t bytes, void *data)
{
        (void)start;
        (void)bytes;
        (void)data;
        return 0;
}

static void callbacks_see_its_memory(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .memory_in = memory_in };
        struct stook_cache *cache = stook_cache_create("seen", 64, &args);

        (void)state;
        if (!locked)
                skip();
        assert_non_null(cache);
        NEED_NODE(0);
        stook_slots_strict = true;
        stook_inject.ask_policy = policy;
        assert_int_equal(under_policy(cache, 1, 4, 20), 20);
        stook_slots_strict = false;
        stook_inject.ask_policy = NULL;
        gone(cache);
}

/* ---- malloc ---- */

static void malloc_goes_by_node(void **state)
{
        void *small, *large;

        (void)state;
        if (!locked)
                skip();
        NEED_NODE(2);
        small = stook_malloc(40);
        large = stook_malloc(1 << 20);
        assert_int_equal(node_of(large), 2);
        NEED_NODE(0);
        stook_free(small);
        large = stook_realloc(large, 4 << 20);
        assert_int_equal(node_of(large), 2);
        stook_free(large);
        large = stook_malloc(1 << 20);
        assert_int_equal(node_of(large), 0);
        stook_free(large);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_policy_is_followed),
                cmocka_unit_test(large_blocks_follow_it),
                cmocka_unit_test(callbacks_see_its_memory),
                cmocka_unit_test(malloc_goes_by_node),
        };

        return start_on_nodes() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
