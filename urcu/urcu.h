/*
 * Purpose: what the flavours share.
 */
#ifndef STOOK_URCU_H
#define STOOK_URCU_H

/* fork is to be handled here: stook_urcu_handle_forks(). */
__attribute__((visibility("hidden"))) int stook_urcu_forks(void);

struct stook_urcu_worker;

/* In a constructor: the worker is found by its table from here on. */
__attribute__((visibility("hidden"))) void stook_urcu_list(struct stook_urcu_worker *worker);

#endif
