/*
 * Purpose: how many CPUs there may ever be; and the kernel's way to write sets of numbers, "0-3,8",
 * in files of /sys and in our own variables. They are read in pieces, so that no list is too long
 * for the stack.
 * Place: called at start, to bound the number of slots; sets of numbers also by topology.c.
 */
#include <errno.h>
#include <sched.h>

#include "base/compiler.h"
#include "os/os.h"
#include "os/system_call.h"

/* No machine has so many: a larger number is not a CPU's. */
#define CPUS_MAX (1u << 16)
/* ---- sets of numbers ---- */

static void finish(struct stook_number_list *l, stook_number_range *each, void *data)
{
        if (l->digits) {
                if (!l->range)
                        l->first = l->number;
                if (l->first <= l->number)
                        each(l->first, l->number, data);
                else
                        l->bad = true;
        } else if (l->range) {
                l->bad = true;
        }
        l->digits = l->range = false;
}

void stook_number_list_read(struct stook_number_list *l, const char *text, size_t bytes,
                            stook_number_range *each, void *data)
{
        for (size_t i = 0; i < bytes; i++) {
                char c = text[i];

                if (c >= '0' && c <= '9') {
                        uint64_t n = (l->digits ? l->number * UINT64_C(10) : 0) +
                                     (unsigned)(c - '0');

                        l->bad |= n > UINT32_MAX;
                        l->number = (uint32_t)n;
                        l->digits = true;
                } else if (c == '-' && l->digits && !l->range) {
                        l->first = l->number;
                        l->digits = false;
                        l->range = true;
                } else {
                        finish(l, each, data);
                }
        }
}

bool stook_number_list_end(struct stook_number_list *l, stook_number_range *each, void *data)
{
        finish(l, each, data);
        return !l->bad;
}

bool stook_number_list_file(const char *path, stook_number_range *each, void *data)
{
        struct stook_number_list list = { 0 };
        int fd = stook_call_open(path);
        char text[256];
        long n;

        if (fd < 0)
                return false;
        while ((n = stook_call(SYS_read, fd, text, sizeof(text))) > 0)
                stook_number_list_read(&list, text, (size_t)n, each, data);
        stook_call_close(fd);
        return stook_number_list_end(&list, each, data) && n == 0;
}

/* ---- CPUs ---- */

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
