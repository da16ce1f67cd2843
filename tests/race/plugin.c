/*
 * Purpose: the plug-in of slot_plugin.c: a library that inlines the hot path and is unloaded again.
 */
#include <stook/inline.h>

__attribute__((visibility("default"))) int plugin_work(struct stook_cache *cache,
                                                       struct stook_cache *bare);

/*
 * The last call of the one kind is a hit, of the other a miss: neither may leave anything of this
 * library behind.
 */
int plugin_work(struct stook_cache *cache, struct stook_cache *bare)
{
        void *kept[100], *o;

        for (int round = 0; round < 200; round++) {
                for (int i = 0; i < 100; i++)
                        if (!(kept[i] = stook_cache_alloc_inline(cache)))
                                return 1;
                for (int i = 0; i < 100; i++)
                        stook_cache_free_inline(cache, kept[i]);
        }
        if (bare) {
                if (!(o = stook_cache_alloc_inline(bare)))
                        return 1;
                stook_cache_free_inline(bare, o);
        }
        return 0;
}
