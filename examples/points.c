#include <stdio.h>
#include <stook/stook.h>

struct point { double x, y; };

int main(void)
{
        struct stook_cache *points = stook_cache_create("point", sizeof(struct point), NULL);
        struct stook_cache_stats stats = { .stats_size = sizeof stats };
        void *many[64];

        if (!points || stook_cache_alloc_bulk(points, STOOK_ZERO, 64, many) != 0)
                return 1;                               /* all 64, or none */
        struct point *one = stook_cache_alloc(points);  /* from this CPU's sheaf, most times */
        if (stook_cache_stats(points, &stats) == 0)
                printf("%s: %llu live, %llu bytes each\n", stats.name,
                       (unsigned long long)stats.objects_live, (unsigned long long)stats.slot_size);
        stook_cache_free(points, one);                  /* NULL is fine */
        stook_cache_free_bulk(points, 64, many);
        return stook_cache_destroy(points) ? 1 : 0;     /* objects left are reported */
}
