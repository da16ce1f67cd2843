/*
 * Purpose: text into a buffer, without libc and without an allocation. What does not fit is cut.
 * Place: report only; others format by stook_report_format.
 */
#ifndef STOOK_REPORT_TEXT_H
#define STOOK_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stook_text {
        char  *buffer;
        size_t bytes, room;             /* written; at most, without the 0 at the end */
};

void stook_text_put(struct stook_text *text, char c);
void stook_text_words(struct stook_text *text, const char *words);
bool stook_text_is_plain(char c);       /* printable ASCII */
/* Names come from programs and files: what is not printable becomes '?'. */
void stook_text_plain(struct stook_text *text, const char *words);
void stook_text_number(struct stook_text *text, uint64_t n, unsigned base);
void stook_text_pointer(struct stook_text *text, const void *pointer);
/* Reads a hexadecimal number. Returns what follows it. */
const char *stook_text_read(const char *text, uintptr_t *number);
/* Two hexadecimal digits. */
void stook_text_byte(struct stook_text *text, uint8_t byte);

/* report_stack.c: a line for each frame of a call stack, "    #0 0x... in MODULE+0x...". */
void stook_report_put_addresses(struct stook_text *text, const uintptr_t *frames, unsigned count);

#endif
