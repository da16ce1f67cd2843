/*
 * Purpose: the registers of this call that another process needs to find its callers by debug
 * information: those that a function leaves as they were, by DWARF's numbers.
 */
#ifndef STOOK_OS_REGISTERS_H
#define STOOK_OS_REGISTERS_H

#include <stdint.h>

#include "base/compiler.h"

#if defined(__x86_64__)

#define STOOK_REGISTERS      17         /* rax ... r15, and the program counter */
#define STOOK_REGISTER_STACK 7
#define STOOK_REGISTER_PC    16
#define STOOK_REGISTERS_KEPT \
        { 3, 6, 7, 12, 13, 14, 15, 16 }

#elif defined(__aarch64__)

#define STOOK_REGISTERS      33         /* x0 ... x30, the stack pointer, the program counter */
#define STOOK_REGISTER_STACK 31
#define STOOK_REGISTER_PC    32
#define STOOK_REGISTERS_KEPT \
        { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31 }

#else /* RISC-V, whose DWARF has no number for the program counter: 32 stands for it, and is kept */

#define STOOK_REGISTERS      33         /* x0 ... x31, the program counter */
#define STOOK_REGISTER_STACK 2
#define STOOK_REGISTER_PC    32
#define STOOK_REGISTERS_KEPT \
        { 1, 2, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27 }

#endif

/* By DWARF's number; those that are not kept are not set. */
struct stook_registers {
        uint64_t value[STOOK_REGISTERS];
};

/* They hold while the function that calls this runs. */
static inline __attribute__((always_inline)) void
stook_registers_here(struct stook_registers *registers)
{
#if defined(__x86_64__)
        __asm__ volatile("movq %%rbx, 24(%0)\n\t"
                         "movq %%rbp, 48(%0)\n\t"
                         "movq %%rsp, 56(%0)\n\t"
                         "movq %%r12, 96(%0)\n\t"
                         "movq %%r13, 104(%0)\n\t"
                         "movq %%r14, 112(%0)\n\t"
                         "movq %%r15, 120(%0)\n\t"
                         "leaq 1f(%%rip), %%rax\n"
                         "1:\tmovq %%rax, 128(%0)"
                         : : "r"(registers) : "rax", "memory");
#elif defined(__aarch64__)
        __asm__ volatile("stp x19, x20, [%0, #152]\n\t"
                         "stp x21, x22, [%0, #168]\n\t"
                         "stp x23, x24, [%0, #184]\n\t"
                         "stp x25, x26, [%0, #200]\n\t"
                         "stp x27, x28, [%0, #216]\n\t"
                         "stp x29, x30, [%0, #232]\n\t"
                         "mov x9, sp\n\t"
                         "adr x10, 1f\n"
                         "1:\tstp x9, x10, [%0, #248]"
                         : : "r"(registers) : "x9", "x10", "memory");
#else
        __asm__ volatile("sd ra, 8(%0)\n\t"
                         "sd sp, 16(%0)\n\t"
                         "sd s0, 64(%0)\n\t"
                         "sd s1, 72(%0)\n\t"
                         "sd s2, 144(%0)\n\t"
                         "sd s3, 152(%0)\n\t"
                         "sd s4, 160(%0)\n\t"
                         "sd s5, 168(%0)\n\t"
                         "sd s6, 176(%0)\n\t"
                         "sd s7, 184(%0)\n\t"
                         "sd s8, 192(%0)\n\t"
                         "sd s9, 200(%0)\n\t"
                         "sd s10, 208(%0)\n\t"
                         "sd s11, 216(%0)\n\t"
                         "lla t0, 1f\n"
                         "1:\tsd t0, 256(%0)"
                         : : "r"(registers) : "t0", "memory");
#endif
}

#endif
