/*
 * A heap for gdb.py to look at: objects in use, in a sheaf, in a slab, and a large one. It stops at
 * `looked_at`.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stook/malloc.h>
#include <stook/stook.h>

#define MANY 100000

static void *many[MANY];
static int outside;

__attribute__((noinline)) void looked_at(char *used, char *in_sheaf, char *in_slab, char *large,
                                         int *foreign);

void looked_at(char *used, char *in_sheaf, char *in_slab, char *large, int *foreign)
{
        __asm__ volatile("" : : "r"(used), "r"(in_sheaf), "r"(in_slab), "r"(large), "r"(foreign)
                         : "memory");
}

int main(void)
{
        struct stook_cache *cache = stook_cache_create("parrot", 72, NULL);
        char *used, *large = stook_malloc(1 << 20);

        if (!cache || !large)
                return 1;
        /* So many that the neighbour of the one in use comes back to its slab. */
        for (size_t i = 0; i < MANY; i++)
                if (!(many[i] = stook_cache_alloc(cache)))
                        return 1;
        used = many[MANY / 2];
        for (size_t i = 0; i < MANY; i++)
                if (i != MANY / 2)
                        stook_cache_free(cache, many[i]);
        looked_at(used, many[MANY - 1], many[MANY / 2 + 1], large, &outside);
        return 0;
}
