/*
 * What this proves, on a made-up machine of 4 nodes, of which 2 has no memory: a thread takes from
 * the slabs of the nearest node with memory, and waits for the lock of no other node's list. A
 * thread that stands still has those locks, and the lists are long enough to be looked at. Waits
 * are counted; with the lock of the home list taken, too, the counter shows them.
 * Run with STOOK_TOPOLOGY=nodes=4:memory=0-1,3:slots=8.
 */
#include <pthread.h>

#include "on_nodes.h"

#define NODES 4
#define N     3000

static const unsigned home[NODES] = { 0, 1, 1, 3 };     /* of equals the lower number */
static struct stook_cache *cache;
static __thread unsigned sleeps;

static void count_sleep(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value, (void)ns;
        sleeps++;
}

/* Every list has more slabs than it keeps, with objects out: fills of other nodes look at them. */
static void *pinned[NODES][N];

static void make_lists_long(void)
{
        for (unsigned node = 0; node < NODES; node++) {
                if (node != home[node])
                        continue;
                for (size_t i = 0; i < N; i++) {
                        pinned[node][i] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE,
                                                                 (int)node);
                        assert_non_null(pinned[node][i]);
                }
                /* Straight to the slabs: each eighth stays out. */
                for (size_t i = 0; i < N; i++)
                        if (i % 8) {
                                stook_slab_drain(&cache->slabs, 1, &pinned[node][i]);
                                pinned[node][i] = NULL;
                        }
                assert_true(stook_slabs_partial(&cache->slabs, node) > cache->slabs.min_partial);
        }
}

static void free_pinned(void)
{
        for (unsigned node = 0; node < NODES; node++)
                for (size_t i = 0; i < N; i++)
                        if (pinned[node][i])
                                stook_slab_drain(&cache->slabs, 1, &pinned[node][i]);
}

/* ---- the holder ---- */

static unsigned held;                   /* a bit for each node */
static uint32_t has, may_go;            /* atomic */

static void *hold(void *unused)
{
        for (unsigned node = 0; node < NODES; node++)
                if (held & 1u << node)
                        assert_true(stook_lock_take(&cache->slabs.node[node].lock));
        __atomic_store_n(&has, 1, __ATOMIC_RELEASE);
        while (!__atomic_load_n(&may_go, __ATOMIC_ACQUIRE))
                stook_os_futex_wait(&may_go, 0, 1000000000);
        for (unsigned node = NODES; node-- > 0;)
                if (held & 1u << node)
                        stook_lock_drop(&cache->slabs.node[node].lock);
        return unused;
}

/* Of N allocations on @node while the lists in @nodes are locked: how often was waited? */
static unsigned waits_on(unsigned node, unsigned nodes, void **objects)
{
        pthread_t holder;
        unsigned before;

        held = nodes;
        has = may_go = 0;
        assert_int_equal(pthread_create(&holder, NULL, hold, NULL), 0);
        while (!__atomic_load_n(&has, __ATOMIC_ACQUIRE))
                sched_yield();
        before = sleeps;
        assert_true(go_to(node));
        allocate(cache, objects, N);
        before = sleeps - before;
        __atomic_store_n(&may_go, 1, __ATOMIC_RELEASE);
        stook_os_futex_wake(&may_go);
        assert_int_equal(pthread_join(holder, NULL), 0);
        return before;
}

static void no_remote_list_is_waited_for(void **state)
{
        static const struct stook_lock_sleep counted = { count_sleep, stook_os_futex_wake };
        static void *object[N];

        (void)state;
        NEED_NODE(0);
        stook_inject.defrag_ratio_plus_1 = 1 + 1024;    /* each fill may look at other nodes */
        stook_lock_set_sleep(&counted);
        for (unsigned node = 0; node < NODES; node++) {
                if (!go_to(node))
                        continue;               /* no CPU; the locked backend needs none */
                make_lists_long();
                stook_cache_shrink(cache);
                assert_int_equal(waits_on(node, 0xfu & ~(1u << home[node]), object), 0);
                for (size_t i = 0; i < N; i++)
                        assert_int_equal(stook_object_node(object[i]), home[node]);
                free_all(cache, object, N);
                stook_cache_shrink(cache);
                /* It is the try: the home list's lock is waited for. */
                assert_true(waits_on(node, 0xf, object) > 0);
                free_all(cache, object, N);
                free_pinned();
                stook_cache_shrink(cache);
        }
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_remote_list_is_waited_for),
        };

        if (!start_on_nodes())
                return 1;
        cache = stook_cache_create("remote_locks", 512, NULL);
        return cache ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
