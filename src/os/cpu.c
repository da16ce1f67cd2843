/*
 * Purpose: how many CPUs there may ever be.
 * Place: called at start, to bound the number of slots.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/compiler.h"
#include "os/number_list.h"
#include "os/os.h"
#include "os/system_call.h"
#include "os/thread_list.h"

/* No machine has so many: a larger number is not a CPU's. */
#define CPUS_MAX (1u << 16)
/*
 * Threads whose CPUs are asked for in a round of maintenance, at about 0.2 us each: of more
 * threads nothing is known. Arbitrary.
 */
#define THREADS_MOST 4096

static void note_last(uint32_t first, uint32_t last, void *data)
{
        uint32_t *highest = data;

        (void)first;
        if (last > *highest)
                *highest = last;
}

/* The highest number in /sys, plus one; 0: there is none. */
static unsigned highest_possible(void)
{
        uint32_t highest = 0;

        if (!stook_number_list_file("/sys/devices/system/cpu/possible", note_last, &highest) ||
            highest >= CPUS_MAX)
                return 0;
        return highest + 1;
}

/* Where there is no /sys: the highest CPU that this thread may run on, plus one. */
static unsigned highest_allowed(void)
{
        unsigned long mask[8192 / (8 * sizeof(unsigned long))];
        long n = stook_call(SYS_sched_getaffinity, 0, sizeof(mask), mask);

        for (long i = n / (long)sizeof(mask[0]) - 1; i >= 0; i--)
                if (mask[i])
                        return (unsigned)((i + 1) * 8 * (long)sizeof(mask[0])) -
                               (unsigned)__builtin_clzl(mask[i]);
        return 0;
}

struct adding {
        struct stook_cpus *cpus;
        unsigned threads;
};

/* Its CPUs are added. One that has ended meanwhile has none. False: there are too many threads. */
static bool add_thread(uint32_t id, const char *digits, void *data)
{
        struct adding *adding = data;
        struct stook_cpus *cpus = adding->cpus;
        long n = stook_call(SYS_sched_getaffinity, id, sizeof(cpus->one), cpus->one);

        (void)digits;
        for (long i = 0; i < n / (long)sizeof(cpus->one[0]); i++)
                cpus->mask[i] |= cpus->one[i];
        return ++adding->threads <= THREADS_MOST;
}

void stook_os_allowed_cpus(struct stook_cpus *cpus)
{
        struct adding adding = { .cpus = cpus };
        bool all;

        memset(cpus->mask, 0, sizeof(cpus->mask));
        cpus->count = 0;
        all = stook_thread_list(add_thread, &adding) > 0;
        for (size_t i = 0; all && i < STOOK_CPUS_MAX / 64; i++)
                cpus->count += (unsigned)__builtin_popcountll(cpus->mask[i]);
}

unsigned stook_os_cpu(void)
{
        int before = errno, cpu = sched_getcpu();

        errno = before;
        return cpu < 0 ? 0 : (unsigned)cpu;
}

unsigned stook_os_possible_cpus(void)
{
        unsigned cpus = highest_possible(), slots = stook_os_topology_slots();

        if (!cpus)
                cpus = highest_allowed();
        if (cpus < slots)
                cpus = slots;
        return cpus ? cpus : 1;
}

unsigned stook_os_cpus_bound(unsigned *allowed)
{
        uint64_t mask[STOOK_CPUS_FEW / 64];
        long n = stook_call(SYS_sched_getaffinity, 0, sizeof(mask), mask);

        if (n <= 0 || stook_os_topology_slots() > (unsigned)n * 8)
                return 0;               /* the kernel refuses a mask that is too small */
        *allowed = 0;
        for (long i = 0; i < n / (long)sizeof(mask[0]); i++)
                *allowed += (unsigned)__builtin_popcountll(mask[i]);
        return (unsigned)n * 8;
}
