/*
 * Purpose: asks something of a running process, which does it itself: src/life/root.h has the
 * protocol.
 */
#ifndef STOOK_CLI_REQUEST_H
#define STOOK_CLI_REQUEST_H

#include "cli/memory/library.h"
#include "cli/memory/target.h"

/* The only copy of the library in a process that can change. NULL, and said. */
struct library *request_library(struct target *target, const char *command, const char *what);
/*
 * @request: action and what belongs to it are set; the rest is set here. Waits @wait_s seconds at
 * most; a request that is not answered by then is taken back. Return: 0: *@answer is there;
 * -ETIMEDOUT; -EBUSY: another command asks; -errno.
 */
int request_ask(struct memory *memory, const struct library *library,
                struct stook_request *request, unsigned wait_s, int *answer);
/*
 * Says why there is no answer, or which one is for all requests. Return: the exit status; -1: the
 * answer is the caller's.
 */
int request_failed(const char *command, uint32_t pid, int error, int answer);

#endif
