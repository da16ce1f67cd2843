/*
 * Purpose: text from elsewhere (names of caches, groups, programs, files) as a terminal may get it.
 */
#ifndef STOOK_CLI_PLAIN_TEXT_H
#define STOOK_CLI_PLAIN_TEXT_H

#include <stddef.h>

/*
 * Writes @text to @out, with bytes that are not printable ASCII, and backslashes, as \xNN. It is
 * cut where @size ends. Return: @out.
 */
const char *plain_text(const char *text, char *out, size_t size);

#endif
