/*
 * Purpose: read a text file of the kernel line by line, without an allocation.
 * Place: called for /proc/self/maps.
 * Concurrency: any thread, any instruction. The kernel may change the file between two reads.
 * Failure: false: the file cannot be read, or not to its end.
 */
#include <string.h>

#include "os/os.h"
#include "os/system_call.h"

#define LINE_BYTES 384                  /* longer lines are cut: of a long path its end */

bool stook_os_each_line(const char *path, bool (*each)(const char *line, void *data), void *data)
{
        int fd = stook_call_open(path);
        char line[LINE_BYTES], piece[128];
        size_t bytes = 0;
        bool done = false;
        long n = 0;

        if (fd < 0)
                return false;
        while (!done && (n = stook_call(SYS_read, fd, piece, sizeof(piece))) > 0) {
                for (long i = 0; i < n && !done; i++) {
                        if (piece[i] != '\n') {
                                if (bytes < sizeof(line) - 1)
                                        line[bytes++] = piece[i];
                                continue;
                        }
                        line[bytes] = '\0';
                        bytes = 0;
                        done = each(line, data);
                }
        }
        stook_call_close(fd);
        return done || !n;
}
