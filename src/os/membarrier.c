/*
 * Purpose: make every CPU that runs this process abort the critical section it is in, and see our stores.
 * Place: called by slot, at start and for drains.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"

#define PRIVATE_EXPEDITED_RSEQ          (1 << 7)
#define REGISTER_PRIVATE_EXPEDITED_RSEQ (1 << 8)

static bool membarrier(int command)
{
        int before = errno;
        bool done = !syscall(SYS_membarrier, command, 0, 0);

        errno = before;
        return done;
}

bool stook_os_membarrier_register(void)
{
        return membarrier(REGISTER_PRIVATE_EXPEDITED_RSEQ);
}

bool stook_os_membarrier(void)
{
        return membarrier(PRIVATE_EXPEDITED_RSEQ);
}
