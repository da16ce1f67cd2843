/*
 * What this proves:
 *  - usage is exact, and limits hold to the byte although CPUs keep precharges, in a tree of
 *    groups, too;
 *  - bulk allocations are charged all or nothing;
 *  - callbacks run where they should, and may make room;
 *  - a group lives until its last object is freed, and only then its id is used again;
 *  - malloc is charged in each of its forms.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/group.h>
#include <stook/rcu.h>
#include <stook/sheaf.h>
#include <stook/stook.h>

#include "cache/cache.h"
#include "group/group.h"
#include "os/os.h"

#define SIZE 200
#define MANY 5000

static struct stook_cache *cache;       /* accounted */
static uint64_t slot;                   /* bytes an object is charged at */
static void *held[MANY];

static int set_up(void **state)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        (void)state;
        cache = stook_cache_create(
                "charged", SIZE,
                &(struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args),
                                            .flags = STOOK_CACHE_ACCOUNT });
        assert_non_null(cache);
        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        slot = s.stride;
        assert_true(slot >= SIZE + 8 && stook_cache_object_size(cache) == SIZE);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        return 0;
}

static struct stook_group *group_of(struct stook_group *parent, uint64_t limit)
{
        struct stook_group *group = stook_group_create("g", parent, limit);

        assert_non_null(group);
        return group;
}

static void end(struct stook_group *group)
{
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_destroy(group);
}

/* Objects until one is refused; how many. */
static size_t fill(void)
{
        size_t n = 0;

        errno = 0;
        while (n < MANY && (held[n] = stook_cache_alloc(cache)))
                memset(held[n++], 0x5a, SIZE);
        return n;
}

static void drop(size_t from, size_t to)
{
        for (size_t i = from; i < to; i++)
                stook_cache_free(cache, held[i]);
}

static void usage_is_exact(void **state)
{
        struct stook_group *group = group_of(NULL, 0);

        (void)state;
        assert_null(stook_group_enter(group));
        for (size_t n = 1; n <= MANY; n++) {
                held[n - 1] = stook_cache_alloc(cache);
                assert_int_equal(stook_group_usage(group), n * slot);
        }
        assert_ptr_equal(stook_group_enter(NULL), group);
        assert_null(stook_group_enter(NULL));           /* never entered: nothing happens */
        for (size_t n = MANY; n; n--) {
                stook_cache_free(cache, held[n - 1]);
                assert_int_equal(stook_group_usage(group), (n - 1) * slot);
        }
        /* Outside, no group is charged; and of two groups each its own. */
        held[0] = stook_cache_zalloc(cache);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_enter(group);
        stook_cache_free(cache, held[0]);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_enter(NULL);
        end(group);
}

/* More groups than a slot has places for what is charged in advance: one takes another's place. */
static void groups_that_take_turns_keep_nothing(void **state)
{
        enum { GROUPS = 64, EACH = 3 };
        static void *of[GROUPS][EACH];
        struct stook_group *groups[GROUPS];

        (void)state;
        for (unsigned g = 0; g < GROUPS; g++)
                groups[g] = group_of(NULL, 0);
        for (unsigned round = 0; round < 4; round++) {
                for (unsigned g = 0; g < GROUPS; g++) {
                        stook_group_enter(groups[g]);
                        for (unsigned i = 0; i < EACH; i++)
                                assert_non_null(of[g][i] = stook_cache_alloc(cache));
                }
                stook_group_enter(NULL);
                for (unsigned g = 0; g < GROUPS; g++) {
                        assert_int_equal(stook_group_usage(groups[g]), EACH * slot);
                        for (unsigned i = 0; i < EACH; i++)
                                stook_cache_free(cache, of[g][i]);
                        assert_int_equal(stook_group_usage(groups[g]), 0);
                }
        }
        for (unsigned g = 0; g < GROUPS; g++)
                end(groups[g]);
}

static void a_limit_holds_to_the_byte(void **state)
{
        struct stook_group *group = group_of(NULL, 700 * slot + slot - 1);
        struct stook_group_stats s = { .stats_size = sizeof(s) };

        (void)state;
        stook_group_enter(group);
        for (int round = 0; round < 3; round++) {
                assert_int_equal(fill(), 700);
                assert_int_equal(errno, ENOMEM);
                assert_int_equal(stook_group_usage(group), 700 * slot);
                drop(0, 700);
        }
        assert_int_equal(stook_group_get_stats(group, &s), 0);
        assert_int_equal(s.limit_bytes, 700 * slot + slot - 1);
        assert_true(s.peak_bytes >= 700 * slot && s.peak_bytes <= s.limit_bytes);
        assert_int_equal(s.refusals, 3);
        assert_true(s.limit_events >= 3 && !s.usage_bytes && !strcmp(s.name, "g"));

        /* Raised, lowered below the usage, taken away. */
        assert_int_equal(stook_group_set_limit(group, 800 * slot), 0);
        assert_int_equal(fill(), 800);
        assert_int_equal(stook_group_set_limit(group, 10 * slot), 0);
        assert_null(stook_cache_alloc(cache));
        drop(5, 800);
        held[5] = stook_cache_alloc(cache);
        assert_non_null(held[5]);
        assert_int_equal(stook_group_set_limit(group, 0), 0);
        drop(0, 6);
        assert_int_equal(fill(), MANY);
        drop(0, MANY);
        stook_group_enter(NULL);
        end(group);
}

static void a_tree_is_charged_upwards(void **state)
{
        struct stook_group *top = group_of(NULL, 100 * slot), *left = group_of(top, 0),
                           *right = group_of(top, 60 * slot);

        (void)state;
        stook_group_enter(left);
        for (int i = 0; i < 50; i++)
                held[i] = stook_cache_alloc(cache);
        assert_ptr_equal(stook_group_enter(right), left);
        for (int i = 50; i < 100; i++) {
                held[i] = stook_cache_alloc(cache);
                assert_non_null(held[i]);               /* left's precharge is no hindrance */
        }
        assert_null(stook_cache_alloc(cache));          /* top's limit, not right's */
        assert_int_equal(stook_group_usage(left), 50 * slot);
        assert_int_equal(stook_group_usage(right), 50 * slot);
        assert_int_equal(stook_group_usage(top), 100 * slot);
        drop(0, 30);
        for (int i = 0; i < 10; i++) {
                held[i] = stook_cache_alloc(cache);
                assert_non_null(held[i]);
        }
        assert_null(stook_cache_alloc(cache));          /* right's own */
        stook_group_enter(NULL);
        drop(0, 10);
        drop(30, 100);
        assert_int_equal(stook_group_usage(top), 0);
        stook_group_destroy(top);                           /* lives on below its children */
        end(left);
        end(right);
}

static unsigned calls;

static void make_room(struct stook_group *group, size_t wanted, void *data)
{
        size_t *n = data;

        assert_true(wanted && stook_group_usage(group) > 0);
        calls++;
        /* Charged to no group, so no limit is met in here. */
        stook_cache_free(cache, stook_cache_alloc(cache));
        if (*n)
                stook_cache_free(cache, held[--*n]);
}

static void a_callback_may_make_room(void **state)
{
        struct stook_group *group = group_of(NULL, 40 * slot);
        size_t n;

        (void)state;
        stook_group_enter(group);
        n = fill();
        assert_int_equal(n, 40);
        assert_int_equal(stook_group_on_limit(group, make_room, &n), 0);
        void *more = stook_cache_alloc(cache);
        assert_non_null(more);
        assert_int_equal(n, 39);
        assert_int_equal(calls, 1);
        assert_null(stook_cache_alloc_group(cache, STOOK_ALLOC_NOWAIT, group));
        assert_null(stook_cache_alloc_nolock(cache));
        assert_int_equal(calls, 1);
        stook_cache_free(cache, more);
        drop(0, n);
        n = 0;
        assert_int_equal(fill(), 40);
        assert_true(calls == 2);                        /* it had nothing to free */
        drop(0, 40);
        stook_group_enter(NULL);
        end(group);
}

static void bulk_is_charged_all_or_nothing(void **state)
{
        struct stook_group *group = group_of(NULL, 1000 * slot), *other = group_of(NULL, 0);

        (void)state;
        stook_group_enter(group);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 900, held), 0);
        assert_int_equal(stook_group_usage(group), 900 * slot);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 101, held + 900), -ENOMEM);
        assert_int_equal(stook_group_usage(group), 900 * slot);
        assert_int_equal(stook_cache_alloc_bulk(cache, STOOK_ALLOC_ZERO, 100, held + 900), 0);
        stook_group_enter(other);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 1000, held + 1000), 0);
        stook_group_enter(NULL);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 500, held + 2000), 0);
        for (int i = 0; i < 2500; i++) {                /* groups mixed */
                int j = i * 7 % 2500;
                void *swapped = held[i];

                held[i] = held[j];
                held[j] = swapped;
        }
        stook_cache_free_bulk(cache, 1300, held);
        stook_cache_free_bulk(NULL, 1200, held + 1300);
        end(group);
        end(other);
}

static void prefilled_objects_pass_the_limit(void **state)
{
        struct stook_group *group = group_of(NULL, 10 * slot);
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, 0, 30);

        (void)state;
        assert_non_null(sheaf);
        stook_group_enter(group);
        for (size_t n = 0; n < 30; n++) {
                held[n] = stook_sheaf_alloc(cache, sheaf);
                assert_non_null(held[n]);
                assert_int_equal(stook_group_usage(group), (n + 1) * slot);
        }
        assert_null(stook_cache_alloc(cache));
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(stook_group_usage(group), 30 * slot);
        stook_group_enter(NULL);
        drop(0, 30);
        end(group);
}

static struct {
        struct stook_rcu_head *head;
        void (*done)(struct stook_rcu_head *);
} calls_waiting[MANY];
static size_t waiting;

static void call_later(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *))
{
        calls_waiting[waiting].head = head;
        calls_waiting[waiting++].done = done;
}

static void grace_period(void)
{
        for (size_t i = 0; i < waiting; i++)
                calls_waiting[i].done(calls_waiting[i].head);
        waiting = 0;
}

static void readers_keep_the_charge(void **state)
{
        static const struct stook_rcu rcu = { .ops_size = sizeof(rcu),
                                              .call = call_later,
                                              .barrier = grace_period };
        struct stook_group *group = group_of(NULL, 0);
        struct stook_cache *read = stook_cache_create(
                "read", 100,
                &(struct stook_cache_args){ .args_size = sizeof(struct stook_cache_args),
                                            .flags = STOOK_CACHE_ACCOUNT | STOOK_CACHE_RCU,
                                            .rcu = &rcu });
        uint64_t charged;

        (void)state;
        assert_non_null(read);
        stook_group_enter(group);
        for (int i = 0; i < 500; i++) {
                held[i] = stook_cache_alloc(read);
                memset(held[i], 0xff, 100);
        }
        charged = stook_group_usage(group);
        for (int i = 0; i < 500; i++)
                assert_int_equal(stook_cache_free_rcu(read, held[i]), 0);
        assert_int_equal(stook_group_usage(group), charged);
        stook_cache_rcu_barrier(read);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_enter(NULL);
        assert_int_equal(stook_cache_destroy(read), 0);
        end(group);
}

static void a_group_outlives_its_maker(void **state)
{
        struct stook_group *group = group_of(NULL, 0), *again;
        uint16_t id = group->id;

        (void)state;
        stook_group_enter(group);
        stook_group_destroy(group);                         /* this thread is still inside */
        held[0] = stook_cache_alloc(cache);
        assert_int_equal(stook_group_usage(group), slot);
        stook_group_enter(NULL);
        assert_int_equal(group->state, STOOK_GROUP_ENDING);
        again = group_of(NULL, 0);
        assert_int_not_equal(again->id, id);            /* an object pins the id */
        stook_group_destroy(again);
        stook_group_enter(group);                       /* has ended: no group is charged */
        held[1] = stook_cache_alloc(cache);
        drop(0, 2);
        stook_group_enter(NULL);
        again = group_of(NULL, 0);
        assert_int_equal(group->state == STOOK_GROUP_LIVE ? again->id : id, id);
        end(again);
}

/* More groups than there are ids, each with a precharge that was drawn. */
static void ids_are_used_again(void **state)
{
        (void)state;
        for (int i = 0; i < 2 * STOOK_GROUPS_MAX / 50; i++) {
                struct stook_group *group = group_of(NULL, 0);

                assert_true(group->id < 10);
                stook_group_enter(group);
                stook_cache_free(cache, stook_cache_alloc(cache));
                stook_group_enter(NULL);
                end(group);
        }
}

static void malloc_is_charged(void **state)
{
        struct stook_group *group = group_of(NULL, 64 << 20);
        char *p, *q;

        (void)state;
        stook_group_enter(group);
        for (size_t size = 0; size < 400000; size = size * 9 / 8 + 1) {
                size_t most = size + size / 4 + stook_os_page_bytes();
                uint64_t before = stook_group_usage(group);

                p = stook_malloc(size);
                assert_non_null(p);
                assert_true(stook_usable_size(p) >= size && (uintptr_t)p % 16 == 0);
                memset(p, 0x77, stook_usable_size(p));
                assert_true(stook_group_usage(group) - before >= stook_usable_size(p));
                assert_true(stook_group_usage(group) - before <= most);
                q = stook_calloc(1, size);
                for (size_t i = 0; i < size; i++)
                        assert_int_equal(q[i], 0);
                p = stook_realloc(p, size * 2 + 100);
                assert_true(!size || (p[0] == 0x77 && p[size - 1] == 0x77));
                p = stook_realloc(p, size / 3);
                stook_free(p);
                stook_free(q);
                assert_int_equal(stook_group_usage(group), before);
        }
        for (size_t align = 32; align <= 1 << 20; align *= 2)
                for (size_t size = 1; size < 300000; size = size * 2 + 5) {
                        p = stook_aligned_alloc(align, size);
                        assert_true(p && (uintptr_t)p % align == 0 && stook_usable_size(p) >= size);
                        memset(p, 1, stook_usable_size(p));
                        assert_true(stook_group_usage(group) >= size);
                        stook_free(p);
                        assert_int_equal(stook_group_usage(group), 0);
                }
        /* A large object grows up to the limit, and is whole when it cannot. */
        p = stook_malloc(1 << 20);
        p[0] = p[(1 << 20) - 1] = 9;
        for (size_t mib = 2; mib < 60; mib++) {
                p = stook_realloc(p, mib << 20);
                assert_non_null(p);
                assert_in_range(stook_group_usage(group), mib << 20,
                                (mib << 20) + (mib << 17) + (1 << 20));
        }
        errno = 0;
        assert_null(stook_realloc(p, 65 << 20));
        assert_int_equal(errno, ENOMEM);
        assert_true(p[0] == 9 && p[(1 << 20) - 1] == 9);
        p = stook_realloc(p, 2 << 20);
        assert_in_range(stook_group_usage(group), 2 << 20, 3 << 20);
        stook_free(p);
        stook_group_enter(NULL);
        end(group);
}

/* What large objects get ahead is not what makes a limit refuse them. */
static void large_objects_fill_a_group(void **state)
{
        struct stook_group *group = group_of(NULL, (20 << 20) - (64 << 10));
        char *p;

        (void)state;
        stook_group_enter(group);
        p = stook_malloc((20 << 20) - (100 << 10));
        assert_non_null(p);
        stook_free(p);
        p = stook_malloc(1 << 20);
        for (size_t kib = 2 << 10; kib <= 19 << 10; kib += 1 << 10) {
                p = stook_realloc(p, kib << 10);
                assert_non_null(p);
        }
        p = stook_realloc(p, (20 << 20) - (100 << 10));
        assert_non_null(p);
        assert_in_range(stook_group_usage(group), (20 << 20) - (100 << 10), 20 << 20);
        assert_null(stook_realloc(p, 21 << 20));
        stook_free(p);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_enter(NULL);
        end(group);
}

static void a_child_goes_on(void **state)
{
        struct stook_group *group = group_of(NULL, 100 * slot);
        int status;

        (void)state;
        stook_group_enter(group);
        for (int i = 0; i < 60; i++)
                held[i] = stook_cache_alloc(cache);
        if (!fork()) {
                size_t n = 60;

                while (n < MANY && (held[n] = stook_cache_alloc(cache)))
                        n++;
                drop(0, n);
                _exit(n == 100 && !stook_group_usage(group) && group_of(group, 0) ? 0 : 1);
        }
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
        assert_int_equal(stook_group_usage(group), 60 * slot);
        drop(0, 60);
        stook_group_enter(NULL);
        end(group);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(usage_is_exact, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_limit_holds_to_the_byte, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_tree_is_charged_upwards, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_callback_may_make_room, set_up, tear_down),
                cmocka_unit_test_setup_teardown(bulk_is_charged_all_or_nothing, set_up, tear_down),
                cmocka_unit_test_setup_teardown(prefilled_objects_pass_the_limit, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(readers_keep_the_charge, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_group_outlives_its_maker, set_up, tear_down),
                cmocka_unit_test_setup_teardown(ids_are_used_again, set_up, tear_down),
                cmocka_unit_test_setup_teardown(malloc_is_charged, set_up, tear_down),
                cmocka_unit_test_setup_teardown(large_objects_fill_a_group, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_child_goes_on, set_up, tear_down),
                cmocka_unit_test_setup_teardown(groups_that_take_turns_keep_nothing, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
