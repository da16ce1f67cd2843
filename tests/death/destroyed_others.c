// goes on: stook: pointer to no live object: pointer 0x* (cache victim): a cache that was destroyed before
// stook: pointer to no live object: pointer 0x* (cache victim): a cache that was destroyed before
// stook: pointer to no live object: pointer 0x* (cache victim): a cache that was destroyed before
// stook: pointer to no live object: pointer 0x* (cache victim): a cache that was destroyed before
// stook: pointer to no live object: pointer 0x* (cache victim): a cache that was destroyed before
// stook: pointer to no live object: pointer 0x* (cache victim): a cache that was destroyed before
// stook: pointer to no live object: pointer 0x* (cache bare): a cache that was destroyed before
#include <errno.h>
#include <stdlib.h>
#include <stook/sheaf.h>

static void expect(int right)
{
        if (!right)
                exit(1);
}

void misuse(void);
void misuse(void)
{
        struct stook_tuning tuning = { sizeof(tuning), 8, 0, 0 };
        struct stook_cache_args bare = { .args_size = sizeof(bare),
                                         .flags = STOOK_CACHE_NO_SHEAVES };
        struct stook_cache *cache = stook_cache_create("victim", 64, NULL);
        void *objects[2];

        stook_cache_free(cache, stook_cache_alloc(cache));
        stook_cache_destroy(cache);
        errno = 0;
        expect(!stook_cache_alloc_nolock(cache) && errno == ENOMEM);
        expect(stook_cache_alloc_bulk(cache, 0, 2, objects) == -ENOMEM);
        expect(!stook_sheaf_prefill(cache, 0, 1));
        expect(stook_cache_shrink(cache) == -EINVAL);
        expect(stook_cache_tune(cache, &tuning) == -EINVAL);
        expect(stook_cache_reserve(cache, 1) == -EINVAL);
        cache = stook_cache_create("bare", 64, &bare);
        stook_cache_destroy(cache);
        expect(stook_cache_tune(cache, &tuning) == -EINVAL);
}
