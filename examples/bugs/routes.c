/* The route that is in force is read without locks. A writer replaces it. */
#include <stdio.h>
#include <stdlib.h>
#include <urcu/urcu-memb.h>
#include <stook/stook.h>

struct route {
        unsigned metric, used;
        char     via[40];
};

static struct stook_cache *routes;
static struct route *current;

static void replace(unsigned metric)
{
        struct route *new = stook_cache_zalloc(routes), *old;

        if (!new)
                exit(1);
        new->metric = metric;
        snprintf(new->via, sizeof(new->via), "10.0.0.%u", metric);
        old = rcu_xchg_pointer(&current, new);
        stook_cache_free_rcu(routes, old);
}

static const struct route *look_up(void)
{
        struct route *route;

        urcu_memb_read_lock();
        route = rcu_dereference(current);
        urcu_memb_read_unlock();
        return route;
}

static void send_packet(void)
{
#ifdef FIXED
        urcu_memb_read_lock();
#endif
        struct route *route = (struct route *)look_up();

#ifndef FIXED
        /* It takes a while until the packet is on its way: routes change meanwhile. */
        replace(2);
        stook_cache_rcu_barrier(routes);
#endif
        uatomic_inc(&route->used);
#ifdef FIXED
        urcu_memb_read_unlock();
        replace(2);
#endif
}

int main(void)
{
        if (stook_rcu_use(&stook_urcu_memb))
                return 1;
        urcu_memb_register_thread();
        routes = stook_cache_create("route", sizeof(struct route), NULL);
        if (!routes)
                return 1;
        replace(1);
        send_packet();
        replace(3);
        stook_cache_free_rcu(routes, rcu_xchg_pointer(&current, NULL));
        urcu_memb_unregister_thread();
        return stook_cache_destroy(routes) ? 1 : 0;
}
