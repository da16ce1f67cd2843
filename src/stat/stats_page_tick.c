/*
 * Purpose: storage of the hook; see stats_page_tick.h.
 */
#include "stat/stats_page_tick.h"

void (*stook_stats_page_hook)(void);
