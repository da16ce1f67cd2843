/*
 * What this proves, on a made-up machine of two nodes: a slot takes objects of any node in its hot
 * path, and what leaves it goes towards its home, in each way in which a sheaf leaves: put, lent
 * and returned, freed in bulk, after a grace period. A sheaf of one home goes there whole, one of
 * two is divided. An empty one comes back to the node whose memory it is. Of what was freed on
 * another node at most two sheaves come out there again. Nothing is lost, all counts hold;
 * stook_cache_validate looks at each barn.
 */
#include "pages/purge.h"
#include "unit/home/two_nodes.h"

/* The sections that are inlined push it, too. */
static void any_object_is_pushed(void **state)
{
        struct stook_cache *cache = make("pushed");
        void *object, *other;

        (void)state;
        NEED_NODE(0);
        get_of(cache, 0, &object, 1);
        NEED_NODE(1);
        other = stook_cache_alloc(cache);
        if (locked) {
                assert_int_equal(stook_slot_ops()->push(cache->front.offset, object),
                                 STOOK_PUSH_DONE);
        } else if (stook_sections.area) {
                assert_int_equal(stook_section_push_v1(cache->front.line, object), STOOK_PUSH_DONE);
                assert_int_equal(stook_section_push_v1(cache->front.line, object),
                                 STOOK_PUSH_DOUBLE);
        } else {
                assert_true(stook_front_push(&cache->front, object));
        }
        assert_ptr_equal(stook_cache_alloc(cache), object);
        stook_cache_free(cache, object);
        stook_cache_free(cache, other);
        assert_int_equal(on_node(cache, 0).objects_sent_home, 0);
        gone(cache);
}

static void two_sheaves_stay(void **state)
{
        struct stook_cache *cache = make("stay");
        static void *object[MANY];
        size_t sheaves = (MANY + CAPACITY - 1) / CAPACITY;
        struct stook_cache_stats s;

        (void)state;
        NEED_NODE(0);
        get_of(cache, 0, object, MANY);
        stook_cache_shrink(cache);      /* nothing is on the slot: it may be the same there */
        NEED_NODE(1);
        free_all(cache, object, MANY);
        assert_int_equal(on_node(cache, 0).sheaves_sent_home, sheaves - 2);
        assert_int_equal(on_node(cache, 0).objects_sent_home, (sheaves - 2) * CAPACITY);
        assert_true(on_node(cache, 0).barn_full > 0);
        assert_int_equal(on_node(cache, 1).barn_full, 0);
        assert_int_equal(on_their_way(cache, 0) + on_their_way(cache, 1), 0);
        assert_int_equal(stats_of(cache).free_slowpath, 0);
        assert_int_equal(stook_cache_validate(cache), 0);
        /* What of them comes out again. */
        s = stats_of(cache);
        for (int i = 0; i < MANY; i++)
                assert_non_null(object[i] = stook_cache_alloc(cache));
        assert_int_equal(how_many_of(0, object, MANY), MANY - (sheaves - 2) * CAPACITY);
        assert_int_equal(stats_of(cache).alloc_slowpath, s.alloc_slowpath);
        free_all(cache, object, MANY);
        gone(cache);
}

/* Main and spare are of both nodes in equal parts; more frees turn them out. */
static void mixed_sheaves_are_divided(void **state)
{
        struct stook_cache *cache = make("mixed");
        static void *object[2][MANY];
        uint64_t refills;

        (void)state;
        NEED_NODE(0);
        get_of(cache, 0, object[0], MANY);
        NEED_NODE(1);
        get_of(cache, 1, object[1], MANY);
        stook_cache_shrink(cache);
        for (int i = 0; i < 2 * CAPACITY; i++)
                stook_cache_free(cache, object[i % 2][i / 2]);
        assert_int_equal(on_their_way(cache, 0) + on_their_way(cache, 1), 0);
        stook_cache_free(cache, object[0][MANY - 1]);   /* the third sheaf: one leaves */
        assert_int_equal(on_their_way(cache, 0), CAPACITY / 2);
        assert_int_equal(on_their_way(cache, 1), CAPACITY / 2);
        assert_int_equal(stook_cache_validate(cache), 0);
        for (int i = CAPACITY; i < MANY - 1; i++)
                for (int node = 0; node < 2; node++)
                        stook_cache_free(cache, object[node][i]);
        stook_cache_free(cache, object[1][MANY - 1]);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stats_of(cache).free_slowpath, 0);
        assert_true(on_node(cache, 0).barn_full && on_node(cache, 1).barn_full);
        assert_true(on_node(cache, 0).objects_sent_home >= CAPACITY);
        assert_int_equal(on_node(cache, 1).objects_sent_home, 0);       /* freed at home */
        assert_int_equal(stook_cache_validate(cache), 0);
        refills = stats_of(cache).sheaf_refill;
        stook_cache_shrink(cache);
        assert_int_equal(on_their_way(cache, 0) + on_their_way(cache, 1), 0);
        assert_int_equal(stats_of(cache).sheaf_refill, refills);
        gone(cache);
}

static void no_memory_to_divide(void **state)
{
        struct stook_cache *cache = make("no-memory");
        static void *object[2][MANY];

        (void)state;
        NEED_NODE(0);
        get_of(cache, 0, object[0], MANY);
        NEED_NODE(1);
        get_of(cache, 1, object[1], MANY);
        for (uint32_t every = 1; every < 4; every++) {
                stook_cache_shrink(cache);
                stook_inject.sheaf_fail_every = every;
                for (int i = 0; i < MANY; i++)
                        for (int node = 0; node < 2; node++)
                                stook_cache_free(cache, object[node][i]);
                stook_cache_shrink(cache);
                stook_inject.sheaf_fail_every = 0;
                assert_int_equal(stats_of(cache).objects_live, 0);
                assert_int_equal(stook_cache_validate(cache), 0);
                get_of(cache, 0, object[0], MANY);
                get_of(cache, 1, object[1], MANY);
        }
        free_all(cache, object[0], MANY);
        free_all(cache, object[1], MANY);
        gone(cache);
}

static void a_lent_sheaf_goes_home(void **state)
{
        struct stook_cache *cache = make("lent");
        static void *object[3 * CAPACITY];
        struct stook_sheaf *sheaf;

        (void)state;
        NEED_NODE(0);
        get_of(cache, 0, object, 3 * CAPACITY);
        stook_cache_shrink(cache);
        NEED_NODE(1);
        free_all(cache, object, 2 * CAPACITY);                  /* main and spare */
        sheaf = stook_sheaf_prefill(cache, 0, 1);
        assert_non_null(sheaf);
        object[0] = stook_sheaf_alloc(cache, sheaf);
        assert_int_equal(stook_object_node(object[0]), 0);      /* it was the spare */
        stook_cache_free(cache, object[0]);
        free_all(cache, object + 2 * CAPACITY, CAPACITY);       /* another spare */
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(on_node(cache, 1).barn_full, 0);
        assert_int_equal(stook_cache_validate(cache), 0);
        gone(cache);
}

/* A node that allocates and one that frees make no sheaves after the first rounds. */
static void empty_sheaves_come_back(void **state)
{
        struct stook_cache *cache = make("empty");
        static void *object[6 * CAPACITY];
        uint64_t made = 0;

        (void)state;
        stook_pages_set_decay_ms(3600000);      /* none is idle, however slow the machine is */
        for (int round = 0; round < 8; round++) {
                NEED_NODE(0);
                for (int i = 0; i < 6 * CAPACITY; i++)
                        assert_non_null(object[i] = stook_cache_alloc(cache));
                NEED_NODE(1);
                free_all(cache, object, 6 * CAPACITY);
                if (round == 3)
                        made = stats_of(cache).sheaf_alloc;
        }
        assert_true(on_node(cache, 0).sheaves_sent_home > 8);
        assert_in_range(stats_of(cache).sheaf_alloc, made, made + 3);
        stook_pages_set_decay_ms(1000);
        gone(cache);
}

/* Nothing reads: what waits is called by the barrier, in order. */
static struct {
        struct stook_rcu_head *head;
        void (*done)(struct stook_rcu_head *head);
} waiting[2 * MANY];
static size_t called, asked;

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        assert_true(asked < 2 * MANY);
        waiting[asked].head = head;
        waiting[asked++].done = done;
}

static void barrier(void)
{
        for (size_t end = asked; called < end; called++)
                waiting[called].done(waiting[called].head);
}

static void what_waited_for_readers_goes_home(void **state)
{
        static const struct stook_rcu rcu = {
                .ops_size = sizeof(rcu), .call = call, .barrier = barrier,
        };
        struct stook_cache_args args = { .args_size = sizeof(args), .sheaf_capacity = CAPACITY,
                                         .barn_full = 10, .barn_empty = 10, .rcu = &rcu };
        struct stook_cache *cache = stook_cache_create("readers", 64, &args);
        static void *object[2][MANY];

        (void)state;
        NEED_NODE(0);
        get_of(cache, 0, object[0], MANY);
        NEED_NODE(1);
        get_of(cache, 1, object[1], MANY);
        for (int i = 0; i < MANY; i++)
                for (int node = 0; node < 2; node++)
                        assert_int_equal(stook_cache_free_rcu(cache, object[node][i]), 0);
        stook_cache_rcu_barrier(cache);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_true(on_node(cache, 0).barn_full && on_node(cache, 1).barn_full);
        assert_true(on_node(cache, 0).objects_sent_home >= CAPACITY);
        gone(cache);
}

static void bulk_frees_go_home(void **state)
{
        struct stook_cache *cache = make("bulk");
        static void *object[2 * MANY];

        (void)state;
        NEED_NODE(0);
        for (int round = 0; round < 3; round++) {
                get_of(cache, 0, object, MANY);
                get_of(cache, 1, object + MANY, MANY);
                if (round == 1)                         /* in turn */
                        for (int i = 1; i < MANY; i += 2) {
                                void *other = object[i];

                                object[i] = object[MANY + i];
                                object[MANY + i] = other;
                        }
                NEED_NODE((unsigned)round % 2);
                stook_cache_free_bulk(round == 2 ? NULL : cache, 2 * MANY, object);
                assert_int_equal(stats_of(cache).objects_live, 0);
                assert_int_equal(stook_cache_validate(cache), 0);
        }
        gone(cache);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(any_object_is_pushed),
                cmocka_unit_test(two_sheaves_stay),
                cmocka_unit_test(mixed_sheaves_are_divided),
                cmocka_unit_test(no_memory_to_divide),
                cmocka_unit_test(a_lent_sheaf_goes_home),
                cmocka_unit_test(empty_sheaves_come_back),
                cmocka_unit_test(what_waited_for_readers_goes_home),
                cmocka_unit_test(bulk_frees_go_home),
        };

        return cmocka_run_group_tests(tests, start_two_nodes, NULL);
}
