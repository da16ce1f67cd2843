/*
 * Purpose: text without control characters; see plain_text.h.
 */
#include <stdbool.h>
#include <stdio.h>
#include "plain_text.h"

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
