/*
 * What this proves, on a machine of several real nodes: which node's memory comes where the task
 * has a memory policy (set_mempolicy), by the kernel's own answer.
 *  - With STOOK_STRICT_NUMA=1 each allocation that names no node follows the policy of that moment:
 *    PREFERRED, BIND, INTERLEAVE, and none. It does not matter under which policy, or on which
 *    node, the pages are touched later.
 *  - So it is, too, where the task had a policy when the library started (numactl).
 *  - Without STOOK_STRICT_NUMA, where the task had a policy then: pages are where the policy says.
 */
#include <sys/wait.h>
#include "real_nodes.h"

/* <linux/mempolicy.h> */
enum { DEFAULT, PREFERRED, BIND, INTERLEAVE };
static const char *const policies[] = { "default", "preferred", "bind", "interleave" };

#define OBJECTS 240                     /* divided evenly by up to four nodes */
#define LARGE_PAGES 64

static int cpus, nodes;
static void *object[N];

static void set_policy(int mode, unsigned long mask)
{
        if (syscall(SYS_set_mempolicy, (long)mode, mode == DEFAULT ? NULL : &mask, 64l))
                end(120);
}

static int cpu_of_node(int node)
{
        for (int cpu = 0; cpu < cpus; cpu++)
                if (node_of_cpu(cpu) == node)
                        return cpu;
        end(121);
        return 0;
}

/* Of @n objects, how many are to be of @node, if a thread on node @here asks. */
static int wanted(int n, int node, int here, int mode, unsigned long mask)
{
        int first = mask ? __builtin_ctzl(mask) : here;

        if (mode == DEFAULT)
                return node == here ? n : 0;
        if (mode == INTERLEAVE)
                return mask >> node & 1 ? n / __builtin_popcountl(mask) : 0;
        return node == (mask >> here & 1 ? here : first) ? n : 0;
}

/* The pages are touched under no policy, on another node. */
static void check(const char *what, int n, int here, int mode, unsigned long mask)
{
        set_policy(DEFAULT, 0);
        run_on(cpu_of_node((here + 1) % nodes));
        for (int node = 0; node < nodes; node++) {
                int want = wanted(n, node, here, mode, mask);

                CHECK(said(object, n, node) == want && on_node(object, n, node) == want,
                      "%s, %s %#lx, from node %d: node %d: said %d, is %d, want %d", what,
                      policies[mode], mask, here, node, said(object, n, node),
                      on_node(object, n, node), want);
        }
}

static void begin(int here, int mode, unsigned long mask)
{
        run_on(cpu_of_node(here));
        set_policy(mode, mask);
}

/* Each way to an object, under one policy, on one node. */
static void follow(struct stook_cache *cache, int here, int mode, unsigned long mask)
{
        begin(here, mode, mask);
        for (int i = 0; i < OBJECTS; i++)
                object[i] = stook_cache_alloc(cache);
        check("alloc", OBJECTS, here, mode, mask);
        for (int i = 0; i < OBJECTS; i++)       /* on another node */
                stook_cache_free(cache, object[i]);

        begin(here, mode, mask);
        if (stook_cache_alloc_bulk(cache, 0, OBJECTS, object))
                end(122);
        check("bulk", OBJECTS, here, mode, mask);
        stook_cache_free_bulk(cache, OBJECTS, object);

        begin(here, mode, mask);
        for (int i = 0; i < OBJECTS; i++)
                object[i] = stook_malloc(BYTES);
        check("malloc", OBJECTS, here, mode, mask);
        for (int i = 0; i < OBJECTS; i++)
                stook_free(object[i]);

        begin(here, mode, mask);
        for (int i = 0; i < 12; i++)
                object[i] = stook_malloc(LARGE_PAGES * BYTES);
        check("large malloc", 12, here, mode, mask);
        for (int i = 0; i < 12; i++)
                stook_free(object[i]);
}

static void follow_all(int mode, unsigned long mask)
{
        struct stook_cache *cache = stook_cache_create("policy", BYTES, NULL);

        if (!cache)
                end(123);
        for (int here = 0; here < nodes; here++)
                follow(cache, here, mode, mask);
        CHECK(stook_cache_validate(cache) == 0, "the cache");
        CHECK(stook_cache_destroy(cache) == 0, "it");
}

/* The policy of the start still holds; nothing follows it but the kernel. */
static void touch_under(int mode, unsigned long mask)
{
        int count = 0;

        run_on(0);
        for (int i = 0; i < OBJECTS; i++)
                object[i] = stook_malloc(BYTES);
        for (int node = 0; node < nodes; node++)
                if (mask >> node & 1)
                        count += on_node(object, OBJECTS, node);
        CHECK(count == OBJECTS, "%s %#lx: %d of %d", policies[mode], mask, count, OBJECTS);
}

/* This program once more, where the library starts under that policy. */
static void started_under(const char *program, const char *strict, int mode, unsigned long mask)
{
        char words[2][24];
        int status;
        pid_t child = fork();

        if (!child) {
                snprintf(words[0], sizeof(words[0]), "%d", mode);
                snprintf(words[1], sizeof(words[1]), "%lu", mask);
                setenv("STOOK_STRICT_NUMA", strict, 1);
                set_policy(mode, mask);
                execl(program, program, strict, words[0], words[1], (char *)NULL);
                end(124);
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
                end(125);
        CHECK(!status, "started under %s %#lx, strict %s: status %#x", policies[mode], mask, strict,
              status);
}

static int again(char **words)
{
        int mode = atoi(words[2]);
        unsigned long mask = strtoul(words[3], NULL, 0);

        if (atoi(words[1]))
                follow_all(mode, mask);
        else
                touch_under(mode, mask);
        return faults ? 1 : 0;
}

int main(int words, char **word)
{
        static const struct { int mode; unsigned long mask;
        } tried[] = {
                { DEFAULT, 0 }, { PREFERRED, 1 }, { PREFERRED, 4 }, { PREFERRED, 0 }, { BIND, 8 },
                { BIND, 6 }, { INTERLEAVE, 5 }, { INTERLEAVE, 14 }, { INTERLEAVE, 15 },
        };
        struct stook_mode mode = { .mode_size = sizeof(mode) };
        const char *strict = getenv("STOOK_STRICT_NUMA");

        cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
        nodes = nodes_of_cpus(cpus);
        if (words == 4)
                end(again(word));
        if (nodes != 4 || !strict || strcmp(strict, "1") || stook_get_mode(&mode))
                end(126);
        printf("%u nodes, slots by %s (%s), %d CPUs\n", mode.nodes, mode.index, mode.backend, cpus);
        for (size_t i = 0; i < sizeof(tried) / sizeof(*tried); i++) {
                follow_all(tried[i].mode, tried[i].mask);
                started_under(word[0], "1", tried[i].mode, tried[i].mask);
                if (tried[i].mask)
                        started_under(word[0], "0", tried[i].mode, tried[i].mask);
        }
        end(tell("all pages are where the policy says"));
}
