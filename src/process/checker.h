/*
 * Purpose: which memory checker this process runs under, Valgrind's memcheck or AddressSanitizer,
 * and what it is told of the library's memory.
 * Place: `debug` tells of the objects of caches, `malloc` of large objects, `life` of what there is
 *  at start.
 *
 * Bytes are open or closed. The checker reports an access of the program to closed ones. Memory
 * that the system has just given is open. What is closed stays so when its slab goes back to the
 * pages: the next user of the pages opens what it hands out.
 * Invariants:
 *  I1 the library touches no closed byte, for memcheck looks at its accesses, too.
 * Concurrency: any thread, any instruction. The bytes are the caller's, in whole pieces of 8: ASan
 *  keeps a byte of its own for each 8.
 * Failure: none. Without a checker nothing is done.
 */
#ifndef STOOK_CHECKER_H
#define STOOK_CHECKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

enum stook_checker {
        STOOK_CHECKER_NONE, STOOK_CHECKER_MEMCHECK, STOOK_CHECKER_ASAN,
};

/* Const after the start. */
extern enum stook_checker stook_checker STOOK_HIDDEN;

STOOK_INLINE bool stook_checker_is_on(void)
{
        return STOOK_UNLIKELY(stook_checker != STOOK_CHECKER_NONE);
}

/*
 * At start. @wanted: 0: no checker is told; 1: the one that is there; -1: the same, unless the
 * library itself was built with ASan.
 */
void stook_checker_detect(int wanted);
/* Does this process run under it, whether it is told of anything or not? */
bool stook_checker_is_memcheck(void);
/*
 * The end of a copy of the process that the library has made. Under memcheck it waits for its
 * parent to kill it: at an exit memcheck would say what is in use, and that is the program's.
 */
void stook_checker_await_kill(void);
void stook_checker_kill(int pid);
/* Objects will lie there, and what they point to is no leak. */
void stook_checker_add_roots(const void *at, size_t bytes);

/* What is open can be read: it counts as written. */
void stook_checker_open(const void *at, size_t bytes);
void stook_checker_close(const void *at, size_t bytes);

/* An object gets a user: its @bytes are open. @written: they have content to be read. */
void stook_checker_begin(void *object, size_t bytes, bool written);
/* From now on its user may use @to bytes of it instead of @from. Both are within its stride. */
void stook_checker_resize(void *object, size_t from, size_t to);
/* It has no user any more: its @bytes are closed. */
void stook_checker_end(void *object, size_t bytes);

/*
 * At start. From now on ASan calls @tell after each of its reports, with the address of the access.
 * It has one such function: that of a program that sets its own goes before.
 */
void stook_checker_on_error(void (*tell)(const void *address));

#endif
