/*
 * bench/micro/rcu.cc - frees that wait for readers: a call_rcu for each object, or a sheaf at a
 * time
 *
 *      rcu way=free_rcu|call_rcu|call_rcu_malloc [objects=N] [rounds=N]
 *
 * Purpose: one thread frees N objects of 64 bytes that readers may still see, under liburcu-memb.
 * The three ways: stook_cache_free_rcu; call_rcu for each object, whose callback gives it back to
 * the same cache; the same for objects of malloc. Times are for one object, medians over the
 * rounds:
 *   free         the freeing thread's processor time
 *   all          processor time of the whole process, callbacks included, until all are free
 *                (barrier)
 *   wall         wall time of the same
 * Place: figures "RCU free".
 */
#define URCU_API_MAP
#include <urcu/urcu-memb.h>
#include <urcu/call-rcu.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include <stook/stook.h>

#include "../harness.h"

static struct stook_cache *cache;

struct object {
        struct rcu_head head;
        char rest[48];
};

static void to_cache(struct rcu_head *head)
{
        stook_cache_free(cache, head);
}

static void to_malloc(struct rcu_head *head)
{
        free(head);
}

static double clock_ns(clockid_t clock)
{
        struct timespec t;

        clock_gettime(clock, &t);
        return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double median(std::vector<double> values)
{
        std::sort(values.begin(), values.end());
        return values[values.size() / 2];
}

int main(int argc, char **argv)
{
        const char *way = bench::text_option(argc, argv, "way", "free_rcu");
        size_t n = (size_t)bench::option(argc, argv, "objects", 100000);
        int rounds = (int)bench::option(argc, argv, "rounds", 15);
        bool by_sheaf = !strcmp(way, "free_rcu"), of_cache = strcmp(way, "call_rcu_malloc");
        std::vector<struct object *> objects(n);
        std::vector<double> frees, alls, walls;

        if (!by_sheaf && strcmp(way, "call_rcu") && of_cache) {
                fprintf(stderr, "way=free_rcu, call_rcu or call_rcu_malloc\n");
                return 2;
        }
        rcu_register_thread();
        cache = stook_cache_create("rcu", sizeof(struct object), NULL);
        if (!cache || stook_rcu_use(&stook_urcu_memb))
                return 1;
        for (int round = 0; round < rounds; round++) {
                for (auto &o : objects) {
                        o = (struct object *)(of_cache ? stook_cache_alloc(cache)
                                                       : malloc(sizeof(*o)));
                        if (!o)
                                return 1;
                        memset(o, 1, sizeof(*o));
                }
                double wall = clock_ns(CLOCK_MONOTONIC), all = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
                double mine = clock_ns(CLOCK_THREAD_CPUTIME_ID);
                for (auto o : objects) {
                        if (!by_sheaf)
                                call_rcu(&o->head, of_cache ? to_cache : to_malloc);
                        else if (stook_cache_free_rcu(cache, o))
                                return 1;
                }
                mine = clock_ns(CLOCK_THREAD_CPUTIME_ID) - mine;
                if (by_sheaf)
                        stook_cache_rcu_barrier(cache);
                else
                        rcu_barrier();
                frees.push_back(mine / (double)n);
                alls.push_back((clock_ns(CLOCK_PROCESS_CPUTIME_ID) - all) / (double)n);
                walls.push_back((clock_ns(CLOCK_MONOTONIC) - wall) / (double)n);
        }
        if (stook_cache_destroy(cache))
                return 1;
        bench::answer()
                .add("free", median(frees))
                .add("all", median(alls))
                .add("wall", median(walls));
        rcu_unregister_thread();
        return 0;
}
