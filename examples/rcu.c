/*
 * stook-rcu(3) and libstook-maple(3): readers without locks, by liburcu. It calls liburcu itself,
 * so it is linked with it, too: pkg-config --cflags --libs stook-maple stook-urcu liburcu-memb
 */
#include <errno.h>
#include <stdio.h>
#include <urcu/urcu-memb.h>
#include <stook/maple.h>
#include <stook/rcu.h>

struct route { int metric; };

static struct stook_cache *route_cache;
static struct route *shared;

static struct stook_maple routes = STOOK_MAPLE_INIT(STOOK_MAPLE_RCU);

/* In a registered thread. */
static int metric_of(uint64_t address)
{
        int metric = -1;

        urcu_memb_read_lock();
        struct route *route = stook_maple_load(&routes, address);
        if (route)
                metric = route->metric;
        urcu_memb_read_unlock();
        return metric;
}

static int forget(uint64_t address)
{
        void *route;
        int error = stook_maple_erase(&routes, address, &route);

        /* The caller owns its entries. */
        return error ? error : stook_cache_free_rcu(route_cache, route);
}

static void publish(struct stook_cache *cache, struct route *new)
{
        struct route *old;

        old = __atomic_exchange_n(&shared, new, __ATOMIC_ACQ_REL);
        if (stook_cache_free_rcu(cache, old) == -EAGAIN) {
                urcu_memb_synchronize_rcu();
                stook_cache_free(cache, old);
        }
}

int main(void)
{
        struct route *route;
        int metric, error;

        route_cache = stook_cache_create("route", sizeof(struct route), NULL);
        if (!route_cache || stook_rcu_use(&stook_urcu_memb))    /* before the first write */
                return 1;
        urcu_memb_register_thread();
        route = stook_cache_zalloc(route_cache);
        if (!route || stook_maple_store(&routes, 10, 19, route))
                return 1;
        metric = metric_of(12);
        error = forget(12);
        publish(route_cache, stook_cache_zalloc(route_cache));
        publish(route_cache, NULL);
        stook_maple_destroy(&routes);
        printf("metric %d, then %d\n", metric, metric_of(12));
        urcu_memb_unregister_thread();
        return error || metric || stook_cache_destroy(route_cache);
}
