#include <stdio.h>
#include <stook/stook.h>

struct point { double x, y; };

int main(void)
{
        struct stook_cache *points = stook_cache_create("point", sizeof(struct point), NULL);
        struct point *p = points ? stook_cache_zalloc(points) : NULL;   /* mostly without a lock */

        if (!p)
                return 1;
        printf("a point at (%g, %g)\n", p->x, p->y);
        stook_cache_free(points, p);
        return stook_cache_destroy(points) ? 1 : 0;     /* objects left are reported */
}
