/*
 * Purpose: whether forks are handled here, or by the program itself. To do both is a deadlock.
 */
#include <stook/rcu.h>
#include "urcu.h"

static int off;                         /* atomic */

int stook_urcu_forks(void)
{
        return !__atomic_load_n(&off, __ATOMIC_RELAXED);
}

__attribute__((visibility("default"))) void stook_urcu_handle_forks(int on)
{
        __atomic_store_n(&off, !on, __ATOMIC_RELAXED);
}
