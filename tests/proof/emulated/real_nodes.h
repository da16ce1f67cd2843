/*
 * Purpose: what the programs for a machine of several real nodes share: where pages are, by the
 * kernel's own answer, and what does not hold.
 * Place: included by the programs of that machine (tools/machines/emulated-machine).
 */
#ifndef REAL_NODES_H
#define REAL_NODES_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <stook/stook.h>

#define N 600
#define BYTES 4096                      /* of an object: a page each */

static int faults;

#define CHECK(what, ...)                                                        \
        do {                                                                    \
                if (!(what)) {                                                  \
                        faults++;                                               \
                        printf("not so: %s: ", #what);                          \
                        printf(__VA_ARGS__);                                    \
                        putchar('\n');                                          \
                }                                                               \
        } while (0)

static inline void end(int result)
{
        fflush(stdout);
        _exit(result);
}

static inline int node_of_cpu(int cpu)
{
        char path[64];

        for (int node = 0; node < 64; node++) {
                snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpu%d", node, cpu);
                if (!access(path, F_OK))
                        return node;
        }
        return -1;
}

static inline int nodes_of_cpus(int cpus)
{
        int nodes = 0;

        for (int cpu = 0; cpu < cpus; cpu++)
                nodes = node_of_cpu(cpu) >= nodes ? node_of_cpu(cpu) + 1 : nodes;
        return nodes;
}

static inline void run_on(int cpu)
{
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (sched_setaffinity(0, sizeof(set), &set))
                end(100);
}

/* The node that has the page; negative: it was not touched. */
static inline int page_node(const void *at)
{
        void *page = (void *)((uintptr_t)at & ~(uintptr_t)4095);
        int where;

        if (syscall(SYS_move_pages, 0, 1l, &page, NULL, &where, 0))
                end(101);
        return where;
}

/* How many of the objects' pages are on the node, after each was touched. */
static inline int on_node(void **objects, int n, int node)
{
        int count = 0;

        for (int i = 0; i < n; i++) {
                memset(objects[i], 1, BYTES);
                count += page_node(objects[i]) == node;
        }
        return count;
}

static inline int said(void **objects, int n, int node)
{
        int count = 0;

        for (int i = 0; i < n; i++)
                count += stook_object_node(objects[i]) == node;
        return count;
}

/* The last line, and the status. */
static inline int tell(const char *good)
{
        if (faults)
                printf("%d faults\n", faults);
        else
                puts(good);
        return faults ? 1 : 0;
}

#endif
