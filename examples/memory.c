/* stook-memory(3): memory that the program prepares, all of it before its first use. */
#include <stdio.h>
#include <stook/cache.h>
#include <sys/mman.h>

struct key { unsigned char bytes[64]; };

static int hide(void *start, size_t bytes, void *data)
{
        (void)data;
        return madvise(start, bytes, MADV_DONTDUMP);
}

static int use_keys(void)
{
        struct stook_cache *keys = stook_cache_create("key", sizeof(struct key),
                                                      STOOK_CACHE_ARGS(.memory_in = hide));
        struct key *key;

        if (!keys || stook_cache_reserve(keys, 1000))   /* all memory is got, and prepared, here */
                return -1;
        key = stook_cache_zalloc(keys);
        stook_cache_free(keys, key);
        return stook_cache_destroy(keys);
}

int main(void)
{
        int error = use_keys();

        printf("keys: %d\n", error);
        return error != 0;
}
