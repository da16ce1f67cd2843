/*
 * Purpose: what a file is that a command was given and cannot read, told by its first bytes. So the
 * line that refuses it names the command that reads it.
 */
#ifndef STOOK_CLI_FILE_KIND_H
#define STOOK_CLI_FILE_KIND_H

#include <stddef.h>

/* Two of the answers. */
extern const char file_kind_core[], file_kind_trace[];

/* What begins so, as a text behind "but"; NULL: not known. */
const char *file_kind(const char *begin, size_t bytes);

/* The same of what lies at @path. NULL: not known, or it cannot be read. */
const char *file_kind_at(const char *path);

#endif
