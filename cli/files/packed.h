/*
 * Purpose: packed files, told by their first bytes, read through the program that unpacks them.
 */
#ifndef STOOK_CLI_PACKED_H
#define STOOK_CLI_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* The program that unpacks what begins so: xz, gzip or zstd. NULL: none. */
const char *packed_by(const char *begin, size_t bytes);

/* `PROGRAM -dc` of @fd, which it takes. Return: its output, with *pid; NULL: errno. */
FILE *packed_open(const char *program, int fd, pid_t *pid);

/* Closes @in and waits for @pid. False: it did not unpack all, which @message says. */
bool packed_close(FILE *in, pid_t pid, const char *program, const char *path, char *message,
                  size_t bytes);

#endif
