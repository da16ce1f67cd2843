/*
 * Purpose: text without control characters; see plain_text.h.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "cli/text/plain_text.h"

_Static_assert(sizeof(long long) == sizeof(long) && sizeof(size_t) == sizeof(long) &&
               sizeof(intmax_t) == sizeof(long), "one size of integers with a letter before");

const char *plain_text(const char *text, char *out, size_t size)
{
        size_t n = 0;

        for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
                bool plain = *s >= ' ' && *s < 0x7f && *s != '\\';

                if (n + (plain ? 1 : 4) >= size)
                        break;
                n += (size_t)snprintf(out + n, size - n, plain ? "%c" : "\\x%02x", *s);
        }
        out[n] = 0;
        return out;
}

/* @raw: malloc's. */
static void put_plain(FILE *out, char *raw)
{
        size_t bytes = 4 * strlen(raw) + 1;
        char *plain = malloc(bytes);

        if (plain)
                fputs(plain_text(raw, plain, bytes), out);
        free(plain);
        free(raw);
}

/* One conversion, which begins at @at with its '%'. Returns what follows it. */
static const char *convert(FILE *out, const char *at, va_list *args)
{
        char one[32] = "%", *raw;
        size_t n = 1;
        bool is_long = false;

        for (at++; !isalpha((unsigned char)*at) || strchr("hlzj", *at); at++) {
                is_long |= strchr("lzj", *at) != NULL;
                if (*at == '*')
                        n += (size_t)snprintf(one + n, sizeof one - n, "%d", va_arg(*args, int));
                else
                        one[n++] = *at;
                if (*at == '%')
                        return fputc('%', out), at + 1;
        }
        one[n] = *at;
        if (*at == 's' || *at == 'c') {
                if ((*at == 's' ? asprintf(&raw, one, va_arg(*args, char *))
                                : asprintf(&raw, one, va_arg(*args, int))) >= 0)
                        put_plain(out, raw);
        } else if (strchr("feg", *at)) {
                fprintf(out, one, va_arg(*args, double));
        } else if (is_long) {
                fprintf(out, one, va_arg(*args, long));
        } else {
                fprintf(out, one, va_arg(*args, int));
        }
        return at + 1;
}

/* NULL: no memory. */
static char *compose(const char *format, va_list args)
{
        char *text = NULL;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);
        va_list left;

        if (!out)
                return NULL;
        va_copy(left, args);
        while (*format) {
                size_t n = strcspn(format, "%");

                fwrite(format, 1, n, out);
                format += n;
                if (*format)
                        format = convert(out, format, &left);
        }
        va_end(left);
        fclose(out);
        return text;
}

void vsay(FILE *out, const char *format, va_list args)
{
        char *text = compose(format, args);

        if (text)
                fputs(text, out);               /* at once, where a program writes, too */
        free(text);
}

void say(FILE *out, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vsay(out, format, args);
        va_end(args);
}

void plain_print(char *out, size_t size, const char *format, va_list args)
{
        char *text = compose(format, args);

        snprintf(out, size, "%s", text ? text : "");
        free(text);
}
