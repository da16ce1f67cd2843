/*
 * Purpose: write a heap profile, with the functions, files and lines of its addresses, so that it
 * tells everything by itself: in pprof's format (the message Profile of profile.proto) with Stook's
 * own fields (src/profile/profile_file.h), not compressed.
 */
#ifndef STOOK_CLI_PPROF_WRITE_H
#define STOOK_CLI_PPROF_WRITE_H

#include <stdio.h>
#include "cli/profile/profile_names.h"

/* @type: the one to be shown first. Return: 0; -errno. */
int pprof_write(struct profile_names *names, int type, FILE *out);

/*
 * Names the addresses of the file @path, which is replaced when the new one is whole. Return: true;
 * false: @message, of @bytes, says why.
 */
bool pprof_symbolize(const char *path, char *message, size_t bytes);

#endif
