// aborts: stook: double free: pointer 0x* (cache victim, slab 0x* offset 0): it waits for readers
#include "harden.h"

/* Readers never leave. */
static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        (void)head;
        (void)done;
}

static void barrier(void)
{
}

static const struct stook_rcu never = { .ops_size = sizeof(never), .call = call,
                                        .barrier = barrier };

void misuse(void);
void misuse(void)
{
        struct stook_cache *cache = victim();
        void *object = stook_cache_alloc(cache);

        if (!stook_rcu_use(&never) && !stook_cache_free_rcu(cache, object))
                stook_cache_free(cache, object);
}
