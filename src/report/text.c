/*
 * Purpose: text into a buffer, see text.h, and the format that the other layers use for details.
 * Place: report only, but for stook_report_format; calls nothing.
 * Concurrency: any thread, any instruction; the buffer is the caller's.
 */
#include <stdarg.h>

#include "report/report.h"

void stook_text_put(struct stook_text *text, char c)
{
        if (text->bytes < text->room)
                text->buffer[text->bytes++] = c;
}

void stook_text_words(struct stook_text *text, const char *words)
{
        while (*words)
                stook_text_put(text, *words++);
}

bool stook_text_is_plain(char c)
{
        return c >= ' ' && c <= '~';
}

void stook_text_plain(struct stook_text *text, const char *words)
{
        for (; *words; words++)
                stook_text_put(text, stook_text_is_plain(*words) ? *words : '?');
}

void stook_text_number(struct stook_text *text, uint64_t n, unsigned base)
{
        char digits[20];
        int i = 0;

        do {
                digits[i++] = "0123456789abcdef"[n % base];
                n /= base;
        } while (n);
        while (i)
                stook_text_put(text, digits[--i]);
}

void stook_text_pointer(struct stook_text *text, const void *pointer)
{
        stook_text_words(text, "0x");
        stook_text_number(text, (uintptr_t)pointer, 16);
}

const char *stook_text_read(const char *text, uintptr_t *number)
{
        for (*number = 0;; text++) {
                if (*text >= '0' && *text <= '9')
                        *number = *number << 4 | (uintptr_t)(*text - '0');
                else if (*text >= 'a' && *text <= 'f')
                        *number = *number << 4 | (uintptr_t)(*text - 'a' + 10);
                else
                        return text;
        }
}

void stook_text_byte(struct stook_text *text, uint8_t byte)
{
        stook_text_put(text, "0123456789abcdef"[byte >> 4]);
        stook_text_put(text, "0123456789abcdef"[byte & 15]);
}

size_t stook_report_format(char *buffer, size_t bytes, const char *format, ...)
{
        struct stook_text text = { .buffer = buffer, .room = bytes - 1 };
        const char *words;
        va_list args;

        if (!bytes)
                return 0;
        va_start(args, format);
        for (; *format; format++) {
                if (*format != '%') {
                        stook_text_put(&text, *format);
                        continue;
                }
                switch (*++format) {
                case 's':
                        words = va_arg(args, const char *);
                        stook_text_words(&text, words ? words : "(none)");
                        break;
                case 'p':
                        stook_text_pointer(&text, va_arg(args, const void *));
                        break;
                case 'u':
                        stook_text_number(&text, va_arg(args, uint64_t), 10);
                        break;
                case 'x':
                        stook_text_number(&text, va_arg(args, uint64_t), 16);
                        break;
                case '\0':
                        format--;
                        break;
                default:
                        stook_text_put(&text, *format);
                }
        }
        va_end(args);
        buffer[text.bytes] = '\0';
        return text.bytes;
}
