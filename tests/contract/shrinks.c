/*
 * What this proves: a process that frees what it had, in any order, keeps little of it in sheaves
 * and barns, though it makes no further call. Objects of many sizes come and go, so that sheaves
 * grow; without the flush at each half each object there would pin a slab. The process stays on one
 * CPU: one that moves leaves sheaves on each, and how many is up to the scheduler. The coarse clock
 * is the test's own: it stands still, or moves a little, or more, with each look. A cache that is
 * not asked loses what it has grown by as time passes.
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
#define ROUNDS   2
/*
 * Of some 90 MiB. The last flush may come as early as two sheaves of each class before the end: 26
 * classes, half again STOOK_BARN_SHORT objects a sheaf, and each object pins a slab of 16 KiB at
 * worst. As many as a third of them lie in slabs that others pin, too.
 */
#define LEFT     ((size_t)26 * 3 * STOOK_BARN_SHORT * 16384 * 2 / 3)

#define expect(cond) do { if (!(cond)) failed(#cond, __LINE__); } while (0)

static void *objects[OBJECTS];
static uint64_t now_us = 1000000000, step_us;

/* In place of libc's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
        if (clock != CLOCK_MONOTONIC_COARSE)
                return (int)syscall(SYS_clock_gettime, clock, now);
        now_us += step_us;
        now->tv_sec = (time_t)(now_us / 1000000);
        now->tv_nsec = (long)(now_us % 1000000 * 1000);
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

static void come_and_go(void)
{
        for (size_t i = 0; i < OBJECTS; i++) {
                objects[i] = stook_malloc(16 + draw(24) * 16 + draw(2) * draw(4) * 100);
                expect(objects[i]);
        }
        expect(stook_pages_taken(0) > 3 * LEFT);
        mix();
        for (size_t i = 0; i < OBJECTS; i++)
                stook_free(objects[i]);
        printf("%zu us a look: %zu KiB are taken\n", (size_t)step_us, stook_pages_taken(0) >> 10);
        expect(stook_pages_taken(0) < LEFT);
}

int main(void)
{
        static const unsigned steps_us[] = { 0, 50, 1000, 20000 };
        cpu_set_t one;

        CPU_ZERO(&one);
        CPU_SET((unsigned)sched_getcpu(), &one);
        expect(!sched_setaffinity(0, sizeof(one), &one));
        for (unsigned i = 0; i < sizeof(steps_us) / sizeof(*steps_us); i++) {
                step_us = steps_us[i];
                for (unsigned round = 0; round < ROUNDS; round++)
                        come_and_go();
        }
        return 0;
}
