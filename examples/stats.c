/* stook-stats(3): a line for each cache. */
#include <inttypes.h>
#include <stdio.h>
#include <stook/stats.h>

static int show(struct stook_cache *cache, void *data)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

        (void)data;
        if (stook_cache_get_stats(cache, &stats) == 0)
                printf("%s: %" PRIu64 " live\n", stats.name, stats.objects_live);
        return 0;                               /* go on */
}

int main(void)
{
        struct stook_cache *cache = stook_cache_create("shown", 64, NULL);

        if (!cache || stook_cache_for_each(show, NULL))
                return 1;
        return stook_cache_destroy(cache) != 0;
}
