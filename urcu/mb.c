/*
 * Purpose: liburcu-mb: readers with full barriers, for systems without membarrier.
 */
#define URCU_API_MAP
#include <urcu/urcu-mb.h>

#define TABLE stook_urcu_mb
#define MAY_WAIT (rcu_read_ongoing() ? 0 : 2)
#define BEFORE_FORK() ((void)0)
#define AFTER_FORK_PARENT() ((void)0)
#define AFTER_FORK_CHILD() ((void)0)
#include "table.h"
