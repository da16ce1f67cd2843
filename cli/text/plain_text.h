/*
 * Purpose: text as a terminal may get it. Names of caches, groups, programs, functions and files
 * come from other processes, from files or from arguments, and may have any bytes. So all that
 * people read is printed by say, or is a constant.
 */
#ifndef STOOK_CLI_PLAIN_TEXT_H
#define STOOK_CLI_PLAIN_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What follows a noun behind @n. */
static inline const char *plural(uint64_t n)
{
        return n == 1 ? "" : "s";
}

/*
 * Writes @text to @out, with bytes that are not printable ASCII, and backslashes, as \xNN. It is
 * cut where @size ends. Return: @out.
 */
const char *plain_text(const char *text, char *out, size_t size);

/*
 * As fprintf, with each text and letter among the arguments in that form; @format is a constant.
 * Conversions are those of integers, s, c, f, g and e. Without memory a text is left out.
 */
void say(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void vsay(FILE *out, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
/* The same to @out, cut where @size ends. */
void plain_print(char *out, size_t size, const char *format, va_list args)
        __attribute__((format(printf, 3, 0)));

#endif
