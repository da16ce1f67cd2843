/*
 * Purpose: the object that each program of misuse.c misuses: its sizes, what lies beside it, and
 * how the program sees whether the misuse had an effect.
 */
#ifndef STOOK_MISUSE_VICTIM_H
#define STOOK_MISUSE_VICTIM_H

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define VICTIM  'v'             /* what lies in the object that is misused */
#define OTHER   'o'             /* in all others */
#define TRIES   64              /* allocations in which an address may come back */

enum { SIZED = 1,               /* runs with each size */
       FREED = 2,               /* the victim is free before the misuse */
       KEPT = 4,                /* nobody frees it after the misuse */
       LEFT = 8,                /* KEPT, and no allocation follows: the exit alone can tell */
       ONE_THREAD = 16 };

struct misuse {
        const char *family, *name;
        void (*make)(void);
        int how;
};

static const struct {
        const char *name;
        size_t bytes;
        int many;               /* so many are a load of the allocator's caches */
} sizes[] = { { "small", 40, 200 }, { "medium", 3000, 60 }, { "large", 300000, 8 } };

static volatile size_t n;       /* bytes of the victim */
static volatile int many;
static char *volatile p, *volatile before, *volatile behind;
static volatile bool stopped;
static volatile long sum;

/* A pointer of which the compiler knows nothing. */
static char *hidden(const void *object)
{
        char *at = (char *)object;

        __asm__ volatile ("" : "+r" (at) : : "memory");
        return at;
}

#ifdef __cplusplus
#define ALLOC(bytes)    hidden(new char[bytes])
#define FREE(object)    (delete[] hidden(object))
#else
#define ALLOC(bytes)    hidden(malloc(bytes))
#define FREE(object)    free(hidden(object))
#endif

static char *filled(size_t bytes, int with)
{
        char *object = ALLOC(bytes);

        memset(object, with, bytes);
        return object;
}

static void store(char *at, size_t bytes, int with)
{
        for (size_t i = 0; i < bytes; i++)
                ((volatile char *)at)[i] = (char)with;
}

static void load(const char *at, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                sum += ((const volatile char *)at)[i];
}

/* The life of a program goes on. */
static void churn(void)
{
        char *objects[200];

        for (int i = 0; i < many; i++)
                objects[i] = filled(n, OTHER);
        for (int i = 0; i < many; i++)
                FREE(objects[i]);
}

/* An object at the address of the freed victim, or NULL. */
static char *same_address(void)
{
        char *objects[TRIES], *found = NULL;
        int i = 0;

        while (i < TRIES && !found) {
                objects[i] = filled(n, OTHER);
                if (objects[i] == p)
                        found = objects[i];
                i++;
        }
        for (int k = 0; k < i; k++)
                if (objects[k] != found)
                        FREE(objects[k]);
        return found;
}

static bool has(const char *bytes, size_t count, int what)
{
        for (size_t i = 0; i + 8 <= count; i++)
                if (bytes[i] == what && !memcmp(bytes + i, bytes + i + 1, 7))
                        return true;
        return false;
}

#endif
