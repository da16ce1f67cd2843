/*
 * What this proves, on a made-up machine of 4 nodes, 0 and 2 with memory:
 *  - an object comes from the node that was asked for, or not at all with STOOK_ALLOC_THISNODE;
 *  - of objects freed on another node than their own at most two sheaves come out there again, and
 *    the others go home in whole sheaves;
 *  - nodes without memory have barns and use any object;
 *  - refills take from all nodes.
 * Nothing is lost, all counts hold. Run with STOOK_TOPOLOGY=nodes=4:memory=0,2:slots=8.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include <stook/sheaf.h>

#include "on_nodes.h"

#define N 1000

static void the_mode_shows_them(void **state)
{
        struct stook_mode mode = { .mode_size = sizeof(mode) };

        (void)state;
        assert_int_equal(stook_get_mode(&mode), 0);
        assert_int_equal(mode.nodes, 4);
        assert_true(mode.slots >= 8);
        assert_string_equal(mode.index, locked ? "hash" :
                                        stook_os_rseq_has_mm_cid() ? "mm_cid" : "cpu_id");
}

static void a_node_is_obeyed(void **state)
{
        struct stook_cache *cache = stook_cache_create("obeyed", 64, NULL);
        static const int home[4] = { 0, 0, 2, 2 };      /* of equals the lower number */

        (void)state;
        NEED_NODE(0);
        for (int node = -2; node < 6; node++) {
                void *object;

                errno = 0;
                object = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, node);
                if (node < -1 || node > 3) {
                        assert_null(object);
                        assert_int_equal(errno, EINVAL);
                } else if (node == 1 || node == 3) {    /* it is there, but has none */
                        assert_null(object);
                        assert_int_equal(errno, ENOMEM);
                } else {
                        assert_int_equal(node_of(object), node < 0 ? 0 : node);
                }
                stook_cache_free(cache, object);
                if (node >= 0 && node < 4) {
                        object = stook_cache_alloc_node(cache, STOOK_ALLOC_ZERO, node);
                        assert_int_equal(node_of(object), home[node]);
                        for (int i = 0; i < 8; i++)
                                assert_int_equal(((uint64_t *)object)[i], 0);
                        memset(object, 1, 64);
                        stook_cache_free(cache, object);
                }
        }
        gone(cache);
}

/* Neither slabs of another node, though there is no memory, nor sheaves: one or many. */
static void none_of_another_node_serves(void **state)
{
        struct stook_cache *cache = stook_cache_create("of another", 1000, NULL);
        struct stook_cache_node_stats stats = { .stats_size = sizeof(stats) };
        static void *object[N];
        void *more[20];

        (void)state;
        NEED_NODE(2);
        for (int i = 0; i < N; i++)
                assert_non_null(object[i] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, 2));
        /* Many slabs of node 2 have free objects: every second one. */
        for (int i = 0; i < N / 2; i++)
                stook_cache_free(cache, object[2 * i]);
        for (int i = 0; i < N / 2; i++)
                object[i] = object[2 * i + 1];
        assert_true(stook_cache_shrink(cache) >= 0);
        assert_int_equal(stook_cache_get_node_stats(cache, 2, &stats), 0);
        assert_true(stats.slabs_partial > cache->slabs.min_partial);
        NEED_NODE(0);
        stook_inject.span_fail_from = 1;
        for (int i = 0; i < 5; i++)
                assert_null(stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, 0));
        assert_null(stook_cache_alloc_flags(cache, STOOK_ALLOC_THISNODE));
        assert_int_equal(stook_cache_alloc_bulk(cache, STOOK_ALLOC_THISNODE, 20, more), -ENOMEM);
        assert_null(stook_sheaf_prefill(cache, STOOK_ALLOC_THISNODE, 20));
        /* A call that does not insist gets what there is. */
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 1, more), 0);
        stook_inject.span_fail_from = 0;
        assert_int_equal(node_of(more[0]), 2);
        stook_cache_free(cache, more[0]);
        free_all(cache, object, N / 2);
        gone(cache);
}

/* The sheaves serve their own node; for another they are of no use, which is counted. */
static void mismatches_are_counted(void **state)
{
        struct stook_cache *cache = stook_cache_create("mismatch", 128, NULL);
        void *object[20];

        (void)state;
        NEED_NODE(0);
        for (int i = 0; i < 10; i++)
                assert_non_null(object[i] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, 0));
        assert_int_equal(stats_of(cache).alloc_node_mismatch, 0);
        assert_int_equal(stats_of(cache).alloc_fastpath, 10);
        for (int i = 10; i < 20; i++)
                assert_non_null(object[i] = stook_cache_alloc_node(cache, 0, 2));
        assert_int_equal(stats_of(cache).alloc_node_mismatch, 10);
        assert_int_equal(stats_of(cache).alloc_slowpath, 10);
        assert_int_equal(how_many_of(2, object, 20), 10);
        free_all(cache, object, 20);
        gone(cache);
}

/* What nodes have sums up to what the cache has, and an empty cache has nothing on any. */
static void figures_go_by_node(void **state)
{
        struct stook_cache *cache = stook_cache_create("figures", 1000, NULL);
        struct stook_cache_node_stats n = { .stats_size = sizeof(n) };
        uint64_t slabs = 0;
        void *object[40];

        (void)state;
        NEED_NODE(0);
        for (int i = 0; i < 40; i++)
                assert_non_null(object[i] = stook_cache_alloc_node(cache, 0, i % 2 ? 0 : 2));
        for (unsigned node = 0; node < 4; node++) {
                assert_int_equal(stook_cache_get_node_stats(cache, node, &n), 0);
                assert_true(node == 1 || node == 3 ? !n.slabs : n.slabs > 0);
                assert_true(n.slabs_partial <= n.slabs && !n.objects_sent_home);
                slabs += n.slabs;
        }
        assert_int_equal(slabs, stats_of(cache).slabs);
        free_all(cache, object, 40);
        stook_cache_shrink(cache);
        for (unsigned node = 0; node < 4; node++) {
                assert_int_equal(stook_cache_get_node_stats(cache, node, &n), 0);
                assert_true(!n.slabs && !n.slabs_partial && !n.barn_full && !n.barn_empty);
                assert_int_equal(n.objects_sent_home != 0, n.sheaves_sent_home != 0);
        }
        assert_int_equal(stook_cache_get_node_stats(cache, 4, &n), -EINVAL);
        assert_int_equal(stook_cache_get_node_stats(NULL, 0, &n), -EINVAL);
        n.stats_size--;
        assert_int_equal(stook_cache_get_node_stats(cache, 0, &n), -EINVAL);
        gone(cache);
}

/* An object of another node on top of main goes home. */
static void what_is_asked_for_is_looked_at(void **state)
{
        struct stook_cache *cache = stook_cache_create("looked-at", 64, NULL);
        void *object = stook_cache_alloc_node(cache, 0, 2), *other, *first;
        struct stook_cache_stats before, s;

        (void)state;
        NEED_NODE(0);
        first = stook_cache_alloc(cache);       /* main has room for one */
        stook_cache_free(cache, object);
        before = stats_of(cache);
        other = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, 0);
        s = stats_of(cache);
        assert_int_equal(node_of(other), 0);
        assert_int_equal(s.alloc_fastpath, before.alloc_fastpath + 1);
        assert_int_equal(s.alloc_slowpath, before.alloc_slowpath);
        assert_int_equal(s.alloc_node_mismatch, before.alloc_node_mismatch);
        assert_int_equal(stook_cache_validate(cache), 0);
        object = stook_cache_alloc(cache);
        assert_int_equal(node_of(object), 0);
        stook_cache_free(cache, object);
        stook_cache_free(cache, first);
        stook_cache_free(cache, other);
        gone(cache);
}

static void remote_frees_go_home(void **state)
{
        struct stook_cache *cache = stook_cache_create("remote", 64, NULL);
        static void *object[N], *other[N];
        struct stook_cache_node_stats node_stats = { .stats_size = sizeof(node_stats) };
        struct stook_remote_counts sent;
        struct stook_cache_stats before, s;

        (void)state;
        NEED_NODE(2);
        if (!locked)
                skip();
        stook_inject.defrag_ratio_plus_1 = 1 + 0;
        NEED_NODE(0);
        allocate(cache, object, N);
        assert_int_equal(how_many_of(0, object, N), N);
        NEED_NODE(2);
        free_all(cache, object, N);
        sent = stook_home_counts(&cache->front, 0);
        assert_int_equal(stook_cache_get_node_stats(cache, 0, &node_stats), 0);
        assert_true(sent.objects > 0 && node_stats.objects_sent_home == sent.objects);
        assert_int_equal(node_stats.sheaves_sent_home, sent.sheaves);
        /* The last two stay on the slot. */
        assert_int_equal(sent.sheaves, (N + 63) / 64 - 2);
        assert_int_equal(sent.objects, sent.sheaves * 64);
        before = stats_of(cache);
        assert_int_equal(before.objects_live, 0);
        assert_int_equal(before.barn_put + before.barn_put_fail, sent.sheaves);
        assert_int_equal(before.free_slowpath, 0);
        assert_int_equal(stook_cache_validate(cache), 0);
        /* No others come out here. */
        allocate(cache, other, N);
        assert_int_equal(how_many_of(2, other, N), sent.objects);
        /* At home they are there, in whole sheaves. */
        NEED_NODE(0);
        before = stats_of(cache);
        allocate(cache, object, 300);
        s = stats_of(cache);
        assert_int_equal(how_many_of(0, object, 300), 300);
        assert_int_equal(s.sheaf_refill, before.sheaf_refill);
        assert_in_range(s.barn_get - before.barn_get, 4, 5);
        free_all(cache, object, 300);
        free_all(cache, other, N);
        stook_inject.defrag_ratio_plus_1 = 0;
        gone(cache);
}

/* The same on two CPUs, whatever backend: one allocates, the other frees. */
static void two_nodes_at_work(void **state)
{
        struct stook_cache *cache = stook_cache_create("two", 64, NULL);
        static void *object[N];

        (void)state;
        for (int round = 0; round < 50; round++) {
                NEED_NODE(0);
                allocate(cache, object, N);
                for (int i = 0; i < 4; i++)
                        object[i * 7] = (stook_cache_free(cache, object[i * 7]),
                                         stook_cache_alloc_node(cache, 0, 2));
                NEED_NODE(1);
                if (round % 2)
                        stook_cache_free_bulk(round % 4 == 1 ? cache : NULL, N, object);
                else
                        free_all(cache, object, N);
        }
        gone(cache);
}

/* Objects of two nodes in one array, on a third: each goes home. */
static void bulk_frees_sort_by_node(void **state)
{
        struct stook_cache *cache = stook_cache_create("bulk", 64, NULL);
        static void *object[N];

        (void)state;
        if (!locked)
                skip();
        NEED_NODE(0);
        for (int i = 0; i < N; i++)
                assert_non_null(
                        object[i] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, i % 3 ? 0
                                                           : 2));
        NEED_NODE(2);
        stook_cache_free_bulk(cache, N, object);
        assert_int_equal(stook_home_counts(&cache->front, 0).objects, 666 / 64 * 64);
        assert_int_equal(stook_home_counts(&cache->front, 2).objects, 0);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stats_of(cache).objects_live, 0);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, N, object), 0);
        stook_cache_free_bulk(NULL, N, object);
        gone(cache);
}

/* Every sheaf that cannot be had, every time: the objects go to their slabs. */
static void no_memory_for_sheaves(void **state)
{
        struct stook_cache *cache = stook_cache_create("no-sheaves", 64, NULL);
        static void *object[N];

        (void)state;
        NEED_NODE(0);
        allocate(cache, object, N);
        for (int i = 0; i < N; i += 5)
                object[i] = (stook_cache_free(cache, object[i]),
                             stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, 2));
        stook_inject.sheaf_fail_every = 1;
        free_all(cache, object, N / 2);
        stook_cache_free_bulk(cache, N / 2, object + N / 2);
        stook_inject.sheaf_fail_every = 0;
        assert_true(stats_of(cache).free_slowpath > 0);
        gone(cache);
}

/* What CPUs of nodes without memory refill and flush does not go to the slabs each time. */
static void memoryless_nodes_have_a_barn(void **state)
{
        struct stook_cache *cache = stook_cache_create("memoryless", 64, NULL);
        const struct stook_tuning tuning = { sizeof(tuning), 64, 10, 10 };
        static void *object[N / 2];
        struct stook_cache_stats before, s;

        (void)state;
        NEED_NODE(1);
        /* Sheaves that grow after some rounds would be filled anew. */
        assert_int_equal(stook_cache_tune(cache, &tuning), 0);
        for (int round = 0; round < 20; round++) {
                if (round == 2)
                        before = stats_of(cache);
                allocate(cache, object, N / 2);
                assert_int_equal(how_many_of(0, object, N / 2), N / 2);
                free_all(cache, object, N / 2);
        }
        s = stats_of(cache);
        assert_int_equal(s.alloc_slowpath + s.free_slowpath, 0);
        assert_int_equal(s.alloc_slab, before.alloc_slab);
        assert_int_equal(s.sheaf_refill, before.sheaf_refill);
        assert_int_equal(s.sheaf_flush, before.sheaf_flush);
        /* An object of any node is welcome. */
        object[0] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, 2);
        stook_cache_free(cache, object[0]);
        assert_ptr_equal(stook_cache_alloc(cache), object[0]);
        stook_cache_free(cache, object[0]);
        gone(cache);
}

/*
 * Memory on a node's partial lists is used by others, if the gate is open and the node has more
 * than it keeps.
 */
static void refills_come_from_all_nodes(void **state)
{
        struct stook_cache *cache = stook_cache_create("all-nodes", 512, NULL);
        static void *object[4 * N], *other[N];
        size_t slabs;

        (void)state;
        if (!locked)
                skip();
        NEED_NODE(0);
        allocate(cache, object, 4 * N);
        for (int i = 0; i < 4 * N; i++)
                if (i % 2)
                        stook_cache_free(cache, object[i]);
        stook_cache_shrink(
                cache); /* what lies in sheaves goes to the slabs: they are partial now */
        NEED_NODE(2);
        stook_inject.defrag_ratio_plus_1 = 1 + 0;
        allocate(cache, other, N / 2);
        assert_int_equal(how_many_of(2, other, N / 2), N / 2);
        stook_inject.defrag_ratio_plus_1 = 1 + 1024;
        slabs = stats_of(cache).slabs;
        allocate(cache, other + N / 2, N / 2);
        assert_true(how_many_of(0, other + N / 2, N / 2) > N / 4);
        assert_true(stats_of(cache).slabs <= slabs + 1);
        stook_inject.defrag_ratio_plus_1 = 0;
        free_all(cache, other, N);
        for (int i = 0; i < 4 * N; i += 2)
                stook_cache_free(cache, object[i]);
        gone(cache);
}

/* ---- threads ---- */

#define THREADS 4
#define EXCHANGED 64

static struct stook_cache *shared;
static void *exchanged[EXCHANGED];

/* Objects change hands between threads on all nodes. */
static void *exchange(void *arg)
{
        uint64_t random = (uintptr_t)arg * 2654435761u + 1;

        for (int i = 0; i < 60000; i++) {
                void *object;

                random ^= random << 13, random ^= random >> 7, random ^= random << 17;
                object = random & 7 ? stook_cache_alloc(shared)
                                    : stook_cache_alloc_node(shared, 0, (int)(random >> 3 & 3));
                if (!object)
                        return "no memory";
                if (__atomic_exchange_n((uint64_t *)object, random | 1, __ATOMIC_RELAXED) & 1)
                        return "an object was handed out twice";
                object = __atomic_exchange_n(&exchanged[random >> 20 & (EXCHANGED - 1)], object,
                                             __ATOMIC_ACQ_REL);
                if (!object)
                        continue;
                __atomic_store_n((uint64_t *)object, 0, __ATOMIC_RELAXED);
                stook_cache_free(shared, object);
                if (random >> 40 == 0)
                        stook_cache_shrink(shared);
        }
        return NULL;
}

static void clear(void *object, void *data)
{
        (void)data;
        memset(object, 0, 64);
}

static void threads_exchange_objects(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .ctor = clear };
        pthread_t thread[THREADS];
        cpu_set_t all;
        void *error;

        (void)state;
        CPU_ZERO(&all);
        for (int i = 0; i < CPU_SETSIZE; i++)
                CPU_SET(i, &all);
        sched_setaffinity(0, sizeof(all), &all);
        __atomic_store_n(&stook_inject.locked_slot, 0, __ATOMIC_RELAXED);
        shared = stook_cache_create("shared", 64, &args);
        for (uintptr_t i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, exchange, (void *)(i + 1)), 0);
        for (int i = 0; i < THREADS; i++) {
                assert_int_equal(pthread_join(thread[i], &error), 0);
                assert_null(error);
        }
        for (int i = 0; i < EXCHANGED; i++)
                if (exchanged[i])
                        stook_cache_free(shared, exchanged[i]);
        gone(shared);
}

/* Memory of a sheaf that served one node never serves another. */
static void sheaves_stay_on_their_node(void **state)
{
        struct stook_cache *cache = stook_cache_create("sheaves", 64, NULL);
        struct stook_sheaf *of_0, *of_2;

        (void)state;
        of_0 = stook_sheaf_new(cache->index, 64, 0, &cache->counters);
        assert_non_null(of_0);
        stook_sheaf_delete(of_0, &cache->counters);
        of_2 = stook_sheaf_new(cache->index, 64, 2, &cache->counters);
        assert_non_null(of_2);
        assert_ptr_not_equal(of_2, of_0);
        stook_sheaf_begin_rcu(of_2, &cache->counters);
        /* As an implementation may. */
        memset(stook_sheaf_head(of_2), 0xee, sizeof(struct stook_rcu_head));
        stook_sheaf_end_rcu(of_2, &cache->counters);
        assert_int_equal(stook_sheaf_node(of_2), 2);
        stook_sheaf_delete(of_2, &cache->counters);
        assert_ptr_equal(stook_sheaf_new(cache->index, 64, 0, &cache->counters), of_0);
        assert_ptr_equal(stook_sheaf_new(cache->index, 64, 2, &cache->counters), of_2);
        stook_sheaf_delete(of_0, &cache->counters);
        stook_sheaf_delete(of_2, &cache->counters);
        gone(cache);
}

static unsigned limit_calls;

static void count_limit(struct stook_group *group, size_t wanted, void *data)
{
        (void)group;
        (void)wanted;
        (void)data;
        limit_calls++;
}

/* An allocation that names a node is charged as any other: limits hold, and their callback runs. */
static void a_node_lifts_no_limit(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = STOOK_CACHE_ACCOUNT };
        struct stook_cache *cache = stook_cache_create("limited", 64, &args);
        struct stook_group *group = stook_group_create("limited", NULL, 64);
        struct stook_group_stats stats = { .stats_size = sizeof(stats) };

        (void)state;
        assert_non_null(cache);
        assert_non_null(group);
        assert_int_equal(stook_group_on_limit(group, count_limit, NULL), 0);
        stook_group_enter(group);
        errno = 0;
        assert_null(stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, 0));
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(limit_calls, 1);
        assert_null(stook_cache_alloc_node(cache, STOOK_ALLOC_ZERO, 0));
        assert_int_equal(limit_calls, 2);
        assert_null(stook_cache_alloc_node(cache, STOOK_ALLOC_NOWAIT, 0));
        assert_int_equal(limit_calls, 2);
        stook_group_enter(NULL);
        assert_int_equal(stook_group_get_stats(group, &stats), 0);
        assert_int_equal(stats.usage_bytes, 0);
        assert_int_equal(stats.refusals, 3);
        stook_group_destroy(group);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* All objects of a bulk or of a sheaf are of this node, also where others lie ready. */
static void many_are_of_this_node(void **state)
{
        struct stook_cache *cache = stook_cache_create("many", 64, NULL);
        struct stook_sheaf *sheaf, *mixed;
        void *object[300];

        (void)state;
        NEED_NODE(0);
        for (int i = 0; i < 300; i++)
                assert_non_null(
                        object[i] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, i % 2 ? 0
                                                           : 2));
        free_all(cache, object, 300);
        assert_int_equal(stook_cache_alloc_bulk(cache, STOOK_ALLOC_THISNODE, 300, object), 0);
        assert_int_equal(how_many_of(0, object, 300), 300);
        free_all(cache, object, 300);

        for (int i = 0; i < 300; i++)
                assert_non_null(object[i] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, 2));
        free_all(cache, object, 300);           /* into this slot's sheaves, as a rule */
        mixed = stook_sheaf_prefill(cache, 0, 10);
        assert_non_null(mixed);
        sheaf = stook_sheaf_prefill(cache, STOOK_ALLOC_THISNODE, 100);
        assert_non_null(sheaf);
        assert_int_equal(stook_sheaf_available(sheaf), 100);
        for (int i = 0; i < 100; i++)
                object[i] = stook_sheaf_alloc(cache, sheaf);
        assert_int_equal(how_many_of(0, object, 100), 100);
        assert_int_equal(stook_sheaf_refill(cache, STOOK_ALLOC_THISNODE, &mixed, 10), 0);
        for (int i = 0; i < 10; i++)
                object[100 + i] = stook_sheaf_alloc(cache, mixed);
        assert_int_equal(how_many_of(0, object + 100, 10), 10);
        stook_sheaf_return(cache, mixed);
        stook_sheaf_return(cache, sheaf);
        free_all(cache, object, 110);
        gone(cache);
}

static struct stook_cache *tuned;

static void *tune_to_none(void *unused)
{
        assert_int_equal(stook_cache_tune(tuned, STOOK_TUNING(.sheaf_capacity = STOOK_NONE)), 0);
        return unused;
}

static void tune_meanwhile(struct stook_front *front)
{
        pthread_t tuner;

        assert_ptr_equal(front, &tuned->front);
        stook_inject.putting_back = NULL;
        assert_int_equal(pthread_create(&tuner, NULL, tune_to_none, NULL), 0);
        assert_int_equal(pthread_join(tuner, NULL), 0);
}

/* The sheaf of the other node's objects is put back when the tuner has looked there already. */
static void a_tuner_passes_a_sheaf_in_hands(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .sheaf_capacity = 32 };
        void *object[10];

        (void)state;
        NEED_NODE(0);
        tuned = stook_cache_create("tuned", 64, &args);
        for (int i = 0; i < 10; i++)
                assert_non_null(object[i] = stook_cache_alloc_node(tuned, STOOK_ALLOC_THISNODE, 2));
        stook_inject.putting_back = tune_meanwhile;
        stook_cache_free_bulk(tuned, 10, object);
        assert_null(stook_inject.putting_back);
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                for (unsigned node = 0; node < 4; node++)
                        assert_null(stook_home_sheaf(&tuned->front, slot, node));
        assert_int_equal(stats_of(tuned).objects_cached, 0);
        gone(tuned);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_mode_shows_them),
                cmocka_unit_test(a_node_is_obeyed),
                cmocka_unit_test(none_of_another_node_serves),
                cmocka_unit_test(mismatches_are_counted),
                cmocka_unit_test(figures_go_by_node),
                cmocka_unit_test(what_is_asked_for_is_looked_at),
                cmocka_unit_test(sheaves_stay_on_their_node),
                cmocka_unit_test(remote_frees_go_home),
                cmocka_unit_test(two_nodes_at_work),
                cmocka_unit_test(bulk_frees_sort_by_node),
                cmocka_unit_test(no_memory_for_sheaves),
                cmocka_unit_test(memoryless_nodes_have_a_barn),
                cmocka_unit_test(refills_come_from_all_nodes),
                cmocka_unit_test(threads_exchange_objects),
                cmocka_unit_test(a_node_lifts_no_limit),
                cmocka_unit_test(many_are_of_this_node),
                cmocka_unit_test(a_tuner_passes_a_sheaf_in_hands),
        };

        return start_on_nodes() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
