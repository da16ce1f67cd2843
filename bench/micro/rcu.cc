/*
 * bench/micro/rcu.cc - frees that wait for readers: a sheaf at a time, a call_rcu for each object,
 * and arrays of objects
 *
 *      rcu way=free_rcu|call_rcu|call_rcu_malloc|call_rcu_array [objects=N] [rounds=N] [replace=1]
 *
 * Purpose: one thread frees N objects of 64 bytes that readers may still see, under liburcu-memb.
 * The ways: stook_cache_free_rcu; call_rcu for each object, whose callback gives it back to the
 * same cache; the same for objects of malloc; an array of 128 pointers handed to one call_rcu,
 * whose callback frees them one by one, as the kernel's batches did before sheaves. replace=1: each
 * free is followed by an allocation, as where entries of a table are replaced; else all objects are
 * freed before any is allocated again.
 * Answer: for one object, medians over the rounds:
 *   free         the freeing thread's processor time
 *   all          processor time of the whole process, callbacks included, until all are free
 *                (barrier)
 *   wall         wall time of the same
 *   recycled_percent  free_rcu: of 100 objects freed, those that stayed in the sheaf that they had
 *                waited in. The others went back to their slabs.
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
#include <stook/stats.h>

#include "../harness/harness.h"

static constexpr size_t array_max = 128;

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

/* Objects on their way to one call_rcu. */
struct array {
        struct rcu_head head;
        size_t n;
        struct object *objects[array_max];
};
static struct array *filling;

static void array_done(struct rcu_head *head)
{
        struct array *a = (struct array *)head;         /* head is its first field */

        for (size_t i = 0; i < a->n; i++)
                stook_cache_free(cache, a->objects[i]);
        free(a);
}

static void submit_array()
{
        if (filling)
                call_rcu(&filling->head, array_done);
        filling = nullptr;
}

static void into_array(struct object *o)
{
        if (!filling) {
                filling = (struct array *)malloc(sizeof(*filling));
                if (!filling)
                        exit(1);
                filling->n = 0;
        }
        filling->objects[filling->n++] = o;
        if (filling->n == array_max)
                submit_array();
}

/* 100 without a free. */
static double recycled_percent()
{
        struct stook_cache_stats s = {};

        s.stats_size = sizeof(s);
        if (stook_cache_get_stats(cache, &s) || !s.free_rcu_sheaf)
                return 100;
        return 100 * (1 - (double)s.sheaf_flush / (double)s.free_rcu_sheaf);
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

enum way { FREE_RCU, CALL_RCU, CALL_RCU_MALLOC, CALL_RCU_ARRAY, WAYS };
static const char *const way_names[WAYS] = { "free_rcu", "call_rcu", "call_rcu_malloc",
                                             "call_rcu_array" };

static struct object *take(enum way way)
{
        void *o = way == CALL_RCU_MALLOC ? malloc(sizeof(struct object)) : stook_cache_alloc(cache);

        if (!o)
                exit(1);
        return (struct object *)memset(o, 1, sizeof(struct object));
}

static void give(enum way way, struct object *o)
{
        if (way == CALL_RCU_ARRAY)
                into_array(o);
        else if (way != FREE_RCU)
                call_rcu(&o->head, way == CALL_RCU ? to_cache : to_malloc);
        else if (stook_cache_free_rcu(cache, o))
                exit(1);
}

static void wait_until_free(enum way way)
{
        submit_array();
        if (way == FREE_RCU)
                stook_cache_rcu_barrier(cache);
        else
                rcu_barrier();
}

int main(int argc, char **argv)
{
        const char *name = bench::text_option(argc, argv, "way", "free_rcu");
        size_t n = (size_t)bench::option(argc, argv, "objects", 100000);
        int rounds = (int)bench::option(argc, argv, "rounds", 15);
        bool replace = bench::option(argc, argv, "replace", 0) != 0;
        std::vector<struct object *> objects(n);
        std::vector<double> frees, alls, walls;
        unsigned at = 0;

        while (at < WAYS && strcmp(name, way_names[at]))
                at++;
        if (at == WAYS) {
                fprintf(stderr, "way=free_rcu, call_rcu, call_rcu_malloc or call_rcu_array\n");
                return 2;
        }
        enum way way = (enum way)at;
        rcu_register_thread();
        cache = stook_cache_create("rcu", sizeof(struct object), NULL);
        if (!cache || stook_rcu_use(&stook_urcu_memb))
                return 1;
        for (int round = 0; round < rounds; round++) {
                if (!replace || !round)
                        for (auto &o : objects)
                                o = take(way);
                double wall = clock_ns(CLOCK_MONOTONIC), all = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
                double mine = clock_ns(CLOCK_THREAD_CPUTIME_ID);
                for (auto &o : objects) {
                        give(way, o);
                        if (replace)
                                o = take(way);
                }
                mine = clock_ns(CLOCK_THREAD_CPUTIME_ID) - mine;
                wait_until_free(way);
                frees.push_back(mine / (double)n);
                alls.push_back((clock_ns(CLOCK_PROCESS_CPUTIME_ID) - all) / (double)n);
                walls.push_back((clock_ns(CLOCK_MONOTONIC) - wall) / (double)n);
        }
        double recycled = recycled_percent();
        if (replace) {
                for (auto o : objects)
                        give(way, o);
                wait_until_free(way);
        }
        if (stook_cache_destroy(cache))
                return 1;
        bench::answer answer;
        answer.add("free", median(frees)).add("all", median(alls)).add("wall", median(walls));
        if (way == FREE_RCU)
                answer.add("recycled_percent", recycled);
        rcu_unregister_thread();
        return 0;
}
