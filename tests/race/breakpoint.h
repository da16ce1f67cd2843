/*
 * Purpose: breakpoints in the library's own text, one at a time, and the list of instructions that
 * a call runs through. The list comes from stepping through the call once. x86-64.
 *
 * Stepping is a signal at each instruction, which aborts a restartable section at its first one. So
 * while it lasts the thread record names a made-up area that the kernel does not know. The
 * breakpoints are then met under the real area.
 */
#ifndef STOOK_TEST_BREAKPOINT_H
#define STOOK_TEST_BREAKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEPS_MAX 20000

struct steps {
        unsigned count;
        /* instructions of this program, each once, in the order they were met */
        uint8_t *at[STEPS_MAX];
};

/* Makes the program's text writable. False: not possible here. */
bool breakpoints_start(void);

/*
 * Around a call of the library's: only what is met in between is listed. What a test does with the
 * answer may not be interrupted like that.
 */
#define IN_LIBRARY(call) ({ \
        breakpoints_inside = true; \
        __typeof__(call) breakpoints_answer = (call); \
        breakpoints_inside = false; \
        breakpoints_answer; \
})
extern volatile bool breakpoints_inside;

/* Runs @call and lists its instructions. */
void breakpoints_find(void (*call)(void), struct steps *steps);

/*
 * When @at is next reached, by any thread, the breakpoint goes away and @then runs, in a handler on
 * top of it.
 */
void breakpoint_set(uint8_t *at, void (*then)(void));
/* Takes it away. True: it had been reached. */
bool breakpoint_clear(void);
/* Was the thread inside a section, which the kernel aborted, when the last one was reached? */
bool breakpoint_aborted(void);

#endif
