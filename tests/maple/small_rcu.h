/*
 * Purpose: the smallest RCU there can be, for <stook/rcu.h>. It is made of plain atomics, so that
 * TSan sees which thread waits for which.
 */
#ifndef TESTS_MAPLE_SMALL_RCU_H
#define TESTS_MAPLE_SMALL_RCU_H

#include <stook/rcu.h>

/* A thread that reads. At most 16. */
void small_rcu_register(void);
void small_rcu_unregister(void);

extern const struct stook_rcu small_rcu;

#endif
