/*
 * Purpose: words on stderr, and the end of the process.
 * Failure: what stderr does not take (closed, full and non-blocking) is lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/os.h"

void stook_os_write(const char *text, size_t bytes)
{
        int before = errno;

        while (bytes) {
                ssize_t n = write(STDERR_FILENO, text, bytes);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;
                text += n;
                bytes -= (size_t)n;
        }
        errno = before;
}

_Noreturn void stook_os_abort(void)
{
        abort();
}
