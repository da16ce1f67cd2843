/* stook-typed(3): a cache of one type. */
#include <errno.h>
#include <stdio.h>
#include <stook/typed.h>

struct route { unsigned address, metric; };

STOOK_DEFINE_CACHE(routes, struct route);       /* the type */
static union routes routes;                     /* a cache */

static int use_routes(void)
{
        if (!stook_typed_create(&routes, "route", NULL))
                return -errno;
        struct route *route = stook_new(&routes);
        if (route)
                *route = (struct route){ .address = 0x0a000001, .metric = 1 };
        stook_delete(&routes, route);           /* NULL is fine, a pointer to another type is not */
        return stook_cache_destroy(routes.cache);
}

int main(void)
{
        int error = use_routes();

        printf("routes: %d\n", error);
        return error != 0;
}
