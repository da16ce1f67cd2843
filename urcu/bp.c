/*
 * Purpose: liburcu-bp: threads need no registration.
 */
#define URCU_API_MAP
#include <urcu/urcu-bp.h>

#define TABLE stook_urcu_bp
#define MAY_WAIT (rcu_read_ongoing() ? 0 : 2)
#define BEFORE_FORK() urcu_bp_before_fork()
#define AFTER_FORK_PARENT() urcu_bp_after_fork_parent()
#define AFTER_FORK_CHILD() urcu_bp_after_fork_child()
#include "table.h"
