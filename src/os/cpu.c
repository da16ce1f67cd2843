/*
 * Purpose: how many CPUs and nodes there may ever be.
 * Place: called at start, to bound the number of slots.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "os/os.h"

/* No machine has so many: a larger number is not a CPU's. */
#define CPUS_MAX (1u << 16)

/* The last number of a list such as "0-3,8-11\n", plus one; 0: there is none. */
static unsigned highest_possible(void)
{
        char text[256];
        ssize_t n;
        unsigned number = 0, last = 0;
        bool digits = false;
        int fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return 0;
        while ((n = read(fd, text, sizeof(text))) > 0) {
                for (ssize_t i = 0; i < n; i++) {
                        if (text[i] < '0' || text[i] > '9') {
                                digits = false;
                                continue;
                        }
                        number = (digits ? number * 10 : 0) + (unsigned)(text[i] - '0');
                        digits = true;
                        if (number >= CPUS_MAX) {
                                close(fd);
                                return 0;
                        }
                        last = number + 1;
                }
                if ((size_t)n < sizeof(text))
                        break;
        }
        close(fd);
        return last;
}

/* Where there is no /sys: no lower than the highest CPU this thread may run on, which is all one can know. */
static unsigned highest_allowed(void)
{
        unsigned long mask[8192 / (8 * sizeof(unsigned long))];
        long n = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);

        for (long i = n / (long)sizeof(mask[0]) - 1; i >= 0; i--)
                if (mask[i])
                        return (unsigned)((i + 1) * 8 * (long)sizeof(mask[0])) - (unsigned)__builtin_clzl(mask[i]);
        return 0;
}

unsigned stook_os_possible_cpus(void)
{
        int before = errno;
        unsigned cpus = highest_possible();

        if (!cpus)
                cpus = highest_allowed();
        errno = before;
        return cpus ? cpus : 1;
}

unsigned stook_os_node_count(void)
{
        return 1;
}
