/*
 * Purpose: x86-64's trap flag. Between the two calls this thread gets a SIGTRAP after each
 * instruction. The red zone is stepped over, because pushf writes below the stack pointer.
 */
#ifndef STOOK_TEST_TRAP_FLAG_H
#define STOOK_TEST_TRAP_FLAG_H

#define SET_TRAP_FLAG(op) \
        __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\t" op \
                         ", (%%rsp)\n\tpopfq\n\tleaq 128(%%rsp), %%rsp" :: \
                                 : "memory", "cc")
#define TRAP_FLAG_ON()  SET_TRAP_FLAG("orq $0x100")
#define TRAP_FLAG_OFF() SET_TRAP_FLAG("andq $~0x100")

#endif
