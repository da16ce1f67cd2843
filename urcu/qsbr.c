/*
 * Purpose: liburcu-qsbr: readers cost nothing and say when they are none.
 */
#define URCU_API_MAP
#include <urcu/urcu-qsbr.h>

#define TABLE stook_urcu_qsbr
#define MAY_WAIT 1                      /* every thread that is online is a reader; the barrier itself knows how to leave */
#define BEFORE_FORK() ((void)0)
#define AFTER_FORK_PARENT() ((void)0)
#define AFTER_FORK_CHILD() ((void)0)
#include "table.h"
