/*
 * Purpose: CPUs that the machine does not have. A thread takes its slot from the kernel's area for
 * restartable sequences. This thread is shown another area, in which the replay writes the CPU.
 * Place: the replay helper alone. It reaches into the library that it is linked with.
 * Invariants:
 *  I1 the process has one thread, and no handler of it calls the library. The kernel does not know
 *     the area, so it would neither abort a section there nor change the CPU. Alone, a section
 *     needs neither.
 */
#ifndef STOOK_MADE_UP_CPU_H
#define STOOK_MADE_UP_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* False: the library uses no restartable sequences here. The thread has one slot then. */
bool made_up_cpus_start(void);
/* This thread is on @cpu from here on. */
void made_up_cpu_set(uint32_t cpu);

#endif
