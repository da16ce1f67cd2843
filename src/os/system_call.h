/*
 * Purpose: system calls without libc's wrappers: errno is left alone, no cancellation point, no
 * symbol to be bound at start, and no page of libc that an empty program would not have touched.
 * Place: os and process only.
 * Return: what the kernel says: an error is a number from -4095 to -1. mmap and its like go through
 *  libc where a sanitizer wants to see them.
 */
#ifndef STOOK_SYSTEM_CALL_H
#define STOOK_SYSTEM_CALL_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/compiler.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STOOK_CALLS_BY_LIBC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
        __has_feature(memory_sanitizer)
#define STOOK_CALLS_BY_LIBC 1
#endif
#endif

#if defined(__x86_64__)

STOOK_INLINE long stook_call6(long number, long a, long b, long c, long d, long e, long f)
{
        register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
        long r;

        __asm__ volatile("syscall" : "=a"(r)
                         : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                         : "rcx", "r11", "memory");
        return r;
}

#elif defined(__aarch64__)

STOOK_INLINE long stook_call6(long number, long a, long b, long c, long d, long e, long f)
{
        register long x8 __asm__("x8") = number, x0 __asm__("x0") = a;
        register long x1 __asm__("x1") = b, x2 __asm__("x2") = c;
        register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;

        __asm__ volatile("svc 0" : "+r"(x0)
                         : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
        return x0;
}

#elif defined(__riscv)

STOOK_INLINE long stook_call6(long number, long a, long b, long c, long d, long e, long f)
{
        register long a7 __asm__("a7") = number, a0 __asm__("a0") = a;
        register long a1 __asm__("a1") = b, a2 __asm__("a2") = c;
        register long a3 __asm__("a3") = d, a4 __asm__("a4") = e, a5 __asm__("a5") = f;

        __asm__ volatile("ecall" : "+r"(a0)
                         : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
        return a0;
}

#else

STOOK_INLINE long stook_call6(long number, long a, long b, long c, long d, long e, long f)
{
        int before = errno;
        long r = syscall(number, a, b, c, d, e, f);

        if (r == -1)
                r = -errno;
        errno = before;
        return r;
}

#endif

/* As many arguments as there are, each turned into a long. */
#define STOOK_CALL_PAD(n, a, b, c, d, e, f, ...) \
        stook_call6((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define stook_call(...) STOOK_CALL_PAD(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

STOOK_INLINE bool stook_call_failed(long r)
{
        return (unsigned long)r > -4096ul;
}

/* A file to be read; negative: there is none. */
STOOK_INLINE int stook_call_open(const char *path)
{
        return (int)stook_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

STOOK_INLINE void stook_call_close(int fd)
{
        stook_call(SYS_close, fd);
}

/*
 * The same file under a number above those of the standard ones, which a program may have closed.
 * Negative: no number is left, and the file is closed.
 */
STOOK_INLINE int stook_call_above_standard(int fd)
{
        long above;

        if (fd > STDERR_FILENO)
                return fd;
        above = stook_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        stook_call_close(fd);
        return (int)above;
}

#endif
