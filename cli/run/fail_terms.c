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
#include "cli/text/plain_text.h"

#define CACHES_MOST 255                 /* bytes of caches=, as in src/debug/fail.c */

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

/* Where a function of the program is, in its file. False: nowhere, which was said. */
static bool find_function(const char *name, const char *program, uint64_t *from, uint64_t *to)
{
        char path[PATH_MAX];
        struct elf_file file;
        bool found;

        if (find_program(program, path) || elf_file_open(path, &file)) {
                say(stderr, "stook run: --fail stack=%s: %s cannot be read\n", name, program);
                return false;
        }
        found = file.native && elf_file_function(&file, name, from, to);
        if (!found)
                say(stderr, "stook run: --fail stack=%s: %s has no such function, or is "
                    "stripped\n", name, path);
        elf_file_close(&file);
        return found;
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
        char name[CACHES_MOST + 1];
        uint64_t from, to;

        if (!word) {
                refuse(term, n);
                return false;
        }
        if (strcmp(word, "stack="))
                return fprintf(out, "%.*s", (int)n, term) > 0;
        n -= strlen(word);
        memcpy(name, term + strlen(word), n);
        name[n] = '\0';
        return find_function(name, program, &from, &to) &&
               fprintf(out, "stack=%" PRIx64 "-%" PRIx64, from, to) > 0;
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
