/*
 * Purpose: liburcu-memb: the usual flavour. Readers have no barriers; the thread that waits for
 * them uses membarrier.
 */
#define URCU_API_MAP
#include <urcu/urcu-memb.h>

#define TABLE stook_urcu_memb
#define MAY_WAIT (rcu_read_ongoing() ? 0 : 2)
#define BEFORE_FORK() ((void)0)
#define AFTER_FORK_PARENT() ((void)0)
#define AFTER_FORK_CHILD() ((void)0)
#include "table.h"
