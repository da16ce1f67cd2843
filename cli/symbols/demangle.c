/*
 * Purpose: see demangle.h. C++ is left to __cxa_demangle of libstdc++, which is loaded when the
 * first such name comes: the command needs no C++ otherwise. Rust's older names are C++'s, with a
 * hash at the end that is taken off. Its newer ones ("v0", RFC 2603) are read here: of them the
 * path is told, with the types that a generic function stands for; lifetimes, constants and
 * disambiguators are not.
 */
#include "cli/symbols/demangle.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- C++ ---- */

static char *(*cxa_demangle)(const char *name, char *out, size_t *size, int *status);

static void load(void)
{
        static bool tried;
        void *library = tried ? NULL : dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);

        tried = true;
        if (library)
                *(void **)&cxa_demangle = dlsym(library, "__cxa_demangle");
}

/* "::h" and 16 digits. */
static void cut_hash(char *name)
{
        size_t n = strlen(name);

        if (n > 19 && !strncmp(name + n - 19, "::h", 3) &&
            strspn(name + n - 16, "0123456789abcdef") == 16)
                name[n - 19] = '\0';
}

/* What older names of Rust have in place of letters that C++'s may not have. */
static void replace_escapes(char *name)
{
        static const char *const escapes[][2] = {
                { "$LT$", "<" }, { "$GT$", ">" }, { "$LP$", "(" }, { "$RP$", ")" },
                { "$RF$", "&" }, { "$BP$", "*" }, { "$C$", "," }, { "$u20$", " " },
                { "$u27$", "'" }, { "$u5b$", "[" }, { "$u5d$", "]" }, { "$u7b$", "{" },
                { "$u7d$", "}" }, { "$u3b$", ";" }, { "$u2b$", "+" }, { "..", "::" },
        };
        char *to = name;

        while (*name) {
                size_t i = 0, count = sizeof escapes / sizeof escapes[0];

                while (i < count && strncmp(name, escapes[i][0], strlen(escapes[i][0])))
                        i++;
                if (i == count) {
                        *to++ = *name++;
                        continue;
                }
                name += strlen(escapes[i][0]);
                for (const char *c = escapes[i][1]; *c; c++)
                        *to++ = *c;
        }
        *to = '\0';
}

static bool demangle_cxx(const char *name, char *out, size_t size)
{
        int status = -1;
        char *text;

        load();
        text = cxa_demangle ? cxa_demangle(name, NULL, NULL, &status) : NULL;
        if (text && !status) {
                size_t before = strlen(text);

                cut_hash(text);
                if (strlen(text) != before) {
                        replace_escapes(text);
                        /* An identifier begins with no "<": "_" stands before it. */
                        memmove(text, text + !strncmp(text, "_<", 2), strlen(text) + 1 -
                                !strncmp(text, "_<", 2));
                }
                snprintf(out, size, "%s", text);
        }
        free(text);
        return text && !status;
}

/* ---- Rust ---- */

#define DEPTH_MOST 100
#define STEPS_MOST 10000                /* back references could make a name endless */

struct rust {
        const char *start, *at;         /* start: behind "_R", where back references begin */
        char       *out;
        size_t      size, length;
        unsigned    depth, steps;
        bool        failed, quiet;      /* quiet: nothing is told */
};

static void put(struct rust *r, const char *text, size_t n)
{
        for (size_t i = 0; i < n && !r->quiet; i++)
                if (r->length + 1 < r->size)
                        r->out[r->length++] = text[i];
}

static void put_text(struct rust *r, const char *text)
{
        put(r, text, strlen(text));
}

static bool take(struct rust *r, char letter)
{
        if (r->failed || *r->at != letter)
                return false;
        r->at++;
        return true;
}

static int digit_of(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10
             : c >= 'A' && c <= 'Z' ? c - 'A' + 36 : -1;
}

/* Digits of base 62, then "_": "_" is 0, "0_" is 1. */
static uint64_t number62(struct rust *r)
{
        uint64_t n = 0;

        if (take(r, '_'))
                return 0;
        while (!r->failed && *r->at != '_') {
                int digit = digit_of(*r->at++);

                if (digit < 0 || n > UINT64_MAX / 128)
                        r->failed = true;
                n = n * 62 + (uint64_t)digit;
        }
        take(r, '_');
        return n + 1;
}

static void skip_disambiguator(struct rust *r)
{
        if (take(r, 's'))
                number62(r);
}

/* An identifier, told if it is not empty. Those with letters beyond ASCII stay encoded. */
static bool identifier(struct rust *r, const char *before)
{
        size_t n = 0;

        take(r, 'u');
        if (*r->at < '0' || *r->at > '9')
                r->failed = true;
        while (!r->failed && *r->at >= '0' && *r->at <= '9' && n < 100000)
                n = n * 10 + (size_t)(*r->at++ - '0');
        take(r, '_');
        if (r->failed || strnlen(r->at, n) < n) {
                r->failed = true;
                return false;
        }
        if (n)
                put_text(r, before);
        put(r, r->at, n);
        r->at += n;
        return n;
}

static void path(struct rust *r);
static void type(struct rust *r);

/* What was read before is read again. */
static void again(struct rust *r, void (*what)(struct rust *r))
{
        const char *from = r->at - 1, *to;
        uint64_t n = number62(r);
        const char *behind = r->at;

        if (r->failed || n >= (uint64_t)(from - r->start)) {
                r->failed = true;
                return;
        }
        to = r->start + n;
        if (r->quiet)
                return;
        r->at = to;
        what(r);
        r->at = behind;
}

static void list(struct rust *r, void (*what)(struct rust *r))
{
        for (bool first = true; !r->failed && !take(r, 'E'); first = false) {
                if (!first)
                        put_text(r, ", ");
                what(r);
        }
}

/* A constant: its type and its value, of which "_" is told. */
static void constant(struct rust *r)
{
        bool quiet = r->quiet;

        if (take(r, 'B')) {
                number62(r);
                put_text(r, "_");
                return;
        }
        r->quiet = true;
        if (!take(r, 'p')) {
                type(r);
                while (!r->failed && *r->at && *r->at != '_')
                        r->at++;
                r->failed |= !take(r, '_');
        }
        r->quiet = quiet;
        put_text(r, "_");
}

static void argument(struct rust *r)
{
        if (take(r, 'L')) {
                number62(r);
                put_text(r, "'_");
        } else if (take(r, 'K')) {
                constant(r);
        } else {
                type(r);
        }
}

static void nested(struct rust *r)
{
        char space = *r->at ? *r->at++ : 0;

        path(r);
        skip_disambiguator(r);
        if (space == 'C' || space == 'S') {
                put_text(r, space == 'C' ? "::{closure" : "::{shim");
                identifier(r, ":");
                put_text(r, "}");
        } else {
                identifier(r, "::");
        }
}

static void path(struct rust *r)
{
        bool quiet = r->quiet;
        char letter = *r->at;

        if (r->failed || ++r->depth > DEPTH_MOST || ++r->steps > STEPS_MOST || !letter) {
                r->failed = true;
                return;
        }
        r->at++;
        switch (letter) {
        case 'C':
                skip_disambiguator(r);
                identifier(r, "");
                break;
        case 'M':
        case 'X':
                r->quiet = true;        /* where the impl stands */
                skip_disambiguator(r);
                path(r);
                r->quiet = quiet;
                /* fall through */
        case 'Y':
                put_text(r, "<");
                type(r);
                if (letter != 'M') {
                        put_text(r, " as ");
                        path(r);
                }
                put_text(r, ">");
                break;
        case 'N':
                nested(r);
                break;
        case 'I':
                path(r);
                put_text(r, "<");
                list(r, argument);
                put_text(r, ">");
                break;
        case 'B':
                again(r, path);
                break;
        default:
                r->failed = true;
        }
        r->depth--;
}

static const char *basic(char letter)
{
        static const char *const names[26] = {
                ['a' - 'a'] = "i8", ['b' - 'a'] = "bool", ['c' - 'a'] = "char",
                ['d' - 'a'] = "f64", ['e' - 'a'] = "str", ['f' - 'a'] = "f32",
                ['h' - 'a'] = "u8", ['i' - 'a'] = "isize", ['j' - 'a'] = "usize",
                ['l' - 'a'] = "i32", ['m' - 'a'] = "u32", ['n' - 'a'] = "i128",
                ['o' - 'a'] = "u128", ['p' - 'a'] = "_", ['s' - 'a'] = "i16",
                ['t' - 'a'] = "u16", ['u' - 'a'] = "()", ['v' - 'a'] = "...",
                ['x' - 'a'] = "i64", ['y' - 'a'] = "u64", ['z' - 'a'] = "!",
        };

        return letter >= 'a' && letter <= 'z' ? names[letter - 'a'] : NULL;
}

static void function_type(struct rust *r)
{
        bool quiet = r->quiet;

        if (take(r, 'G'))
                number62(r);
        if (take(r, 'U'))
                put_text(r, "unsafe ");
        if (take(r, 'K')) {
                put_text(r, "extern ");
                if (!take(r, 'C')) {
                        r->quiet = true;
                        identifier(r, "");
                        r->quiet = quiet;
                }
        }
        put_text(r, "fn(");
        list(r, type);
        put_text(r, ")");
        if (take(r, 'u'))
                return;
        put_text(r, " -> ");
        type(r);
}

/* "Trait + Trait", each with what its types are; then a lifetime. */
static void bounds(struct rust *r)
{
        put_text(r, "dyn ");
        if (take(r, 'G'))
                number62(r);
        for (bool first = true; !r->failed && !take(r, 'E'); first = false) {
                if (!first)
                        put_text(r, " + ");
                path(r);
                while (take(r, 'p')) {
                        identifier(r, " ");
                        put_text(r, " = ");
                        type(r);
                }
        }
        if (take(r, 'L'))
                number62(r);
}

static void type(struct rust *r)
{
        char letter = *r->at;

        if (r->failed || ++r->depth > DEPTH_MOST || ++r->steps > STEPS_MOST || !letter) {
                r->failed = true;
                return;
        }
        r->at++;
        if (basic(letter)) {
                put_text(r, basic(letter));
        } else if (letter == 'R' || letter == 'Q') {
                if (take(r, 'L'))
                        number62(r);
                put_text(r, letter == 'R' ? "&" : "&mut ");
                type(r);
        } else if (letter == 'P' || letter == 'O') {
                put_text(r, letter == 'P' ? "*const " : "*mut ");
                type(r);
        } else if (letter == 'A' || letter == 'S') {
                put_text(r, "[");
                type(r);
                if (letter == 'A') {
                        put_text(r, "; ");
                        constant(r);
                }
                put_text(r, "]");
        } else if (letter == 'T') {
                put_text(r, "(");
                list(r, type);
                put_text(r, ")");
        } else if (letter == 'F') {
                function_type(r);
        } else if (letter == 'D') {
                bounds(r);
        } else if (letter == 'B') {
                again(r, type);
        } else {
                r->at--;
                path(r);
        }
        r->depth--;
}

static bool demangle_rust(const char *name, char *out, size_t size)
{
        struct rust r = { .start = name, .at = name, .size = size };

        r.out = malloc(size);
        if (!r.out || !size) {
                free(r.out);
                return false;
        }
        path(&r);
        r.out[r.length] = '\0';
        if (!r.failed)
                memcpy(out, r.out, r.length + 1);
        free(r.out);
        return !r.failed;
}

bool demangle(const char *name, char *out, size_t size)
{
        if (!strncmp(name, "_Z", 2))
                return demangle_cxx(name, out, size);
        return !strncmp(name, "_R", 2) && demangle_rust(name + 2, out, size);
}
