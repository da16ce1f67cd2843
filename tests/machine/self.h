/* Included first in each source that runs on the machine: its threads have records of their own. */
#ifndef STOOK_TESTS_MACHINE_SELF_H
#define STOOK_TESTS_MACHINE_SELF_H

extern struct stook_thread_v1 *machine_self;
#define stook_self machine_self

#endif
