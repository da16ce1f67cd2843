/*
 * Purpose: the environment variables, read once at start. A value that is not allowed is refused by
 * one line on stderr, and the default is used. (STOOK_SLOTS is read by slot, which chooses its
 * backend by it.)
 */
#ifndef STOOK_OPTIONS_H
#define STOOK_OPTIONS_H

#include <stdbool.h>

/* Before the layers start: hands each its options. */
void stook_options_read(void);
/* After the page layer has started: what barns may keep, by the memory there is. */
void stook_options_set_budget(void);
const char *stook_options_thp(void);
bool stook_options_maintenance(void);   /* STOOK_MAINTENANCE=1 */

/* The group of the process, if it is to have one (STOOK_GROUP_LIMIT); malloc is up. */
void stook_options_start_group(void);

#endif
