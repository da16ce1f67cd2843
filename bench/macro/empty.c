/*
 * bench/macro/empty.c - a program that does nothing
 *
 * Purpose: what the drop-in adds to every process: resident memory, core size, mlockall. Plain C,
 * so that no library but libc is there. Without an argument it ends at once (its time is taken by
 * spawn).
 *   empty rss     prints its resident KiB after one allocation
 *   empty locked  the same after mlockall(MCL_CURRENT | MCL_FUTURE)
 *   empty core    allocates once and aborts
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long rss_kib(void)
{
        char text[4096];
        int fd = open("/proc/self/smaps_rollup", O_RDONLY);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (fd >= 0)
                close(fd);
        if (n <= 0)
                return -1;
        text[n] = 0;
        char *at = strstr(text, "\nRss:");
        return at ? strtol(at + 5, NULL, 10) : -1;
}

int main(int argc, char **argv)
{
        if (argc < 2)
                return 0;
        if (!strcmp(argv[1], "locked") && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
                perror("mlockall");
                return 1;
        }
        void *volatile object = malloc(100);
        if (!object)
                return 1;
        if (!strcmp(argv[1], "core"))
                abort();
        char line[64];
        int length = snprintf(line, sizeof(line), "{\"resident_KiB\": %ld}\n", rss_kib());
        return write(1, line, (size_t)length) == length ? 0 : 1;
}
