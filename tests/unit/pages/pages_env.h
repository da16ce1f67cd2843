/*
 * Purpose: what the page layer's tests share: start, a check that prints each fault, a seed that is
 * printed.
 */
#ifndef PAGES_ENV_H
#define PAGES_ENV_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "inspect/validate.h"
#include "os/os.h"
#include "pages/purge.h"
#include "pages/span.h"

static inline void print_fault(const char *what, const struct stook_span *span)
{
        if (span)
                fprintf(stderr, "fault: %s: span %p start %#zx bytes %#zx kind %u state %u\n", what,
                        (const void *)span, (size_t)span->start, span->bytes, span->kind,
                        span->state);
        else
                fprintf(stderr, "fault: %s\n", what);
}

static inline void assert_sound(void)
{
        assert_int_equal(stook_pages_validate(print_fault), 0);
}

static inline uint64_t seed_of_run(void)
{
        const char *given = getenv("SEED");
        uint64_t seed = given ? strtoull(given, NULL, 0)
                              : (uint64_t)time(NULL) * 2654435761u ^ (uint64_t)getpid();

        printf("SEED=%llu\n", (unsigned long long)seed);
        return seed | 1;
}

static inline uint64_t next_random(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

/* Lines of /proc/self/maps. */
static inline unsigned vmas(void)
{
        FILE *f = fopen("/proc/self/maps", "r");
        unsigned n = 0;
        int c;

        assert_non_null(f);
        while ((c = fgetc(f)) != EOF)
                n += c == '\n';
        fclose(f);
        return n;
}

static inline size_t resident_bytes(void)
{
        FILE *f = fopen("/proc/self/statm", "r");
        unsigned long size, resident;

        assert_non_null(f);
        assert_int_equal(fscanf(f, "%lu %lu", &size, &resident), 2);
        fclose(f);
        return resident * stook_os_page_bytes();
}

#endif
