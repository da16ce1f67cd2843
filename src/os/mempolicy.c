/*
 * Purpose: memory policies, by system calls: libnuma is not asked.
 * Place: called by pages (where the pages of a node's address space come from).
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"

/* <linux/mempolicy.h>, which not every libc comes with. */
enum { MPOL_DEFAULT, MPOL_PREFERRED, MPOL_BIND, MPOL_INTERLEAVE, MPOL_LOCAL, MPOL_PREFERRED_MANY, MPOL_WEIGHTED_INTERLEAVE };

#define MASK_BITS (STOOK_NODES_MAX + 1) /* the kernel takes one less */

bool stook_os_prefer_node(void *addr, size_t bytes, unsigned node)
{
        unsigned long mask[2] = { 1ul << node };
        int before = errno;
        bool done = !syscall(SYS_mbind, addr, bytes, MPOL_PREFERRED, mask, MASK_BITS, 0u);

        errno = before;
        return done;
}

bool stook_os_has_policy(void)
{
        int before = errno, mode = MPOL_DEFAULT;
        bool has = !syscall(SYS_get_mempolicy, &mode, NULL, 0ul, NULL, 0ul) && mode != MPOL_DEFAULT;

        errno = before;
        return has;
}
