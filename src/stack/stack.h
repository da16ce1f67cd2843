/*
 * Purpose: call stacks by number. A caller keeps 4 bytes for the stack of an allocation; equal
 * stacks have one number and are stored once (stack_table.c, stack_walk.c); the files of their
 * addresses are noted (stack_modules.c).
 * Place: called by the layers that watch objects, if a mode that wants stacks is on; calls pages
 * for memory.
 * Concurrency: any thread, any instruction, but for the start. No lock.
 * Failure: the number 0, "no stack".
 */
#ifndef STOOK_STACK_H
#define STOOK_STACK_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"

/* Of one stack; the outer ones are left out. Both are arbitrary. */
#define STOOK_STACK_FRAMES_MOST  128
#define STOOK_STACK_FRAMES_USUAL 30     /* where each allocation has one: a walk costs by frames */

/*
 * Makes stacks available; until then they are 0. It loads the unwinder of libc, which allocates, so
 * it is not for handlers and not for the inside of an allocation. A wholly static program may have
 * none all the same (stack_walk.c). False: no memory.
 */
bool stook_stack_start(void);

/*
 * The number of this thread's call stack, from the caller of this function on, without the
 * innermost @skip frames, nor those of a shared libstook. 0: not started, no frames, or no memory.
 * At most STOOK_STACK_FRAMES_USUAL frames. The unwinder takes the most stack, where it is asked.
 */
STOOK_NOINLINE uint32_t stook_stack_here(unsigned skip);
/* The same with STOOK_STACK_FRAMES_MOST. On a handler's own stack: 0, or the handler's calls. */
STOOK_NOINLINE uint32_t stook_stack_deep(unsigned skip);

/*
 * Copies the return addresses of stack @id, innermost first, at most @most. Returns how many; 0 for
 * a number that is no stack's.
 */
unsigned stook_stack_frames(uint32_t id, uintptr_t *frames, unsigned most);

/* ---- stack_table.c; readers in other processes find a stack as stook_stack_frames does ---- */

/*
 * A stack in the table. Its number is where it lies: block (number / STOOK_STACK_UNITS), and unit
 * of 16 bytes in that block.
 */
struct stook_stack {
        uint32_t  hash;
        uint32_t  next;                 /* number of the next one in the bucket; 0: none */
        uint32_t  count;                /* of frames */
        uint32_t  modules;              /* so many were known then */
        uintptr_t frames[];
};
#define STOOK_STACK_UNIT        16
#define STOOK_STACK_BLOCK_BYTES ((size_t)64 << 10)
#define STOOK_STACK_UNITS       (STOOK_STACK_BLOCK_BYTES / STOOK_STACK_UNIT)
#define STOOK_STACK_BLOCKS      2048    /* 128 MiB of stacks, then all new ones are 0. Arbitrary */

/* [number / STOOK_STACK_UNITS]: atomic; NULL: none yet. */
extern char *stook_stack_blocks[STOOK_STACK_BLOCKS] STOOK_HIDDEN;

bool stook_stack_table_start(void);
/* The number of a stack of @count frames, at most STOOK_STACK_FRAMES_MOST. */
uint32_t stook_stack_number(const uintptr_t *frames, unsigned count);
/* Of a stack; 0 for a number that is no stack's. */
uint32_t stook_stack_modules_of(uint32_t id);
/* Bytes of metadata that hold stacks. */
size_t stook_stack_bytes(void);

#ifdef DLFO_STRUCT_HAS_EH_DBASE
/* Of glibc from 2.35 on: the file at an address, without a lock. */
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));
#endif

/* ---- stack_rules.c: x86-64, glibc from 2.35 on ---- */
#if defined(__x86_64__) && defined(DLFO_STRUCT_HAS_EH_DBASE)
#define STOOK_STACK_HAS_RULES
/*
 * The return addresses of the call whose frame pointer is @frame, innermost first; at most @most.
 * Beyond a handler on an alternate stack it does not look. Returns how many; 0: it cannot tell, the
 * unwinder may. Takes 500 bytes of stack, and makes no system call.
 */
unsigned stook_stack_by_rules(const uintptr_t *frame, uintptr_t *frames, unsigned most);
#endif

/* ---- stack_modules.c: files that were mapped where stacks were taken ---- */
#define STOOK_STACK_MODULES     256
#define STOOK_STACK_BUILD_BYTES 32
struct stook_stack_module {
        uint64_t start, end;            /* const once `start` is not 0; start: atomic */
        uint8_t  build[STOOK_STACK_BUILD_BYTES];
        uint32_t build_bytes;           /* 0: it has none */
        uint32_t is_program;            /* which is never closed */
        char     file[208];
};
extern struct stook_stack_module stook_stack_modules[STOOK_STACK_MODULES] STOOK_HIDDEN;
extern uint32_t stook_stack_modules_made STOOK_HIDDEN;  /* atomic: how many, or more */

void stook_stack_modules_start(void);
/* Notes the files of this thread's calls. Returns how many modules are known then. */
uint32_t stook_stack_note_modules(const uintptr_t *frames, unsigned count);
/*
 * The build id of the file that is mapped from @start on. @used: a call of this thread is in it.
 * Returns bytes; 0: none.
 */
uint32_t stook_stack_build_id(uintptr_t start, bool used, uint8_t build[STOOK_STACK_BUILD_BYTES]);
/* The module that lay at @address when stack @id was taken; or -1. */
int stook_stack_module(uint32_t id, uintptr_t address);
/* The same, if it is not mapped there any more. */
int stook_stack_closed_module(uint32_t id, uintptr_t address);

#endif
