/*
 * Purpose: a JSON writer; see json.h.
 */
#include <math.h>
#include <string.h>
#include <stook/version.h>
#include "cli/text/json.h"

/* Length of the UTF-8 sequence at @s, or 0. */
static unsigned utf8_length(const unsigned char *s)
{
        unsigned n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 :
                     s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

        for (unsigned i = 1; i < n; i++)
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
        if ((s[0] == 0xe0 && s[1] < 0xa0) ||
            (s[0] == 0xed && s[1] >= 0xa0) || /* too long, surrogates */
            (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
                return 0;
        return n;
}

static void quoted(FILE *out, const char *text)
{
        const unsigned char *s = (const unsigned char *)text;

        fputc('"', out);
        while (*s) {
                unsigned n = utf8_length(s);

                if (!n) {
                        fputs("\\ufffd", out);
                        s++;
                } else if (*s == '"' || *s == '\\') {
                        fprintf(out, "\\%c", *s++);
                } else if (*s < 0x20 || *s == 0x7f) {
                        fprintf(out, "\\u%04x", *s++);
                } else if (*s == 0xc2 && s[1] < 0xa0) { /* control characters as well */
                        fprintf(out, "\\u%04x", s[1]);
                        s += 2;
                } else {
                        fwrite(s, 1, n, out);
                        s += n;
                }
        }
        fputc('"', out);
}

static void lead(struct json *j, const char *key)
{
        if (!j->first)
                fputc(',', j->out);
        if (j->depth)
                fprintf(j->out, "\n%*s", (int)j->depth, "");
        j->first = false;
        if (key) {
                quoted(j->out, key);
                fputs(": ", j->out);
        }
}

static void bracket_open(struct json *j, const char *key, char bracket)
{
        lead(j, key);
        fputc(bracket, j->out);
        j->depth++;
        j->first = true;
}

static void bracket_close(struct json *j, char bracket)
{
        j->depth--;
        if (!j->first)
                fprintf(j->out, "\n%*s", (int)j->depth, "");
        fputc(bracket, j->out);
        j->first = false;
}

void json_begin(struct json *j, FILE *out)
{
        *j = (struct json){ .out = out, .first = true };
        json_object(j, NULL);
        json_count(j, "format", 1);
        json_string(j, "stook_version", STOOK_VERSION);
}

void json_end(struct json *j)
{
        json_object_end(j);
        fputc('\n', j->out);
}

void json_object(struct json *j, const char *key)
{
        bracket_open(j, key, '{');
}

void json_object_end(struct json *j)
{
        bracket_close(j, '}');
}

void json_array(struct json *j, const char *key)
{
        bracket_open(j, key, '[');
}

void json_array_end(struct json *j)
{
        bracket_close(j, ']');
}

void json_string(struct json *j, const char *key, const char *value)
{
        lead(j, key);
        quoted(j->out, value);
}

void json_count(struct json *j, const char *key, uint64_t value)
{
        lead(j, key);
        fprintf(j->out, "%llu", (unsigned long long)value);
}

void json_number(struct json *j, const char *key, double value)
{
        lead(j, key);
        if (isfinite(value))
                fprintf(j->out, "%.6g", value);
        else
                fputs("null", j->out);
}

void json_bool(struct json *j, const char *key, bool value)
{
        lead(j, key);
        fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
        lead(j, key);
        fputs("null", j->out);
}
