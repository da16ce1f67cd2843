/*
 * Proves that a child of a fork is not misled by a word that says "a thread is inside", if it does
 * not have the thread. Another thread forks, by fork, _Fork or a raw clone, at each instruction of
 *   - a validation, which closes the barns of its cache;
 *   - a round over idle slots, which visits all barns, and of which there is one at a time;
 *   - the destroy of a group, which changes lists of groups.
 * In the child barns are open and can be closed, rounds begin, and no group's id is lost.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <stook/debug.h>
#include <stook/group.h>
#include <stook/stook.h>
#include "cache/cache.h"
#include "evacuate/evacuate.h"
#include "group/group.h"
#include "race/beside.h"
#include "race/breakpoint.h"
#include "race/forked.h"

#if !defined(__x86_64__)
int main(void)
{
        puts("breakpoints are set on x86-64 only");
        return 77;
}
#else

/*
 * One case in so many: each forks; odd, so that each instruction meets each kind of fork some time.
 */
#define STRIDE 11

static struct stook_cache *cache;
static struct stook_group *group;
static const char *path_name = "";
static unsigned at_instruction;
static size_t cases, faults;

static void fault(const char *what)
{
        if (faults++ < 20)
                printf("fault: %s: %s, instruction %u\n", what, path_name, at_instruction);
}

static void nothing(void) { }

/* Something for a round to do, and noted as idle by the one before. */
static void p_rest(void)
{
        void *objects[8];

        for (unsigned i = 0; i < 8; i++)
                objects[i] = stook_cache_alloc(cache);
        for (unsigned i = 0; i < 8; i++)
                stook_cache_free(cache, objects[i]);
        stook_evacuate_idle(0);
}

static void p_group(void)
{
        group = stook_group_create("group", NULL, 0);
}

static void c_validate(void) { (void)IN_LIBRARY(stook_cache_validate(cache)); }
static void c_rest(void) { (void)IN_LIBRARY(stook_evacuate_idle(0)); }
static void c_put(void) { (void)IN_LIBRARY((stook_group_destroy(group), 0)); }

/* All ids can be had: but for `lives`, of groups that are alive. */
static void check_groups(unsigned lives)
{
        unsigned n = 0;

        while (stook_group_create("another", NULL, 0))
                n++;
        if (n + lives < STOOK_GROUPS_MAX)
                fault("ids of groups are lost");
}

static void check_child(void)
{
        struct stook_barns *barns = &cache->barns;

        dup2(open("/dev/null", O_WRONLY), 2);
        stook_cache_free(cache, stook_cache_alloc(cache));
        if (stook_evacuate_looking)
                fault("a round is under way");
        if (stook_barns_visit_begin(barns))
                stook_barns_visit_end(barns);
        else
                fault("barns are closed");
        if (!stook_barns_close(barns))
                fault("barns cannot be closed");
        stook_barns_open(barns);
        stook_evacuate_idle(0);
        if (stook_cache_validate(cache))
                fault("the cache is not valid");
        if (!strcmp(path_name, "destroy of a group"))
                check_groups(group->state == STOOK_GROUP_LIVE);
        _exit(faults != 0);
}

static void check_child_of_another_thread(void)
{
        faults = 0;
        check_child();
}

static void act_fork(void)
{
        if (!forked_beside(check_child_of_another_thread))
                fault("after a fork beside it");
}

/* The thread's own fork, on top of its call: the child makes the other half of it. */
static bool is_child;

static void act_fork_on_top(void)
{
        pid_t pid = _Fork();

        if (!pid) {
                is_child = true;
                forked_child_begins();
                faults = 0;
                stook_cache_free(cache, stook_cache_alloc(cache));
#if !STOOK_LOCK_RANKS /* it waits for the registry, on top of a holder of a lock */
                stook_cache_shrink(cache);
#endif
                return;
        }
        if (!forked_child_is_well(pid))
                fault("after a fork on top of it");
}

static const struct path {
        const char *name;
        void (*prepare)(void), (*call)(void);
        bool on_top;                    /* a handler may make calls on top of it */
} paths[] = {
        { "validation", nothing, c_validate, false },
        { "round over idle slots", p_rest, c_rest, false },
        { "destroy of a group", p_group, c_put, true },
};

static void run_path(const struct path *path, unsigned long seed, unsigned long stride)
{
        static unsigned long counter;
        static struct steps steps;
        size_t before = cases;

        path_name = path->name;
        path->prepare();
        breakpoints_find(path->call, &steps);
        for (unsigned k = 0; k < steps.count; k++) {
                if (counter++ % stride != seed % stride)
                        continue;
                at_instruction = k;
                path->prepare();
                breakpoint_set(steps.at[k], act_fork);
                path->call();
                breakpoint_clear();
                cases++;
                if (!path->on_top)
                        continue;
                path->prepare();
                breakpoint_set(steps.at[k], act_fork_on_top);
                path->call();
                breakpoint_clear();
                if (is_child)
                        check_child();
                cases++;
        }
        printf("  %-24s %4u instructions, %zu cases\n", path->name, steps.count, cases - before);
}

int main(int argc, char **argv)
{
        const char *only = argc > 1 ? argv[1] : "", *given = getenv("STOOK_SEED");
        const char *every = getenv("STOOK_EVERY_INSTRUCTION");
        struct timespec now;
        unsigned long seed, stride;

        setvbuf(stdout, NULL, _IOLBF, 0);
        clock_gettime(CLOCK_MONOTONIC, &now);
        seed = given ? strtoul(given, NULL, 0) : (unsigned long)now.tv_nsec;
        stride = every ? strtoul(every, NULL, 0) : STRIDE;
        stride += !stride;
        cache = stook_cache_create("forked", 1000, NULL);
        if (!cache || !beside_start())
                return 1;
        if (!breakpoints_start()) {
                puts("text cannot be written to here");
                return 77;
        }
        printf("seed %lu, one case in %lu\n", seed, stride);
        for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
                if (strstr(paths[i].name, only))
                        run_path(&paths[i], seed, stride);
        printf("%zu cases, %zu faults\n", cases, faults);
        return faults != 0;
}
#endif
