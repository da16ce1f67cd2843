/*
 * What this proves, on a machine of several real nodes (an emulated one:
 * tools/machines/emulated-machine):
 *  - nodes and CPUs are found;
 *  - memory lies where the heap says, by the kernel's own answer (move_pages);
 *  - it comes from the node of the CPU that allocates, except for what the slot's two sheaves hold,
 *    and what other nodes have in more partial slabs than they keep;
 *  - where the caller names a node there is no such exception, also after an object was freed
 *    elsewhere and came home;
 *  - 100 GiB over all nodes are fewer than 100 mappings.
 */
#include "cache/cache.h"
#include "slot/slot_regions.h"
#include "real_nodes.h"

#define BIG ((size_t)30 << 20)

static void *object[N];

/* What the sheaves of the slot that this thread is on hold. */
static int on_slot(const struct stook_cache *cache)
{
        struct stook_line *line = stook_slots_line(stook_slot_now(), cache->index);
        struct stook_pair pair = line ? stook_pair_read(&line->pair) : (struct stook_pair){ 0 };

        return (pair.lo ? (int)stook_sheaf_size((struct stook_sheaf *)pair.lo) : 0) +
               (pair.hi ? (int)stook_sheaf_size((struct stook_sheaf *)pair.hi) : 0);
}

/* What refills may take of other nodes (slab_fill.c). */
static int to_spare(const struct stook_cache *cache, int node)
{
        unsigned slabs = 0;

        for (unsigned n = 0; n < stook_os_node_count(); n++)
                if ((int)n != node &&
                    stook_slabs_partial(&cache->slabs, n) > cache->slabs.min_partial)
                        slabs += stook_slabs_partial(&cache->slabs, n) - cache->slabs.min_partial;
        return (int)(slabs * cache->slabs.objects);
}

/* @none: of no other node. */
static void local(struct stook_cache *cache, int cpu, int node, bool none)
{
        int most;

        run_on(cpu);
        most = none ? 0 : on_slot(cache) + to_spare(cache, node);
        for (int i = 0; i < N; i++)
                object[i] = stook_cache_alloc(cache);
        CHECK(said(object, N, node) >= N - most, "%d of %d, CPU %d, %d may be of others",
              said(object, N, node), N, cpu, most);
        CHECK(on_node(object, N, node) == said(object, N, node), "%d, not %d, CPU %d",
              on_node(object, N, node), said(object, N, node), cpu);
}

static void free_all(struct stook_cache *cache)
{
        for (int i = 0; i < N; i++)
                stook_cache_free(cache, object[i]);
}

static void asked_for(struct stook_cache *cache, int cpu, int node)
{
        run_on(cpu);
        for (int i = 0; i < N; i++)
                if (!(object[i] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, node)))
                        end(102);
        CHECK(said(object, N, node) == N, "%d of %d, node %d", said(object, N, node), N, node);
        CHECK(on_node(object, N, node) == N, "%d of %d, node %d", on_node(object, N, node), N,
              node);
        free_all(cache);
}

static void large(int cpu, int node)
{
        void *block, *part[256];

        run_on(cpu);
        block = stook_malloc(256 * BYTES);
        for (int i = 0; i < 256; i++)
                part[i] = (char *)block + i * BYTES;
        CHECK(on_node(part, 256, node) == 256, "%d of 256, CPU %d", on_node(part, 256, node), cpu);
        stook_free(block);
}

static int mappings(void)
{
        FILE *f = fopen("/proc/self/maps", "r");
        int n = 0, c;

        if (!f)
                end(106);
        while ((c = fgetc(f)) != EOF)
                n += c == '\n';
        fclose(f);
        return n;
}

static void hundred_gigabytes(int cpus)
{
        int before = mappings(), after;
        size_t got = 0;

        for (int i = 0; got < (size_t)100 << 30; i++, got += BIG) {
                char *block;

                run_on(i % cpus);
                block = stook_malloc(BIG);
                if (!block)
                        end(103);
                *block = 1;
        }
        after = mappings();
        printf("%zu GiB over all nodes: %d mappings, %d before\n", got >> 30, after, before);
        CHECK(after - before < 100, "%d mappings more", after - before);
}

static void put(const char *path, const char *text)
{
        FILE *f = fopen(path, "w");

        if (!f || fputs(text, f) < 0 || fclose(f))
                end(104);
}

int main(void)
{
        struct stook_mode mode = { .mode_size = sizeof(mode) };
        struct stook_cache *cache;
        int cpus, nodes;

        /* 100 GiB of which little will be touched, on a small machine. */
        put("/proc/sys/vm/overcommit_memory", "1");
        put("/sys/kernel/mm/transparent_hugepage/enabled", "never");
        cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
        nodes = nodes_of_cpus(cpus);
        cache = stook_cache_create("pages", BYTES, NULL);
        if (!cache || stook_get_mode(&mode))
                end(105);
        printf("%u nodes, slots by %s (%s), %d CPUs\n", mode.nodes, mode.index, mode.backend, cpus);
        CHECK(mode.nodes == (unsigned)nodes && nodes > 1, "%u, and %d", mode.nodes, nodes);
        for (int cpu = 0; cpu < cpus; cpu++) {
                /*
                 * One thread has one concurrency id: what it freed on its slot, on another node, it
                 * finds there.
                 */
                local(cache, cpu, node_of_cpu(cpu), !cpu);
                run_on((cpu + cpus / 2) % cpus);
                free_all(cache);                /* from another node: home, but for two sheaves */
                if (cpu % 2) {
                        stook_cache_shrink(cache);
                        local(cache, cpu, node_of_cpu(cpu), true);
                        free_all(cache);                /* at home */
                }
                large(cpu, node_of_cpu(cpu));
        }
        for (int node = 0; node < nodes; node++)
                asked_for(cache, (node * 3 + 1) % cpus, node);
        CHECK(stook_cache_validate(cache) == 0, "the cache");
        CHECK(stook_cache_destroy(cache) == 0, "it");
        hundred_gigabytes(cpus);
        end(tell("all pages are where they should be"));
}
