/*
 * Purpose: how long free memory stays with the process. It is the end of the way of memory through
 * the page layer (pages/span.h). Free spans whose content is of no use are purged by age, at once
 * where far more is free than is in use, and on request.
 * Place: slow calls of barn, slot, rcu, malloc and slab call the steps. Life sets the times.
 * policy/dirty.h decides, purge.c does the work.
 * Concurrency: any thread, any instruction, with no lock held.
 */
#ifndef STOOK_PURGE_H
#define STOOK_PURGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"

/* Purges what has been free longer than STOOK_DECAY_MS, a bounded step. For slow calls. */
void stook_pages_step(void);
/*
 * Purges the largest free spans while far more is free than is worth keeping, on every node. For
 * callers that gave spans while waits were forbidden.
 */
void stook_pages_purge_excess(void);
/* Purges what debt asks for (policy/dirty.h), a bounded step. For slow calls that took much. */
void stook_pages_pay(void);
/* All steps that are due, for callers with time. Return: spans that were tried. */
unsigned stook_pages_age(void);
/*
 * Purges what lies free, whatever its age and although it refaulted before: EXCESS_SPANS spans of
 * each node at most. For when a process has less to do from here on. Return: bytes.
 */
size_t stook_pages_purge_rest(void);
/* Half of what the last stook_pages_purge_rest purged was taken again soon. */
bool stook_pages_rest_refaulted(void);
/* Purges free spans until at most @keep_bytes of free memory may be resident. Return: bytes. */
size_t stook_pages_purge(size_t keep_bytes);

/* The clock of all ageing, for the layers above: how long unused memory stays, in milliseconds. */
uint32_t stook_pages_decay_ms(void);
void stook_pages_set_decay_ms(uint32_t ms);

#endif
