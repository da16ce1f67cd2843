// aborts: stook: wrong cache: pointer 0x* (cache other, slab 0x* offset 72): it belongs to cache victim
//   the object has 24 bytes
#include <stook/debug.h>

#define FZPQ (STOOK_DEBUG_F | STOOK_DEBUG_Z | STOOK_DEBUG_P | STOOK_DEBUG_Q)

static struct stook_cache *victim(uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags };

        return stook_cache_create("victim", 24, &args);
}

void misuse(void);
void misuse(void)
{
        struct stook_cache *cache = victim(FZPQ), *other = stook_cache_create("other", 24, NULL);

        stook_cache_free(other, stook_cache_alloc(cache));
}
