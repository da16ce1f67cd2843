/*
 * Purpose: the heap profile of a running process, or of one that left a core, read from its memory
 * (life/root.h); nothing runs in the process for that.
 */
#ifndef STOOK_CLI_PROFILE_LIVE_H
#define STOOK_CLI_PROFILE_LIVE_H

#include "cli/memory/target.h"
#include "cli/profile/pprof_read.h"

/*
 * Return: 0; -ENOTSUP: the process has no profile; -EBADMSG: what is there makes no sense; -errno.
 * Release it all the same.
 */
int profile_live(struct pprof *p, struct memory *memory, const struct library *library);

#endif
