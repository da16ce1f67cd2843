// aborts: stook: wrong size: pointer 0x* (cache victim, slab 0x* offset 40): freed with 20 bytes, allocated with 24
//   the object has 24 bytes
#include <stook/debug.h>
#include <stook/malloc.h>

static struct stook_cache *victim(uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags };

        return stook_cache_create("victim", 24, &args);
}

void misuse(void);
void misuse(void)
{
        stook_free_sized(stook_cache_alloc(victim(STOOK_DEBUG_F)), 20);
}
