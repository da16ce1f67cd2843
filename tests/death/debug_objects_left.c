// goes on: stook: objects left: pointer 0x* (cache victim, slab 0x* offset 72)
//   the object has 24 bytes
// stook: objects left (cache victim): 1 still allocated at destroy
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
        struct stook_cache *cache = victim(FZPQ);

        stook_cache_alloc(cache);
        stook_cache_destroy(cache);
}
