/*
 * Purpose: see fake_slab.c.
 */
#ifndef FAKE_SLAB_H
#define FAKE_SLAB_H

#include "slab/slab.h"

/* All objects are inside; none was given back twice. */
void fake_slab_start(size_t n);
/* Objects that are out. Quiescent. */
size_t fake_slab_out(void);
/* A word of an object that only the fake touches. */
uint32_t *fake_slab_stamp(void *object);
extern size_t fake_slab_faults;         /* atomic: objects given back twice */
extern long   fake_slab_fail_after;     /* fills stop after so many objects; -1: never */

#endif
