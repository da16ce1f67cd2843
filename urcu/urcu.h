/*
 * Purpose: what the flavours share.
 */
#ifndef STOOK_URCU_H
#define STOOK_URCU_H

/* fork is to be handled here: stook_urcu_handle_forks(). */
__attribute__((visibility("hidden"))) int stook_urcu_forks(void);

#endif
