/*
 * Purpose: what the programs for guarded samples share (guarded.c, guarded_cpp.cc): how a bug does
 * no harm to an object that is not guarded, and main. They run on one processor, so what was freed
 * last is what the next allocation gets, but for a sample.
 */
#ifndef TESTS_GUARDED_H
#define TESTS_GUARDED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TWICE 208               /* bytes of what is freed twice; no other object has that size */
#define SOME  64

/*
 * @freed is an object of TWICE bytes again, and the second free its only one; but not where it was
 * guarded. Of what is allocated in between each may be a sample: the tenth one, too, in less than
 * one run of 10^13.
 */
static inline void reuse(const void *freed)
{
        void *got[10];
        int n = 0;

        while (n < 10 && (got[n] = malloc(TWICE)) != freed)
                n++;
        while (n--)
                free(got[n]);
}

/* From here on the next object of @bytes, if it is no sample, lies between two that stay. */
static inline void lie_between(size_t bytes)
{
        uintptr_t got[SOME];

        for (int i = 0; i < SOME; i++)
                got[i] = (uintptr_t)malloc(bytes);
        for (int i = 0; i < SOME; i++)
                for (int j = 0, below = 0, above = 0; j < SOME; j++) {
                        below |= got[j] == got[i] - bytes;
                        above |= got[j] == got[i] + bytes;
                        if (below && above) {
                                free((void *)got[i]);
                                return;
                        }
                }
        abort();
}

struct bug {
        const char *name;
        void (*run)(void);
        size_t beside;          /* it touches a neighbour of an object of so many bytes; 0: none */
};
#define BUG(name)           { #name, name, 0 }
#define BESIDE(name, bytes) { #name, name, bytes }

/* Of a table of bugs: PROGRAM NAME RUNS. */
#define BUGS(...) \
        int main(int argc, char **argv) \
        { \
                static const struct bug bugs[] = { __VA_ARGS__ }; \
                return argc == 3 ? run(bugs, sizeof(bugs) / sizeof(bugs[0]), argv) : 2; \
        }

static int run(const struct bug *bugs, size_t count, char **argv)
{
        for (size_t i = 0; i < count; i++)
                if (!strcmp(bugs[i].name, argv[1])) {
                        if (bugs[i].beside)
                                lie_between(bugs[i].beside);
                        for (int runs = atoi(argv[2]); runs > 0; runs--)
                                bugs[i].run();
                        return 0;
                }
        return 2;
}

#endif
