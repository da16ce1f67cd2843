/*
 * Purpose: a few allocations of every kind, checked, with no other call of libc. Tests that forbid
 * or refuse system calls run it. It returns the number of faults.
 */
#ifndef WORK_H
#define WORK_H

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORK_HELD 64

static inline unsigned work(uint64_t seed, unsigned steps)
{
        static const size_t magnitudes[] = { 16,   100,   100,    100,    1000,
                                             1000, 10000, 100000, 400000, 6000000 };
        unsigned char *held[WORK_HELD] = {0};
        size_t   sizes[WORK_HELD] = {0};
        unsigned faults = 0;

        for (unsigned step = 0; step < steps; step++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;

                unsigned i = (unsigned)(seed >> 40) % WORK_HELD, kind = (unsigned)(seed >> 50) % 8;
                size_t   size = 1 + (seed >> 20) % magnitudes[(seed >> 33) % 10];

                if (held[i] && (held[i][0] != i || held[i][sizes[i] - 1] != i))
                        faults++;
                if (held[i] && kind == 0) {
                        held[i] = realloc(held[i], size);
                } else {
                        free(held[i]);
                        held[i] = kind == 1   ? calloc(1, size)
                                  : kind == 2 ? aligned_alloc(256, size)
                                              : malloc(size);
                        if (kind == 1 && held[i] &&
                            (held[i][0] || held[i][size / 2] || held[i][size - 1]))
                                faults++;
                }
                if (!held[i]) {
                        faults++;
                        continue;
                }
                sizes[i] = size;
                memset(held[i], (int)i, size < 5000 ? size : 5000);
                held[i][size - 1] = (unsigned char)i;
        }
        for (unsigned i = 0; i < WORK_HELD; i++)
                free(held[i]);
        return faults;
}

#endif
