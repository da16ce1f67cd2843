/*
 * Purpose: liburcu-qsbr: readers cost nothing, and tell when they do not read.
 */
#define URCU_API_MAP
#include <urcu/urcu-qsbr.h>

#define TABLE stook_urcu_qsbr
/* Every thread that is online is a reader. The barrier itself takes its thread offline. */
#define MAY_WAIT 1
#define BEFORE_FORK() ((void)0)
#define AFTER_FORK_PARENT() ((void)0)
#define AFTER_FORK_CHILD() ((void)0)
#include "table.h"
