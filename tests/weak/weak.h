/*
 * Purpose: the library's own sources under C11's memory model. A program of this folder includes a
 * source file of src, and is compiled with -fsanitize=thread, but not linked with its runtime:
 * weak.c takes the calls that the compiler makes at each access. Its threads are coroutines of one
 * thread. It runs them again and again: each order of steps with so many preemptions, and each
 * choice of an older value that a load may see, so many times. (x86-64 shows no such value, nor
 * does a model beside the source follow the source.)
 *
 * The model: each atomic word has all values that it had in this run, in one order. A thread has a
 * view: for each word the oldest value that it may still see. A store that releases carries the
 * view, a load that acquires takes it, and so do fences. A read-modify-write sees the last value.
 * An access that is not atomic must come after the last write by what the views say; a write after
 * the last reads, too. Otherwise it is a race.
 * Not there: values that a load takes from a store that comes later in program order, spurious
 * failures of weak exchanges, and orders of stores to one word other than the order of the run.
 */
#ifndef STOOK_TESTS_WEAK_H
#define STOOK_TESTS_WEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEAK_THREADS 4

struct weak_program {
        const char *name;
        void   (*reset)(void);          /* before each run: all as at first */
        void   (*thread[WEAK_THREADS])(void);
        void   (*end)(void);            /* when all have ended, and are seen to; or NULL */
        unsigned preemptions;           /* in a run, at most */
        unsigned stale;                 /* loads of a run that see no last value, at most */
};

/* All runs; the first that fails is printed, and ends the process with 1. Return: how many. */
unsigned long weak_hold(const struct weak_program *program);
/* A run of a program with a mistake fails; if none does, the process ends with 1. */
void weak_break(const struct weak_program *program);

/* In a thread: this run fails. @what: why. */
void weak_fail(const char *what) __attribute__((noreturn));
#define WEAK_STRING_(x) #x
#define WEAK_STRING(x)  WEAK_STRING_(x)
#define weak_assert(holds) \
        ((holds) ? (void)0 : weak_fail(__FILE__ ":" WEAK_STRING(__LINE__) ": not so: " #holds))

/* The thread that runs: 0 to WEAK_THREADS - 1; none outside of runs: WEAK_THREADS. */
extern unsigned weak_me;

/* This thread sleeps until another one has stored something; or it looks at the last values. */
void weak_wait(void);
/* Each thread has a fence now: membarrier. */
void weak_membarrier(void);

#endif
