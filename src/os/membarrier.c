/*
 * Purpose: make every CPU that runs this process abort the critical section it is in, and see our
 * stores.
 * Place: called by slot, at start and for evacuations; the second kind by epoch, for readers.
 */
#include "os/os.h"
#include "os/system_call.h"

#define PRIVATE_EXPEDITED               (1 << 3)
#define REGISTER_PRIVATE_EXPEDITED      (1 << 4)
#define PRIVATE_EXPEDITED_RSEQ          (1 << 7)
#define REGISTER_PRIVATE_EXPEDITED_RSEQ (1 << 8)

static bool membarrier(int command)
{
        return !stook_call(SYS_membarrier, command, 0, 0);
}

bool stook_os_membarrier_register(void)
{
        return membarrier(REGISTER_PRIVATE_EXPEDITED_RSEQ);
}

bool stook_os_membarrier(void)
{
        return membarrier(PRIVATE_EXPEDITED_RSEQ);
}

bool stook_os_membarrier_register_memory(void)
{
        return membarrier(REGISTER_PRIVATE_EXPEDITED);
}

bool stook_os_membarrier_memory(void)
{
        return membarrier(PRIVATE_EXPEDITED);
}
