/*
 * tests/race/epoch_calls.h - callbacks that are counted, a reader that stays
 *
 * Purpose: what the tests of the library's own RCU have in common: N callbacks that know how often
 * and in which order they were called, and a thread inside a section. Nothing is reset between
 * tests: each sets what it reads.
 * Place: tests/race/epoch*.c.
 */
#ifndef STOOK_TEST_EPOCH_CALLS_H
#define STOOK_TEST_EPOCH_CALLS_H

#include <stdbool.h>
#include <sys/types.h>
#include <stook/stook.h>

enum { N = 1000 };

/* Callbacks that were called; readers inside their section; 1: they may leave. Atomic. */
extern unsigned called, inside, leave;
/* What was called when the reader left its section. Atomic. */
extern unsigned seen_inside;

/* Hands over N callbacks. */
void call_all(void);
/* Whether each was called once, in order. */
bool all_are_called(void);
/* Until *word is @wanted, for a minute at most. */
void wait_for(const unsigned *word, unsigned wanted);
/* The thread that is to wait for readers; 0: none is known. Written before `leave`. */
extern pid_t waiter;
/* A thread that stays inside a section until `leave`, and until `waiter` waits for it. */
void *stay(void *unused);

#endif
