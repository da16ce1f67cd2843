/*
 * What this proves: a barrier for everything has the barrier of each implementation in use once,
 * however many caches share it, and also of more implementations than it has a list for; afterwards
 * all that was freed before is free. The process's implementation stays once it was used.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stook/stook.h>

#define MOST 24                         /* more than the library notes: 16 */

static struct stook_rcu_head *heads[1024];
static void (*over[1024])(struct stook_rcu_head *head);
static unsigned waiting, barriers;

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        assert_true(waiting < 1024);
        heads[waiting] = head;
        over[waiting++] = done;
}

static void barrier(void)
{
        unsigned n = waiting;

        barriers++;
        waiting = 0;
        for (unsigned i = 0; i < n; i++)
                over[i](heads[i]);
}

static struct stook_rcu implementations[MOST];
static struct stook_cache *caches[MOST];

/* Cache i is of implementation i % @n. */
static void create(unsigned count, unsigned n)
{
        for (unsigned i = 0; i < count; i++) {
                struct stook_cache_args args = { .args_size = sizeof(args),
                                                 .rcu = &implementations[i % n] };

                caches[i] = stook_cache_create("own", 64, &args);
                assert_non_null(caches[i]);
        }
}

static void free_each(unsigned count)
{
        for (unsigned i = 0; i < count; i++) {
                void *object = stook_cache_alloc(caches[i]);

                assert_non_null(object);
                assert_int_equal(stook_cache_free_rcu(caches[i], object), 0);
        }
}

static void destroy(unsigned count)
{
        for (unsigned i = 0; i < count; i++) {
                struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

                assert_int_equal(stook_cache_get_stats(caches[i], &stats), 0);
                assert_int_equal(stats.objects_live, 0);
                assert_int_equal(stook_cache_destroy(caches[i]), 0);
        }
}

static void caches_share_a_barrier(void **state)
{
        (void)state;
        create(6, 2);
        free_each(6);
        barriers = 0;
        stook_rcu_barrier();
        assert_int_equal(barriers, 2);
        assert_int_equal(stook_rcu_backlog(), 0);
        destroy(6);
}

static void more_than_are_noted(void **state)
{
        (void)state;
        create(MOST, MOST);
        free_each(MOST);
        barriers = 0;
        stook_rcu_barrier();
        assert_in_range(barriers, MOST, 2 * MOST);
        assert_int_equal(stook_rcu_backlog(), 0);
        destroy(MOST);
}

static void the_process_keeps_its_own(void **state)
{
        struct stook_rcu none = { .ops_size = sizeof(none), .call = call };
        void *object = stook_malloc(100);

        (void)state;
        assert_int_equal(stook_free_rcu(object), -ENOTSUP);
        assert_int_equal(stook_rcu_use(NULL), -EINVAL);
        assert_int_equal(stook_rcu_use(&none), -EINVAL);
        assert_int_equal(stook_rcu_use(&implementations[0]), 0);
        assert_int_equal(stook_rcu_use(&implementations[1]), 0);        /* not used yet */
        assert_int_equal(stook_free_rcu(object), 0);
        assert_int_equal(stook_rcu_use(&implementations[0]), -EBUSY);
        assert_int_equal(stook_rcu_use(&implementations[1]), 0);
        barriers = 0;
        stook_rcu_barrier();
        assert_int_equal(barriers, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(caches_share_a_barrier),
                cmocka_unit_test(more_than_are_noted),
                cmocka_unit_test(the_process_keeps_its_own),
        };

        for (unsigned i = 0; i < MOST; i++)
                implementations[i] = (struct stook_rcu){ .ops_size = sizeof(struct stook_rcu),
                                                         .call = call, .barrier = barrier };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
