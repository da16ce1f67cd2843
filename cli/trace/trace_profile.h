/*
 * Purpose: a trace with stacks as a heap profile, which all that shows profiles shows: callers by
 * objects and bytes, of all allocations, of temporary ones, at the peak and at the end. No value is
 * an estimate.
 * A temporary allocation is one that its thread frees before it allocates again.
 */
#ifndef STOOK_CLI_TRACE_PROFILE_H
#define STOOK_CLI_TRACE_PROFILE_H

#include "cli/profile/pprof_read.h"

/*
 * False: @message, of @bytes, says why; release @p all the same. True: @message is empty, or says
 * what of the trace was damaged and left out.
 */
bool trace_profile(struct pprof *p, const char *path, char *message, size_t bytes);

#endif
