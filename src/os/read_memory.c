/*
 * Purpose: read memory that may not be there: the kernel copies it, and refuses where a load of
 * ours would be a fault.
 * Place: called where an address is not known to be good: frames of a stack, memory to be dumped or
 * searched.
 * Concurrency: any thread, any instruction.
 * Failure: false where not all of it can be read, or the system refuses the call.
 */
#include <sys/uio.h>

#include "os/os.h"
#include "os/system_call.h"

bool stook_os_read_memory(void *to, const void *from, size_t bytes)
{
        struct iovec here = { to, bytes }, there = { (void *)(uintptr_t)from, bytes };
        long pid = stook_call(SYS_getpid);

        return stook_call(SYS_process_vm_readv, pid, &here, 1, &there, 1, 0) == (long)bytes;
}
