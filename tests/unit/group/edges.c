/*
 * What this proves: which charges at a limit are counted, and run the callback; that a group is as
 * new when its id serves again; that ids of groups which ended in any order serve again, and that
 * the last id is the last; that a thread leaves its group when it ends; what statistics say of a
 * group without a limit; that a lowered limit fetches what slots have charged in advance.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "group/group.h"
#include "section/section.h"
#include "one_cpu.h"

#define SIZE 200

static struct stook_cache *cache;       /* accounted */
static uint64_t slot;                   /* bytes an object is charged at */
static unsigned calls;

static struct stook_group *group_of(const char *name, uint64_t limit)
{
        struct stook_group *group = stook_group_create(name, NULL, limit);

        assert_non_null(group);
        return group;
}

static struct stook_group_stats stats_of(const struct stook_group *group)
{
        struct stook_group_stats stats = { .stats_size = sizeof(stats) };

        assert_int_equal(stook_group_get_stats(group, &stats), 0);
        return stats;
}

static void count_call(struct stook_group *group, size_t wanted, void *data)
{
        (void)group;
        (void)wanted;
        (void)data;
        calls++;
        assert_null(stook_group_current());
}

static void assert_counted(const struct stook_group *group, uint64_t events, uint64_t refusals,
                           unsigned n)
{
        struct stook_group_stats s = stats_of(group);

        assert_int_equal(s.limit_events, events);
        assert_int_equal(s.refusals, refusals);
        assert_int_equal(calls, n);
}

static void what_is_counted_at_a_limit(void **state)
{
        struct stook_group *group = group_of("full", 10 * slot);
        void *held[10], *none[2], *large;

        (void)state;
        calls = 0;
        assert_int_equal(stook_group_on_limit(group, count_call, NULL), 0);
        stook_group_enter(group);
        for (unsigned i = 0; i < 10; i++)
                assert_non_null(held[i] = stook_cache_alloc(cache));
        assert_counted(group, 0, 0, 0);
        assert_null(stook_cache_alloc(cache));
        assert_counted(group, 1, 1, 1);
        assert_ptr_equal(stook_group_current(), group);         /* the thread is in it again */
        assert_null(stook_cache_alloc_nolock(cache));
        assert_counted(group, 2, 2, 1);
        assert_null(stook_cache_alloc_group(cache, STOOK_ALLOC_NOWAIT, group));
        assert_counted(group, 3, 3, 1);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 2, none), -ENOMEM);
        assert_counted(group, 4, 4, 2);
        stook_group_enter(NULL);
        assert_null(stook_cache_alloc_group(cache, 0, group));
        assert_counted(group, 5, 5, 3);
        stook_cache_free_bulk(cache, 10, held);
        stook_group_destroy(group);

        /* The rounded size of a large object is only tried. */
        group = group_of("rounded", (1 << 20) + 4096);
        assert_int_equal(stook_group_on_limit(group, count_call, NULL), 0);
        stook_group_enter(group);
        large = stook_malloc((1 << 20) + 1);
        assert_non_null(large);
        assert_counted(group, 0, 0, 3);
        stook_free(large);
        stook_group_enter(NULL);
        stook_group_destroy(group);
}

static void an_id_serves_again_as_new(void **state)
{
        char name[64];
        struct stook_group *group, *again;
        struct stook_group_stats s;
        void *held;

        (void)state;
        calls = 0;
        memset(name, 'n', 63);
        name[63] = '\0';
        group = group_of(name, 2 * slot);
        assert_string_equal(stats_of(group).name, name);
        assert_int_equal(stook_group_on_limit(group, count_call, NULL), 0);
        stook_group_enter(group);
        held = stook_cache_alloc(cache);
        stook_cache_free(cache, stook_cache_alloc(cache));
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 3, (void *[3]){ NULL }), -ENOMEM);
        stook_cache_free(cache, held);
        stook_group_enter(NULL);
        assert_int_equal(calls, 1);
        stook_group_destroy(group);
        again = group_of("b", slot);
        assert_ptr_equal(again, group);
        s = stats_of(again);
        assert_true(!s.peak_bytes && !s.limit_events && !s.refusals && !s.usage_bytes);
        for (unsigned i = 1; i < sizeof(s.name); i++)
                assert_int_equal(s.name[i], 0);
        stook_group_enter(again);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 3, (void *[3]){ NULL }), -ENOMEM);
        stook_group_enter(NULL);
        assert_int_equal(calls, 1);
        assert_int_equal(stats_of(again).refusals, 1);
        stook_group_destroy(again);
}

/* Several wait for their last objects at once. All ids serve again, and no other is needed. */
static void ids_of_groups_that_waited(void **state)
{
        enum { N = 5 };
        struct stook_group *groups[N], *parent = group_of("parent", 0);
        uint32_t bound;
        void *held[N];

        (void)state;
        for (unsigned i = 0; i < N; i++) {
                groups[i] = stook_group_create("waits", parent, 0);
                assert_non_null(groups[i]);
                assert_non_null(held[i] = stook_cache_alloc_group(cache, 0, groups[i]));
        }
        bound = stook_groups_bound;
        for (unsigned i = 0; i < N; i++)
                stook_group_destroy(groups[i]);
        stook_group_destroy(parent);            /* ends with the last of those below it */
        for (unsigned i = 0; i < N; i++)
                stook_cache_free(cache, held[(i * 2 + 1) % N]);
        for (unsigned round = 0; round < 2; round++) {
                for (unsigned i = 0; i < N; i++)
                        groups[i] = group_of("again", 0);
                parent = group_of("again, too", 0);
                assert_int_equal(stook_groups_bound, bound);
                for (unsigned i = 0; i < N; i++)
                        stook_group_destroy(groups[i]);
                stook_group_destroy(parent);
        }
}

static void *end_inside(void *group)
{
        stook_group_enter(group);
        return stook_group_current() == group ? group : NULL;
}

static void a_thread_leaves_when_it_ends(void **state)
{
        struct stook_group *group = group_of("left", 0), *again;
        pthread_t thread;
        void *was_inside;

        (void)state;
        assert_int_equal(pthread_create(&thread, NULL, end_inside, group), 0);
        assert_int_equal(pthread_join(thread, &was_inside), 0);
        assert_non_null(was_inside);
        assert_int_equal(group->references, 1);
        stook_group_destroy(group);
        again = group_of("again", 0);
        assert_ptr_equal(again, group);
        stook_group_destroy(again);
}

static void no_limit_is_0(void **state)
{
        struct stook_group *group = group_of("free", 0);

        (void)state;
        assert_int_equal(stats_of(group).limit_bytes, 0);
        assert_int_equal(stook_group_set_limit(group, 5), 0);
        assert_int_equal(stats_of(group).limit_bytes, 5);
        assert_int_equal(stook_group_set_limit(group, 0), 0);
        assert_int_equal(stats_of(group).limit_bytes, 0);
        stook_group_destroy(group);
}

static void a_lowered_limit_fetches_precharges(void **state)
{
        struct stook_group *group = group_of("lowered", 0), *other = group_of("other", 0);
        struct stook_group *more[STOOK_PRECHARGE_WORDS];
        void *held, *others;
        unsigned n = 0;
        uint64_t precharge;

        (void)state;
        /* One that has another word of a slot. */
        while (other->id % STOOK_PRECHARGE_WORDS == group->id % STOOK_PRECHARGE_WORDS) {
                more[n++] = other;
                other = group_of("other", 0);
        }
        held = stook_cache_alloc_group(cache, 0, group);
        others = stook_cache_alloc_group(cache, 0, other);
        precharge = stats_of(group).precharge_bytes;
        assert_true(precharge > 0);
        assert_true(stats_of(other).precharge_bytes > 0);
        assert_int_equal(stats_of(group).usage_bytes, slot);
        assert_int_equal(stook_group_set_limit(group, precharge + slot), 0);
        assert_int_equal(stats_of(group).precharge_bytes, precharge);   /* it is not below */
        assert_int_equal(stook_group_set_limit(group, precharge + slot - 1), 0);
        assert_int_equal(stats_of(group).precharge_bytes, 0);
        assert_int_equal(stats_of(group).usage_bytes, slot);
        assert_int_equal(group->charged, slot);
        assert_int_equal(other->charged, slot + stats_of(other).precharge_bytes);
        stook_cache_free(cache, held);
        stook_cache_free(cache, others);
        stook_group_destroy(group);
        stook_group_destroy(other);
        while (n)
                stook_group_destroy(more[--n]);
}

static void the_last_id(void **state)
{
        static struct stook_group *groups[STOOK_GROUPS_MAX];
        size_t n = 0;

        (void)state;
        errno = 0;
        while (n < STOOK_GROUPS_MAX && (groups[n] = stook_group_create("one of many", NULL, 0)))
                n++;
        assert_int_equal(n, STOOK_GROUPS_MAX);
        assert_null(stook_group_create("one too many", NULL, 0));
        assert_int_equal(errno, EAGAIN);
        assert_int_equal(groups[0]->charged, 0);
        while (n)
                stook_group_destroy(groups[--n]);
        stook_group_destroy(group_of("again", 0));
}

static int set_up(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = STOOK_CACHE_ACCOUNT };
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        (void)state;
        cache = stook_cache_create("charged", SIZE, &args);
        if (!cache || stook_cache_get_stats(cache, &s))
                return -1;
        slot = s.stride;
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        return stook_cache_destroy(cache);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_counted_at_a_limit),
                cmocka_unit_test(an_id_serves_again_as_new),
                cmocka_unit_test(ids_of_groups_that_waited),
                cmocka_unit_test(a_thread_leaves_when_it_ends),
                cmocka_unit_test(no_limit_is_0),
                cmocka_unit_test(a_lowered_limit_fetches_precharges),
                cmocka_unit_test(the_last_id),
        };

        stay_on_one_cpu();
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
