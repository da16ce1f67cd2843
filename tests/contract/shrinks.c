/*
 * What this proves: a process that frees what it had, in any order, keeps little of it in sheaves
 * and barns, though it makes no further call. Objects of many sizes come and go, so that sheaves
 * grow; without the flush at each half each object there would pin a slab. The process stays on one
 * CPU: one that moves leaves sheaves on each, and how many is up to the scheduler. The coarse clock
 * stands still: as time passes, a cache that is not asked loses what it has grown by, and its next
 * sheaves are no small ones then (barn/barn.c).
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <stook/malloc.h>

#include "pages/span.h"
#include "policy/constants.h"

#define OBJECTS  400000
#define ROUNDS   4
/*
 * Of some 90 MiB. The last flush may come as early as two sheaves of each class before the end: 26
 * classes, STOOK_BARN_SHORT objects a sheaf, and each object pins a slab of 16 KiB at worst. As
 * many as half of them lie in slabs that others pin, too.
 */
#define LEFT     ((size_t)26 * 2 * STOOK_BARN_SHORT * 16384 / 2 + ((size_t)1 << 20))

#define expect(cond) do { if (!(cond)) failed(#cond, __LINE__); } while (0)

static void *objects[OBJECTS];

/* In place of libc's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
        if (clock != CLOCK_MONOTONIC_COARSE)
                return (int)syscall(SYS_clock_gettime, clock, now);
        now->tv_sec = 1000;
        now->tv_nsec = 0;
        return 0;
}

static void failed(const char *what, int line)
{
        printf("shrinks.c:%d: not so: %s; %zu KiB are taken\n", line, what,
               stook_pages_taken(0) >> 10);
        exit(1);
}

static size_t draw(size_t below)
{
        static uint64_t state = 1;

        state = state * 6364136223846793005 + 1442695040888963407;
        return (size_t)((state >> 33) % below);
}

static void mix(void)
{
        for (size_t i = OBJECTS; i > 1; i--) {
                size_t other = draw(i);
                void *object = objects[i - 1];

                objects[i - 1] = objects[other];
                objects[other] = object;
        }
}

int main(void)
{
        cpu_set_t one;

        CPU_ZERO(&one);
        CPU_SET((unsigned)sched_getcpu(), &one);
        expect(!sched_setaffinity(0, sizeof(one), &one));
        for (unsigned round = 0; round < ROUNDS; round++) {
                for (size_t i = 0; i < OBJECTS; i++) {
                        objects[i] = stook_malloc(16 + draw(24) * 16 + draw(2) * draw(4) * 100);
                        expect(objects[i]);
                }
                expect(stook_pages_taken(0) > 5 * LEFT);
                mix();
                for (size_t i = 0; i < OBJECTS; i++)
                        stook_free(objects[i]);
                expect(stook_pages_taken(0) < LEFT);
        }
        printf("%zu KiB are taken\n", stook_pages_taken(0) >> 10);
        return 0;
}
