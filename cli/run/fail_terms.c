/*
 * Purpose: see fail_terms.h. Terms are checked here, before the program starts: the library could
 * only refuse them, and go on without.
 */
#include "cli/run/fail_terms.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/files/elf_file.h"
#include "cli/files/find_program.h"
#include "cli/symbols/demangle.h"
#include "cli/text/plain_text.h"

#define CACHES_MOST    255              /* bytes of caches=, as in src/debug/fail.c */
#define FUNCTIONS_MOST 16               /* of stack=, likewise: overloads, and clones */
#define DEMANGLED_MOST 1024

static const struct {
        const char *word;
        uint64_t least, most;           /* both 0: not a number */
} known[] = {
        { "probability=", 0, 100 }, { "interval=", 1, UINT32_MAX }, { "times=", 0, INT64_MAX },
        { "space=", 0, INT64_MAX }, { "tell=", 0, 1 }, { "caches=", 0, 0 }, { "stack=", 0, 0 },
};

/* The term at @term, of @n bytes. NULL: unknown, or a value that it does not take. */
static const char *word_of(const char *term, size_t n)
{
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
                size_t word = strlen(known[i].word);
                char *end;
                uint64_t value;

                if (n <= word || strncmp(term, known[i].word, word))
                        continue;
                if (!known[i].most)
                        return n - word <= CACHES_MOST ? known[i].word : NULL;
                errno = 0;
                value = strtoull(term + word, &end, 10);
                return !errno && term[word] >= '0' && term[word] <= '9' && end == term + n &&
                       value >= known[i].least && value <= known[i].most ? known[i].word : NULL;
        }
        return NULL;
}

/* Functions of the program, in its file. */
struct functions {
        const char *wanted;
        struct { uint64_t from, to; } at[FUNCTIONS_MOST];
        size_t count, all;
};

/*
 * Is the function @name the one that is wanted? Of C++ and Rust its name may be given as people
 * write it, also without what is in parentheses, and without its scopes: a::b::make(int) is make.
 */
static bool is_wanted(const char *wanted, const char *name)
{
        char plain[DEMANGLED_MOST], *end;

        if (!strcmp(wanted, name))
                return true;
        if (!demangle(name, plain, sizeof plain))
                return false;
        if (!strcmp(wanted, plain))
                return true;
        end = plain + strcspn(plain, "(");
        *end = '\0';
        if (end - plain < (ptrdiff_t)strlen(wanted))
                return false;
        end -= strlen(wanted);
        return !strcmp(end, wanted) &&
               (end == plain || (end - plain >= 2 && end[-1] == ':' && end[-2] == ':'));
}

static void add_function(const char *name, uint64_t from, uint64_t to, void *data)
{
        struct functions *f = data;

        if (!is_wanted(f->wanted, name))
                return;
        for (size_t i = 0; i < f->count; i++)
                if (f->at[i].from == from)
                        return;
        if (f->all++ < FUNCTIONS_MOST) {
                f->at[f->count].from = from;
                f->at[f->count++].to = to;
        }
}

/* Where a function of the program is, in its file. False: nowhere, which was said. */
static bool find_function(const char *program, struct functions *f)
{
        char path[PATH_MAX];
        struct elf_file file;

        if (find_program(program, path) || elf_file_open(path, &file)) {
                say(stderr, "stook run: --fail stack=%s: %s cannot be read\n", f->wanted, program);
                return false;
        }
        if (file.native)
                elf_file_each_function(&file, add_function, f);
        if (!f->count)
                say(stderr, "stook run: --fail stack=%s: %s has no such function, or is "
                    "stripped\n", f->wanted, path);
        else if (f->all > FUNCTIONS_MOST)
                say(stderr, "stook run: --fail stack=%s: %s has %zu functions of that name; give "
                    "more of it\n", f->wanted, path, f->all);
        elf_file_close(&file);
        return f->count && f->all <= FUNCTIONS_MOST;
}

static void refuse(const char *term, size_t n)
{
        say(stderr, "stook run: --fail takes probability=0..100, interval=N, times=N, "
            "space=BYTES,\n  caches=NAME[:NAME...], stack=FUNCTION and tell=1, with commas, "
            "not '%.*s'\n", (int)n, term);
}

/* Adds a term to @out. False: refused, or no memory. */
static bool add(FILE *out, const char *term, size_t n, const char *program)
{
        const char *word = word_of(term, n);
        struct functions f = { 0 };
        char name[CACHES_MOST + 1];

        if (!word) {
                refuse(term, n);
                return false;
        }
        if (strcmp(word, "stack="))
                return fprintf(out, "%.*s", (int)n, term) > 0;
        n -= strlen(word);
        memcpy(name, term + strlen(word), n);
        name[n] = '\0';
        f.wanted = name;
        if (!find_function(program, &f))
                return false;
        fputs("stack=", out);
        for (size_t i = 0; i < f.count; i++)
                fprintf(out, "%s%" PRIx64 "-%" PRIx64, i ? ":" : "", f.at[i].from, f.at[i].to);
        return true;
}

char *fail_terms(const char *terms, const char *program)
{
        char *text = NULL;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);
        bool good = out;

        for (const char *at = terms; good;) {
                size_t n = strcspn(at, ",");

                good = add(out, at, n, program);
                at += n;
                if (!*at++)
                        break;
                good = good && fputc(',', out) != EOF;
        }
        if (out && fclose(out))
                good = false;
        if (good)
                return text;
        free(text);
        return NULL;
}
